package store

import (
	"context"
	"fmt"
	"iter"

	"github.com/millrace/millrace"
)

// Visible returns a view of a site without hidden pages, and without the fields that
// [millrace.Visibility] removes from every page. [millrace.Site.Pages], Sections and Changes still
// include all pages, because the log does not record which pages are visible. Page returns
// ErrNotFound for hidden pages.
func Visible(v millrace.View) millrace.View { return visible{v} }

type visible struct{ millrace.View }

// everything is the visibility that hides only pages that every configuration hides.
var everything = millrace.Visibility{Exclude: []string{}}

// Page implements [millrace.Source].
func (v visible) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	p, err := v.View.Page(ctx, have)
	if err != nil {
		return nil, err
	}
	p, ok := everything.Apply(p)
	if !ok {
		return nil, fmt.Errorf("page %s: %w", have.URL, millrace.ErrNotFound)
	}
	return p, nil
}

// Scan implements [millrace.View].
func (v visible) Scan(ctx context.Context, s millrace.Scan) iter.Seq2[*millrace.Page, error] {
	return func(yield func(*millrace.Page, error) bool) {
		left := s.Limit
		s.Limit = 0
		for p, err := range v.View.Scan(ctx, s) {
			if err == nil {
				var ok bool
				if p, ok = everything.Apply(p); !ok {
					continue
				}
			}
			if !yield(p, err) || err != nil {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}
