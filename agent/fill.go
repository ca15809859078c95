package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
)

// filler fetches a page by the first way that has it, and returns the page and the name of
// that way.
type filler func(ctx context.Context, ref millrace.Ref) (p *millrace.Page, way string, err error)

// filler returns a function that fetches single pages. It tries the named ways in order, and
// then the HTML of the page.
func (s *sitePull) filler(names []string) filler {
	type fill struct {
		name string
		page func(ctx context.Context, url string) (*millrace.Page, error)
	}
	var fills []fill
	for _, name := range names {
		if name == Crawl {
			continue
		}
		if proto, ok := named(name); ok {
			src := s.policy.reader(proto)
			fills = append(fills, fill{name, func(ctx context.Context, url string) (*millrace.Page, error) {
				return src.Page(ctx, millrace.Ref{URL: url})
			}})
		}
	}
	fills = append(fills, fill{Crawl, func(ctx context.Context, url string) (*millrace.Page, error) {
		return ingest.Page(ctx, s.withKeys(s.client), s.root, url)
	}})
	return func(ctx context.Context, ref millrace.Ref) (*millrace.Page, string, error) {
		var first error
		for _, f := range fills {
			p, err := f.page(ctx, ref.URL)
			if err == nil && p.Detail == millrace.DetailSummary && f.name != Crawl {
				err = fmt.Errorf("page %s: %w: %s returned only a summary", ref.URL, millrace.ErrNotFound, f.name)
			}
			if err == nil {
				return p, f.name, nil
			}
			if first = cmp.Or(first, err); ctx.Err() != nil {
				break
			}
		}
		return nil, "", first
	}
}

// filled is a source of summaries whose content is fetched from elsewhere. The content is not
// fetched again while the source's version of the page is unchanged. It is as safe for concurrent
// use as a [millrace.Source].
type filled struct {
	millrace.Source
	fill filler

	mu        sync.Mutex
	summaries map[string]*millrace.Page // summaries from the source, by the source's names of pages
	ring      []string                  // keys of summaries, oldest first
	by        map[string]int            // number of filled pages, by way
}

// maxSummaries is the maximum number of summaries that wait for their content. It exceeds the
// number of pages that a source lists before the first one is requested.
const maxSummaries = 1024

// filledVersion is the suffix of a version whose content came from elsewhere.
const filledVersion = " filled"

// Changes yields the changes of the source. It removes the summaries whose content must be fetched,
// and keeps them for Page.
func (f *filled) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		for c, err := range f.Source.Changes(ctx, since) {
			if err == nil && c.Kind == millrace.Put && needsContent(c.Page) {
				f.keep(c.URL, c.Page)
				c.Page, c.Version = nil, c.Version+filledVersion
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// needsContent reports whether the content of a page must be fetched. If access to parts of a page
// is restricted, the summary is sufficient.
func needsContent(p *millrace.Page) bool {
	return p != nil && p.Known != 0 && p.Detail == millrace.DetailSummary && !p.Access.NoIndex && !p.Access.Auth &&
		!slices.ContainsFunc(all.Protocols(), func(proto protocol.Protocol) bool { return proto.Partial != nil && proto.Partial(p) })
}

func (f *filled) keep(name string, p *millrace.Page) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.summaries == nil {
		f.summaries = make(map[string]*millrace.Page)
	}
	if _, twice := f.summaries[name]; !twice {
		f.ring = append(f.ring, name)
	}
	f.summaries[name] = p
	if len(f.ring) > maxSummaries {
		delete(f.summaries, f.ring[0])
		f.ring = f.ring[1:]
	}
}

// Page returns a page with its summary from the source and its content from elsewhere. If no
// way has the content, Page returns the summary alone. If the content is temporarily unavailable,
// Page returns the error.
func (f *filled) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	f.mu.Lock()
	summary := f.summaries[have.URL]
	f.mu.Unlock()
	if summary == nil {
		return f.Source.Page(ctx, have)
	}
	p, way, err := f.fill(ctx, have)
	switch {
	case err == nil && p.Known.Has(millrace.FieldContent):
		metadata := summary.Clone()
		metadata.Known &^= millrace.FieldContent
		out, _ := millrace.Merge(p, metadata)
		out.URL, out.Known, out.Version, out.Original = summary.URL, p.Known|metadata.Known, "", nil
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.by == nil {
			f.by = make(map[string]int)
		}
		f.by[way]++
		return out, nil
	case err != nil && (errors.Is(err, millrace.ErrUnavailable) || ctx.Err() != nil):
		return nil, err
	}
	out := summary.Clone()
	out.Version = ""
	return out, nil
}
