package main

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

type pullCommand struct {
	commonFlags
	fetchFlags
	crawlLimitFlags
	pullLimitFlags
	extractFlags
	siteKey
	signFlags
	listFlags
	savingsFlags
	URL     []string `arg:"" optional:"" name:"url" help:"Sites to mirror."`
	Store   string   `placeholder:"FILE|URL" help:"Mirror to write: a file, or postgres://USER@HOST/DATABASE (default: a file in the user's state folder, named after the first site)."`
	Via     string   `placeholder:"PROTOCOL" help:"Use only this protocol, or crawl for the plain web (default: the cheapest that the site offers)."`
	Purpose string   `enum:"ai-input,ai-train,search" default:"ai-input" help:"Intended use of the content: ${enum}."`
	Workers int      `placeholder:"N" default:"4" help:"Number of sites to pull at once (default: ${default}). Sites on one host are pulled one after the other."`

	KeyFile string `placeholder:"FILE" help:"File with the key for the site in its first line. The key is sent only to the site's own origin. Without the flag, the key is read from MILLRACE_KEY."`

	IgnorePolicy bool `help:"Also read content that the site's policy and robots.txt do not allow, and ignore their rates: only --delay limits the requests."`
}

// pullLimitFlags holds the flags that limit the pull of a site.
type pullLimitFlags struct {
	MaxPages int           `placeholder:"N" help:"Maximum pages that one pull requests from a site; the next pull continues. A file of many pages is read completely, or not at all if the site declares that it has more pages than the limit."`
	MaxBytes humanize.Size `placeholder:"SIZE" help:"Maximum bytes that one pull receives from a site, with headers, such as 20MB; the next pull continues (default: no limit; 1GB for watch --all)."`
}

func (c *pullLimitFlags) validate() error {
	if c.MaxPages < 0 {
		return usageError("--max-pages must not be negative; omit it for no limit")
	}
	return nil
}

// prepare validates the flags and reads key files.
func (c *pullCommand) prepare(p *process) error {
	if c.Workers < 1 {
		return usageError("--workers must be at least 1")
	}
	if err := errors.Join(c.crawlLimitFlags.validate(), c.pullLimitFlags.validate(), c.listFlags.validate(), c.savingsFlags.validate(), c.loadSigner()); err != nil {
		return err
	}
	for _, u := range c.URL {
		if _, err := siteRoot(u); err != nil {
			return err
		}
	}
	if _, err := c.rules(); err != nil {
		return err
	}
	if _, err := protocols(c.Via, webCrawl); err != nil && c.Via != webCrawl {
		return err
	}
	return c.loadKey(p)
}

// open opens the store and returns an agent for it.
func (c *pullCommand) open(ctx context.Context, p *process, o *agent.Options) (store.Store, *agent.Agent, error) {
	path := c.Store
	if path == "" {
		root, err := siteRoot(c.URL[0])
		if err == nil {
			path, err = p.mirrorPath(root)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if path != stores.Memory {
		prefix, _, err := p.companionPath(path)
		if err != nil {
			return nil, nil, err
		}
		o.Dictionaries = prefix + "-dictionaries"
	}
	st, err := p.openStore(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	a, err := agent.New(st, o)
	if err != nil {
		return nil, nil, errors.Join(err, st.Close())
	}
	return st, a, nil
}

// Run pulls every site. A failure does not stop the others.
func (c *pullCommand) Run(ctx context.Context, p *process) error {
	p.memory().Limit()
	if len(c.URL) == 0 {
		return usageError("no site selected; name at least one URL")
	}
	if err := c.prepare(p); err != nil {
		return err
	}
	st, a, err := c.open(ctx, p, c.agentOptions(p))
	if err != nil {
		return err
	}
	reports, failed := a.Pull(ctx, c.URL...)
	if err := st.Close(); err != nil {
		return err
	}
	for _, r := range reports {
		nameFlags(r)
	}
	out := any(reports)
	if len(c.URL) == 1 {
		out = oneOrAll(reports)
	}
	if err := p.report(out, func(w *bytes.Buffer) {
		var text bytes.Buffer
		_ = agent.WriteText(&text, reports)
		_, _ = optionFlags.WriteString(w, text.String())
	}); err != nil {
		return err
	}
	if failed != nil {
		return errReported
	}
	return nil
}

// agentOptions returns the options from the flags.
func (c *pullCommand) agentOptions(p *process) *agent.Options {
	return &agent.Options{
		Via: c.Via, Purpose: millrace.Purpose(c.Purpose), IgnorePolicy: c.IgnorePolicy, Parallel: c.Workers,
		MaxPages: c.MaxPages, MaxBytes: int64(c.MaxBytes), MaxDepth: c.MaxDepth, MaxTime: c.MaxTime,
		MaxList: c.MaxList << 20, CheckPageLinks: c.CheckPageLinks, Keep: c.Keep, Drop: c.Drop, Comments: c.Comments,
		Key: c.keyOf, Sign: c.sign, UserAgent: c.UserAgent, Contact: c.Contact, Delay: c.clientOptions(p, nil).Delay,
		RequestCounts: p.counts,
		AllowPrivate:  c.AllowPrivate, Dial: p.dial, Coefficients: c.values(), Progress: p.pulls(), Logger: p.log,
	}
}

// counts opens the store with the request counts of each host.
func (p *process) counts(ctx context.Context) (store.Store, error) {
	file, err := p.storePath("requests")
	if err != nil {
		return nil, err
	}
	return p.openStore(ctx, file)
}

// optionFlags replaces the names of an agent's options with the flags that set them.
var optionFlags = strings.NewReplacer(
	"Options.IgnorePolicy", "--ignore-policy", "Options.MaxBytes", "--max-bytes", "Options.MaxPages", "--max-pages", "Options.MaxTime", "--max-time",
	"Options.Purpose", "--purpose", "Options.Via", "--via",
)

// nameFlags replaces option names in the texts of a report with flags.
func nameFlags(r *agent.Report) {
	r.Quota, r.Error = optionFlags.Replace(r.Quota), optionFlags.Replace(r.Error)
	for i := range r.Ways {
		r.Ways[i].Error = optionFlags.Replace(r.Ways[i].Error)
	}
}
