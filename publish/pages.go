package publish

import (
	"context"
	"fmt"
	"iter"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// Pages returns a source of the pages that list yields, for example from a query. Each scan calls
// list, which yields every page of the site, in any order. The URLs of pages are absolute. A page
// whose Known is zero is complete: all its fields are known, except Modified if that is zero. An
// error ends the scan, and deletes nothing.
func Pages(list func(ctx context.Context) iter.Seq2[*millrace.Page, error]) millrace.Source {
	return pages(list)
}

type pages func(ctx context.Context) iter.Seq2[*millrace.Page, error]

// Changes implements [millrace.Source]. It always yields all pages.
func (list pages) Changes(ctx context.Context, _ millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		for p, err := range list(ctx) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(millrace.Change{}, fmt.Errorf("list of pages: %w", err))
				return
			}
			if !yield(millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: p.URL, Version: p.Version}, Page: complete(p)}, nil) {
				return
			}
		}
		yield(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: "listed", Complete: true}}, nil)
	}
}

// Page implements [millrace.Source].
func (list pages) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	for p, err := range list(ctx) {
		if err != nil {
			return nil, fmt.Errorf("list of pages: %w", err)
		}
		if u, err := canon.URL(p.URL); err != nil || u != have.URL && p.URL != have.URL {
			continue
		}
		if p.Version != "" && p.Version == have.Version {
			return nil, millrace.ErrUnmodified
		}
		return complete(p), nil
	}
	return nil, fmt.Errorf("page %s: %w", have.URL, millrace.ErrNotFound)
}

// complete returns p. If p.Known is zero, it returns a copy in which all fields are known, except
// Modified if that is zero.
func complete(p *millrace.Page) *millrace.Page {
	if p.Known != 0 {
		return p
	}
	q := *p
	q.Known, q.Detail = millrace.AllFields, millrace.DetailBlocks
	if q.Modified.IsZero() {
		q.Known &^= millrace.FieldModified
	}
	return &q
}
