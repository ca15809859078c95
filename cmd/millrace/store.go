package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// openStore opens a store, or creates it.
func (p *process) openStore(ctx context.Context, dsn string) (store.Store, error) {
	return stores.Open(ctx, dsn, &store.Options{Logger: p.log})
}

// openToRead opens a store that a command only reads, which need not be writable.
func (p *process) openToRead(ctx context.Context, dsn string) (store.Store, error) {
	st, err := p.openStore(ctx, dsn)
	if errors.Is(err, millrace.ErrForbidden) {
		st, err = stores.Open(ctx, dsn, &store.Options{Logger: p.log, ReadOnly: true})
	}
	return st, err
}

// headOf opens a site of a store to read it, and returns its newest view.
func headOf(ctx context.Context, st store.Store, name string) (store.Site, millrace.View, error) {
	site, err := st.Site(ctx, name, "")
	if err != nil {
		return nil, nil, err
	}
	v, err := ingest.Visible{Site: site}.Head(ctx)
	return site, v, err
}

// besides returns the path that the files beside a store begin with, and a function
// that removes them if they do not outlive the store.
func besides(dsn string) (path string, remove func() error, err error) {
	if dsn != stores.Memory {
		return dsn, nil, nil
	}
	dir, err := os.MkdirTemp("", "millrace-")
	return filepath.Join(dir, "store"), func() error { return os.RemoveAll(dir) }, err
}
