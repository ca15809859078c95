package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/origin/crawl"
	"github.com/millrace/millrace/origin/folder"
	"github.com/millrace/millrace/origin/markdown"
	"github.com/millrace/millrace/origin/wordpress"
	"github.com/millrace/millrace/store"
)

// kind tells what the source is: folder, markdown, mirror, wordpress, crawl,
// or live for a URL of which only a request can tell.
func (c *serveCommand) kind() (string, error) {
	if c.Source == "" {
		return "", usageError("the source is empty: name a folder, a URL or a mirror FILE")
	}
	if strings.Contains(c.Source, "://") {
		if _, err := siteFolder(c.Source); err != nil {
			return "", err
		}
		switch c.As {
		case "":
			return "live", nil
		case "crawl", "wordpress":
			return c.As, nil
		}
		return "", usageError(fmt.Sprintf("--as %s: %s is a live site; it can be read as wordpress or crawl", c.As, c.Source))
	}
	info, err := os.Stat(c.Source)
	if err != nil {
		return "", fmt.Errorf("source: %w", err)
	}
	switch ext := strings.ToLower(filepath.Ext(c.Source)); {
	case !info.IsDir() && (ext == ".html" || ext == ".htm" || ext == ".xhtml" || ext == ".md"):
		return "", usageError(fmt.Sprintf("%s is one page; SOURCE is the folder that it is in, such as %s", c.Source, filepath.Dir(c.Source)))
	case !info.IsDir() && (c.As == "" || c.As == "mirror"):
		return "mirror", nil
	case info.IsDir() && (c.As == "folder" || c.As == "markdown"):
		return c.As, nil
	case info.IsDir() && c.As == "":
		if markdown.Is(c.Source) {
			return "markdown", nil
		}
		return "folder", nil
	case info.IsDir():
		return "", usageError(fmt.Sprintf("--as %s: %s is a folder; it can be read as folder or markdown", c.As, c.Source))
	}
	return "", usageError(fmt.Sprintf("--as %s: %s is a file, which can only be a mirror", c.As, c.Source))
}

// open gets the origin as far as it goes without its store.
func (o *origin) open(ctx context.Context, c *serveCommand, p *process) error {
	if c.Rehost && o.Kind != "mirror" {
		return usageError(fmt.Sprintf("--rehost is of mirrors, and %s is read as %s", c.Source, o.Kind))
	}
	switch o.Kind {
	case "mirror":
		return o.openMirror(ctx, c, p)
	case "folder", "markdown":
		return o.openFolder(c, p)
	}
	root, err := siteFolder(c.Source)
	if err != nil {
		return err
	}
	if c.Origin != "" && c.front() == "" {
		root = o.Base // what SOURCE names is the server behind
	}
	// The pages stay where they are; only the documents are here.
	o.Name, o.Title, o.Base, o.path = root, root, root, c.Store
	if o.path == "" {
		o.path, err = p.storePath(root)
	}
	return err
}

func (o *origin) openFolder(c *serveCommand, p *process) error {
	dir, err := filepath.Abs(c.Source)
	if err != nil {
		return err
	}
	rules, err := c.rules()
	if err != nil {
		return err
	}
	o.Name, o.Title, o.path = "folder "+dir, filepath.Base(dir), c.Store
	o.From = o.Name
	if o.Kind == "markdown" {
		f, err := markdown.New(dir, &markdown.Options{Base: o.Base, Rules: rules, Logger: p.log})
		if err != nil {
			return err
		}
		o.Name += " markdown"
		o.From, o.Source, o.Watch, o.close = o.Name, f, f.Watch, f.Close
	} else {
		if o.folder, err = folder.New(dir, &folder.Options{Base: o.Base, Rules: rules, Logger: p.log}); err != nil {
			return err
		}
		o.Source, o.Watch, o.close = o.folder, o.folder.Watch, o.folder.Close
	}
	if o.path == "" {
		if o.path, err = p.storePath(folderStore(o.Kind, dir)); err != nil {
			return err
		}
	}
	if exposed(dir, o.path) {
		return usageError(fmt.Sprintf("--store %s: it is in the folder that is served, so that everybody could read what is hidden; keep it elsewhere", o.path))
	}
	return nil
}

