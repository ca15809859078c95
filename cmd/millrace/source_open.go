package main

import (
	"context"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/store"
)

// source is the source of the pages, and their store.
type source struct {
	ingest.Origin
	path   string        // path of the store
	client *fetch.Client // reads a live site; nil if not connected
}

// newSource returns a source of the given kind. base is the base URL of the machine documents.
func (p *process) newSource(kind, base string, rules ingest.Rules) *source {
	return &source{Origin: ingest.Origin{
		Kind: kind, Base: base, Rules: rules, Logger: p.log,
		Progress: func(title string) ingest.Progress { return p.progress(title) },
	}}
}

// close closes the source.
func (o *source) close() error {
	if o.client != nil {
		o.client.CloseIdleConnections()
	}
	return o.Close()
}

// site opens the site, and the store if it is not open yet.
func (o *source) site(ctx context.Context, p *process) (store.Site, error) {
	if o.Store == nil {
		var err error
		if o.Store, err = p.openStore(ctx, o.path); err != nil {
			return nil, err
		}
	}
	if o.Kind == ingest.Mirror {
		return o.Store.Site(ctx, o.Name, o.Name)
	}
	return o.Store.Site(ctx, o.Name, o.Base)
}
