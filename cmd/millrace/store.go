package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/millrace/millrace"
	artifacts "github.com/millrace/millrace/artifact/all"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// openStore opens a store. It creates the store if it does not exist.
func (p *process) openStore(ctx context.Context, dsn string) (store.Store, error) {
	return stores.Open(ctx, dsn, &store.Options{Logger: p.log})
}

// openToRead opens an existing store for reading. The file may be read-only.
func (p *process) openToRead(ctx context.Context, dsn string) (store.Store, error) {
	st, _, err := p.openExisting(ctx, dsn)
	return st, err
}

// openExisting opens an existing store. If the file is not writable, it opens the store for reading
// only.
func (p *process) openExisting(ctx context.Context, dsn string) (st store.Store, writable bool, err error) {
	if err := p.exists(ctx, dsn); errors.Is(err, millrace.ErrNotFound) {
		return nil, false, fmt.Errorf("%[1]w; create one with millrace pull URL --store %[2]s, or with millrace sites add URL --store %[2]s for watch --all", err, stores.Name(dsn))
	} else if err != nil {
		return nil, false, err
	}
	st, err = p.openStore(ctx, dsn)
	if errors.Is(err, millrace.ErrForbidden) {
		st, err = stores.Open(ctx, dsn, &store.Options{Logger: p.log, ReadOnly: true})
		return st, false, err
	}
	return st, true, err
}

// exists returns ErrNotFound if the store does not exist.
func (p *process) exists(ctx context.Context, dsn string) error {
	if stores.IsPostgres(dsn) {
		st, err := stores.Open(ctx, dsn, &store.Options{Logger: p.log, ReadOnly: true})
		if err != nil {
			return err
		}
		return st.Close()
	}
	if _, err := os.Stat(dsn); err != nil {
		return fmt.Errorf("store %s: %w", dsn, millrace.ErrNotFound)
	}
	return nil
}

// companionPath returns the path prefix of the files that belong to a store. They are next to the
// store, or in the user's state folder. remove deletes them if they are temporary.
func (p *process) companionPath(dsn string) (path string, remove func() error, err error) {
	if stores.IsPostgres(dsn) {
		path, err = p.statePath(stores.Name(dsn))
		return path, nil, err
	}
	if dsn != stores.Memory {
		return dsn, nil, nil
	}
	dir, err := os.MkdirTemp("", "millrace-")
	return filepath.Join(dir, "store"), func() error { return os.RemoveAll(dir) }, err
}

// openArtifacts opens the artifact store with a name. Without a name, it opens a folder whose path
// starts with path. The path of a bucket's cache also starts with path.
func (p *process) openArtifacts(ctx context.Context, name, path string, st store.Store) (artifacts.Store, error) {
	return artifacts.Open(ctx, cmp.Or(name, path+"-files"), path+"-cache", st.State(), p.log)
}

// chosenSites holds the flags that select sites of a store.
type chosenSites struct {
	Site  string    `placeholder:"URL" help:"Only this site of the store (default: all sites)."`
	Label siteLabel `placeholder:"LABEL" help:"Only sites with this label (see millrace sites add)."`
}

// of returns the names of the selected sites, and of all sites of a store.
func (c *chosenSites) of(ctx context.Context, st store.Store, file string) (selected, all []string, err error) {
	switch {
	case c.Site != "" && c.Label != "":
		return nil, nil, usageError("--site and --label cannot be combined")
	case c.Label == "":
		return sitesOf(ctx, st, file, c.Site)
	}
	if all, err = ingest.SiteNames(ctx, st); err == nil {
		selected, err = ingest.SitesWithLabel(ctx, st, string(c.Label))
	}
	if err == nil && len(selected) == 0 {
		err = fmt.Errorf("label %q: %w: none of its sites has been pulled yet", c.Label, millrace.ErrNotFound)
	}
	return selected, all, err
}

// sitesOf returns the sites that --site selects, one or all, and all sites of a store.
func sitesOf(ctx context.Context, st store.Store, file, want string) (selected, all []string, err error) {
	if all, err = ingest.SiteNames(ctx, st); err != nil || want == "" && len(all) > 0 {
		return all, all, err
	}
	if want == "" {
		return nil, nil, fmt.Errorf("store %s: %w: contains no site yet", stores.Name(file), millrace.ErrNotFound)
	}
	name, err := ingest.FindSite(ctx, st, all, want)
	if err != nil {
		return nil, nil, usageError("--site " + err.Error())
	}
	return []string{name}, all, nil
}