// exposed reports whether a file is in a folder, and under no name there that
// is hidden from visitors.
func exposed(dir, file string) bool {
	var names [2]string
	for i, name := range []string{dir, filepath.Dir(file)} {
		abs, err := filepath.Abs(name)
		if err != nil {
			return false
		}
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			abs = real
		}
		names[i] = abs
	}
	rel, err := filepath.Rel(names[0], filepath.Join(names[1], filepath.Base(file)))
	return err == nil && !strings.HasPrefix(rel, ".") && !strings.Contains(rel, string(filepath.Separator)+".")
}

func (o *origin) openMirror(ctx context.Context, c *serveCommand, p *process) error {
	if c.Store != "" {
		return usageError("--store: a mirror is its own store")
	}
	if len(c.Keep)+len(c.Drop) > 0 || c.Comments {
		p.log.Warn("a mirror has no HTML to extract: --keep, --drop and --comments count where it is pulled", "mirror", c.Source)
	}
	o.path = c.Source
	mine := o.Store == nil
	if mine {
		var err error
		if o.Store, err = p.openStore(ctx, o.path); err != nil {
			return err
		}
	}
	names, err := ingest.SiteNames(ctx, o.Store)
	if err == nil {
		o.Name, err = choose(names, c.Site, c.Source)
	}
	if err != nil {
		if mine {
			err, o.Store = errors.Join(err, o.Store.Close()), nil
		}
		return err
	}
	o.Title = o.Name
	if !c.Rehost {
		if canon.Origin(o.Base) != canon.Origin(o.Name) {
			p.log.Warn("the pages keep their addresses, so that only TCT can be read here; --rehost makes them pages of this one", "pages", o.Name, "documents", o.Base)
		}
		o.Base = o.Name
	}
	return nil
}

// choose gives the one site of a mirror that is meant.
func choose(names []string, want, file string) (string, error) {
	var sites []string
	for _, n := range names {
		if strings.Contains(n, "://") {
			sites = append(sites, n)
		}
		if want != "" && strings.TrimSuffix(n, "/") == strings.TrimSuffix(want, "/") {
			return n, nil
		}
	}
	switch {
	case len(sites) == 0:
		return "", fmt.Errorf("%s: %w: no mirrored site in it", file, millrace.ErrNotFound)
	case want != "" || len(sites) > 1:
		return "", usageError(fmt.Sprintf("name one of the sites in %s with --site: %s", file, strings.Join(sites, ", ")))
	}
	return sites[0], nil
}

// glance is how long a site that was read before is waited for, to say whether
// it is read in the same way.
const glance = 2 * time.Second

// noTypes refuses to exclude types of a source that has none.
func (c *serveCommand) noTypes(o *origin) error {
	if len(c.ExcludeTypes) == 0 {
		return nil
	}
	return usageError(fmt.Sprintf("--exclude-types: %s is not read by WordPress's REST API, which alone tells the types of pages; use --exclude", o.Name))
}

