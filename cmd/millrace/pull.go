package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/url"
	"slices"
	"sync"

	"github.com/millrace/millrace/store"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/webauth"
	"github.com/millrace/millrace/protocol"
)

type pullCommand struct {
	common
	remote
	reaching
	bounding
	correcting
	keyed
	signing
	listing
	coefficients
	URL      []string `arg:"" name:"url" help:"Sites to mirror."`
	Store    string   `placeholder:"FILE" help:"Mirror to write (default: a file under the user's state folder, named after the first site)."`
	Via      string   `placeholder:"PROTOCOL" help:"Use this protocol only, or crawl for the plain web (default: the cheapest that the site offers)."`
	Purpose  string   `enum:"ai-input,ai-train,search" default:"ai-input" help:"What the content is for: ${enum}."`
	Parallel int      `placeholder:"N" default:"4" help:"Sites that are pulled at once (default: ${default}). Those of one host take turns."`

	KeyFile string `placeholder:"FILE" help:"File with the key that the site has given, in its first line. It is sent to the site's own address alone. Without it the key is in the environment, as MILLRACE_KEY, if there is one."`

	IgnorePolicy bool `help:"Take what the site's policy and robots.txt do not allow, too, and as often as --delay lets it."`

	sharing sync.Once
	shared  *fetch.Client // whose queues those of all sites share
	sealing sync.Once
	seal    *webauth.Seal // what knows the keys of sites
}

// validate refuses flags that cannot be right, before anything is done.
func (c *pullCommand) validate() error {
	if c.Parallel < 1 {
		return usageError("--parallel is at least 1")
	}
	if err := errors.Join(c.remote.validate(), c.reaching.validate(), c.bounding.validate(), c.listing.validate(), c.coefficients.validate(), c.loadSigner()); err != nil {
		return err
	}
	for _, u := range c.URL {
		if _, err := siteRoot(u); err != nil {
			return err
		}
	}
	_, err := c.rules()
	return err
}

// Run pulls every site; one that fails does not stop the others.
func (c *pullCommand) Run(ctx context.Context, p *process) error {
	p.start(&c.common)
	p.limitMemory()
	if err := c.validate(); err != nil {
		return err
	}
	var named []protocol.Protocol
	if c.Via != webCrawl {
		var err error
		if named, err = rooms(c.Via, webCrawl); err != nil {
			return err
		}
	}
	if err := c.loadKey(p); err != nil {
		return err
	}
	path := c.Store
	if path == "" {
		root, err := siteRoot(c.URL[0])
		if err == nil {
			path, err = p.storePath(root)
		}
		if err != nil {
			return err
		}
	}
	st, err := p.openStore(ctx, path)
	if err != nil {
		return err
	}
	reports, failed := c.pullAll(ctx, p, st, named)
	if err := st.Close(); err != nil {
		return err
	}
	var out any = reports
	if len(c.URL) == 1 && len(reports) == 1 {
		out = reports[0]
	}
	if err := p.report(out, func(w io.Writer) error { return printPull(w, reports) }); err != nil {
		return err
	}
	if failed {
		return errReported
	}
	return nil
}

// pullAll pulls some sites at once, those of one host one after the other, and
// gives the reports of all that were begun, in the order of the sites.
func (c *pullCommand) pullAll(ctx context.Context, p *process, st store.Store, named []protocol.Protocol) (reports []*pullReport, failed bool) {
	all := make([]*pullReport, len(c.URL))
	jobs := make(chan []int)
	var workers sync.WaitGroup
	for range min(c.Parallel, len(c.URL)) {
		workers.Go(func() {
			for job := range jobs {
				for _, i := range job {
					if ctx.Err() != nil && i > 0 {
						break
					}
					r, err := c.pull(ctx, p, st, c.URL[i], named)
					if err != nil {
						r.fail(err)
					}
					all[i] = r
				}
			}
		})
	}
	for _, job := range byHost(c.URL) {
		jobs <- job
	}
	close(jobs)
	workers.Wait()
	for _, r := range all {
		if r != nil {
			reports = append(reports, r)
			failed = failed || r.Error != ""
		}
	}
	return reports, failed
}

// byHost gives the indexes of URLs in groups of one host each, in the order of
// their first ones.
func byHost(urls []string) (groups [][]int) {
	at := map[string]int{}
	for i, raw := range urls {
		host := raw
		if root, err := siteRoot(raw); err == nil {
			if u, err := url.Parse(root); err == nil {
				host = u.Host
			}
		}
		n, ok := at[host]
		if !ok {
			n = len(groups)
			at[host] = n
			groups = append(groups, nil)
		}
		groups[n] = append(groups[n], i)
	}
	return groups
}

// sortedKeys gives the keys of a map in their order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
