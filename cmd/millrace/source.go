package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/tree"
	"github.com/millrace/millrace/origin"
	"github.com/millrace/millrace/origin/all"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// kind returns the kind of the source; see [ingest.Detect]. If the source contains a built site,
// kind replaces the source with the folder of that site.
func (c *serveCommand) kind() (string, error) {
	if c.Source == "" {
		return "", usageError("SOURCE is missing; name a folder, a URL or a mirror FILE, or set source in millrace.yaml")
	}
	if stores.IsPostgres(c.Source) {
		return ingest.Mirror, nil
	}
	if strings.Contains(c.Source, "://") {
		if _, err := siteFolder(c.Source); err != nil {
			return "", err
		}
	}
	kind, source, err := ingest.Detect(context.Background(), c.Source, c.As)
	switch {
	case errors.Is(err, millrace.ErrInvalid) && c.As != "":
		return "", inFlag("--as "+c.As, err)
	case errors.Is(err, millrace.ErrInvalid):
		return "", usageError(err.Error())
	case err == nil:
		c.Source = source
	}
	return kind, err
}

// storeName returns the name of the store for a source that is not a mirror.
func (c *serveCommand) storeName(kind string) (string, error) {
	if way := all.ByName(kind); way == nil || !way.Folder {
		return siteFolder(c.Source)
	}
	dir, err := filepath.Abs(c.Source)
	if kind != "folder" {
		dir += " " + kind
	}
	return dir, err
}

// open sets the names of the site and its store. For a mirror, it also opens the store.
func (o *source) open(ctx context.Context, c *serveCommand, p *process) error {
	if c.Rehost && o.Kind != ingest.Mirror {
		return usageError(fmt.Sprintf("--rehost: only valid for mirrors, but %s is read as %s", c.Source, o.Kind))
	}
	if o.Kind == ingest.Mirror {
		return o.openMirror(ctx, c, p)
	}
	name, err := c.storeName(o.Kind)
	if err != nil {
		return err
	}
	way := all.ByName(o.Kind)
	folder := way != nil && way.Folder
	switch {
	case folder:
		o.Name, o.Title = "folder "+name, filepath.Base(strings.TrimSuffix(name, " "+o.Kind))
	case c.Origin != "" && c.front() == "":
		name = o.Base // SOURCE is the same as --origin
		fallthrough
	default: // another server has the pages; this server has only the documents
		o.Name, o.Title, o.Base = name, name, name
	}
	if o.path = c.Store; o.path == "" {
		if o.path, err = p.storePath(name); err != nil {
			return err
		}
	}
	if folder && !stores.IsPostgres(o.path) && tree.Exposes(c.Source, o.path) {
		return usageError(fmt.Sprintf("--store %s: the store is inside the served folder, where clients could read hidden pages; move it elsewhere", o.path))
	}
	return nil
}

func (o *source) openMirror(ctx context.Context, c *serveCommand, p *process) error {
	if c.Store != "" {
		return usageError("--store: not valid for a mirror, which is its own store")
	}
	if len(c.Keep)+len(c.Drop) > 0 || c.Comments {
		p.log.Warn("a mirror has no HTML; ignoring --keep, --drop and --comments", "path", stores.Name(c.Source))
	}
	o.path = c.Source
	mine := o.Store == nil
	if mine {
		var err error
		if o.Store, err = p.openStore(ctx, o.path); err != nil {
			return err
		}
	}
	var err error
	if o.Name, err = c.siteIn(ctx, o.Store); err != nil {
		if mine {
			err, o.Store = errors.Join(err, o.Store.Close()), nil
		}
		return err
	}
	o.Title = o.Name
	if !c.Rehost {
		if canon.Origin(o.Base) != canon.Origin(o.Name) {
			p.log.Warn("pages keep the URLs of their site, so only TCT is published; use --rehost to change their URLs", "site", o.Name, "url", o.Base)
		}
		o.Base = o.Name
	}
	return nil
}

// siteIn returns the name of the selected site of a mirror.
func (c *serveCommand) siteIn(ctx context.Context, st store.Store) (string, error) {
	names, _, err := sitesOf(ctx, st, c.Source, c.Site)
	if err != nil {
		return "", err
	}
	if c.Site == "" {
		names = slices.DeleteFunc(names, func(n string) bool { return !strings.Contains(n, "://") })
	}
	switch len(names) {
	case 0:
		return "", fmt.Errorf("%s: %w: contains no mirrored site", c.Source, millrace.ErrNotFound)
	case 1:
		return names[0], nil
	}
	return "", usageError(fmt.Sprintf("name one of the sites in %s with --site: %s", c.Source, strings.Join(names, ", ")))
}

// connect opens the source.
func (o *source) connect(ctx context.Context, c *serveCommand, p *process, stored store.Site) error {
	rules, err := c.rules()
	if err != nil {
		return err
	}
	client := fetch.New(c.siteOptions(p, o.Base, ingest.Robots{State: o.Store.State()}))
	o.client = client
	err = o.Open(ctx, stored, c.Source, origin.Options{
		Client: client.HTTP(), Rules: rules, ExcludeTypes: c.ExcludeTypes, MaxPages: c.MaxPages, MaxDepth: c.MaxDepth, MaxTime: c.MaxTime,
	})
	if errors.Is(err, ingest.ErrTypes) {
		return usageError(fmt.Sprintf("--exclude-types: only valid for sites that are read by WordPress's REST API, which %s is not; use --exclude", o.Name))
	}
	return err
}

// crawlFlags holds the flags of commands that crawl.
type crawlFlags struct {
	MaxPages int `placeholder:"N" help:"Maximum URLs that a crawl requests (default: 1000000)."`
	crawlLimitFlags
}

// crawlLimitFlags holds the flags that limit the depth and the duration of a crawl.
type crawlLimitFlags struct {
	MaxDepth int           `placeholder:"N" help:"Maximum number of links from the start of a crawl to a page (default: 30)." hidden:""`
	MaxTime  time.Duration `placeholder:"DURATION" help:"Maximum duration of a pull of a site or of a crawl; the next one continues (default: no limit)." hidden:""`
}

// validate rejects invalid limits.
func (c *crawlFlags) validate() error {
	if c.MaxPages < 0 {
		return usageError("--max-pages must not be negative; omit it for the default")
	}
	return c.crawlLimitFlags.validate()
}

func (c *crawlLimitFlags) validate() error {
	if c.MaxDepth < 0 || c.MaxTime < 0 {
		return usageError("--max-depth and --max-time must not be negative; omit them for the defaults")
	}
	return nil
}