// connect finds out how a live site is read. It does nothing for the others.
func (o *origin) connect(ctx context.Context, c *serveCommand, p *process, site store.Site) error {
	if o.Source != nil || o.Kind == "mirror" {
		return c.noTypes(o)
	}
	client := fetch.New(c.siteOptions(p, o.Base, ingest.Robots{State: o.Store.State()})).HTTP()
	o.close = func() error { client.CloseIdleConnections(); return nil }
	if o.Kind == "live" {
		o.Kind = "crawl"
		was, err := ingest.IsPrimary(ctx, site, o.Name+" wordpress")
		if err != nil {
			return err
		}
		crawled, err := ingest.IsPrimary(ctx, site, o.Name+" crawl")
		if err != nil {
			return err
		}
		look, done := context.WithCancel(ctx)
		if was || crawled {
			look, done = context.WithTimeout(ctx, glance) // nobody is answered until then
		}
		home, err := wordpress.Find(look, client, o.Name)
		late := look.Err() != nil
		done()
		switch {
		case ctx.Err() != nil:
			return err
		case err == nil && home == o.Name:
			o.Kind = "wordpress"
		case err == nil:
			p.log.Info("this is a part of a WordPress site: crawling this part; the whole is read faster", "site", home)
		case late, errors.Is(err, millrace.ErrUnavailable):
			// A site that is down does not change the way it is read.
			if was {
				o.Kind = "wordpress"
			}
		case errors.Is(err, millrace.ErrForbidden):
			// An address that is refused, or a home that wants a login, is so to
			// a crawl as well, and told by it.
			if _, refused := errors.AsType[*fetch.AddressError](err); !refused {
				p.log.Warn("the site's pages cannot be read by WordPress's REST API: crawling the site instead", "error", err)
			}
		}
	}
	rules, err := c.rules()
	if err != nil {
		return err
	}
	if o.Kind == "crawl" {
		return errors.Join(c.noTypes(o), o.crawl(client, c, p, site, rules))
	}
	src, err := wordpress.New(client, o.Name, &wordpress.Options{Rules: rules, ExcludeTypes: c.ExcludeTypes, Logger: p.log})
	if err != nil {
		return err
	}
	p.log.Info("reading the site by WordPress's REST API", "site", o.Name)
	o.Source, o.From = src, o.Name+" wordpress"
	o.Fallback = func(err error) bool {
		if !errors.Is(err, millrace.ErrNotFound) && !errors.Is(err, millrace.ErrForbidden) || len(c.ExcludeTypes) > 0 {
			return false // a crawl does not know the types
		}
		p.log.Warn("there is no WordPress REST API to read: crawling the site instead", "error", err)
		o.Kind, o.Fallback = "crawl", nil
		return o.crawl(client, c, p, site, rules) == nil
	}
	return nil
}

func (o *origin) crawl(client *http.Client, c *serveCommand, p *process, site store.Site, rules *extract.Rules) error {
	o.From = o.Name + " crawl"
	options := c.options(p, site, o.From, o.Show)
	options.Rules = rules
	src, err := crawl.New(client, o.Name, options)
	if err != nil {
		return err
	}
	o.Source, o.Next, o.Complete = src, src.Next, src.Complete
	return nil
}

// crawling are the flags of every command that crawls.
type crawling struct {
	MaxPages int `placeholder:"N" help:"Most addresses that a crawl asks for (default: 1000000)."`
	reaching
}

// reaching are the flags of a crawl that are no quota.
type reaching struct {
	MaxDepth int           `placeholder:"N" help:"Most links between the start of a crawl and a page (default: 30)."`
	MaxTime  time.Duration `placeholder:"DURATION" help:"Longest time that one crawl takes; the next one goes on (default: no limit)."`
}

// validate refuses limits that would be none.
func (c *crawling) validate() error {
	if c.MaxPages < 0 {
		return usageError("--max-pages is not negative; leave it out for no limit of your own")
	}
	return c.reaching.validate()
}

func (c *reaching) validate() error {
	if c.MaxDepth < 0 || c.MaxTime < 0 {
		return usageError("--max-depth and --max-time are not negative; leave them out for no limit of your own")
	}
	return nil
}

// options are those of a crawl into a site.
func (c *crawling) options(p *process, site store.Site, from string, progress func(done, known int)) *crawl.Options {
	o := ingest.CrawlOptions(site, from)
	o.MaxPages, o.MaxDepth, o.MaxTime = c.MaxPages, c.MaxDepth, c.MaxTime
	o.Progress, o.Logger = progress, p.log
	return o
}
