package mirror

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/millrace/millrace"
)

// Pages is a sink in memory, for programs that need the pages of a site without a store. It also
// keeps the state of its sources, so that another [Sync] fetches only the changes and applies
// deletions. The zero value is empty and ready to use. Pages is safe for concurrent use. Callers
// must not change the pages that it returns.
type Pages struct {
	mu      sync.Mutex
	pages   map[string]*millrace.Page
	claims  map[string]int // number of names of each page, by its URL
	sources map[string]*source
}

// source is the state of one source.
type source struct {
	cursor millrace.Cursor
	names  map[string]name // by Ref.URL
}

// name is the name of a page at a source.
type name struct {
	ref  millrace.Ref
	page string // URL of the page. If empty, the name is an alias.
}

// Len returns the number of pages.
func (p *Pages) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pages)
}

// Page returns a page by its URL, or nil if it is absent.
func (p *Pages) Page(url string) *millrace.Page {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pages[url]
}

// All yields the pages in the order of their URLs, as they were at the start of the iteration.
func (p *Pages) All() iter.Seq2[string, *millrace.Page] {
	return func(yield func(string, *millrace.Page) bool) {
		p.mu.Lock()
		pages := maps.Clone(p.pages)
		p.mu.Unlock()
		for _, url := range slices.Sorted(maps.Keys(pages)) {
			if !yield(url, pages[url]) {
				return
			}
		}
	}
}

// Apply implements [millrace.Sink].
func (p *Pages) Apply(_ context.Context, from string, batch []millrace.Change) (millrace.Counts, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pages == nil {
		p.pages, p.claims, p.sources = make(map[string]*millrace.Page), make(map[string]int), make(map[string]*source)
	}
	s := p.sources[from]
	if s == nil {
		s = &source{names: make(map[string]name)}
		p.sources[from] = s
	}
	var t millrace.Counts
	for i := range batch {
		switch c := &batch[i]; c.Kind {
		case millrace.Put:
			p.put(s, c, &t)
		case millrace.Delete:
			was := s.names[c.URL]
			delete(s.names, c.URL)
			p.drop(was.page, &t)
		case millrace.KindCheckpoint:
			s.cursor = c.Checkpoint.Cursor
		}
	}
	return t, nil
}

func (p *Pages) put(s *source, c *millrace.Change, t *millrace.Counts) {
	was, known := s.names[c.URL]
	now := name{ref: c.Ref, page: was.page}
	if c.Page == nil {
		t.Unchanged++
		if known {
			s.names[c.URL] = now
		}
		return
	}
	now.ref.Version = cmp.Or(c.Page.Version, c.Version)
	now.page = ""
	if c.Page.Known != 0 { // otherwise, the name is an alias
		now.page = cmp.Or(c.Page.URL, c.URL)
	}
	s.names[c.URL] = now
	if was.page != now.page {
		p.claims[now.page]++
		defer p.drop(was.page, t)
	}
	stored := p.pages[now.page]
	switch {
	case now.page == "" || c.Newer && stored != nil && !stored.Modified.IsZero() && !c.Page.Modified.After(stored.Modified):
		t.Unchanged++
	default:
		page, changed := millrace.Merge(stored, c.Page)
		page.URL, page.Version, page.Original, page.HTMLSize = now.page, "", nil, millrace.HTMLSize{}
		p.pages[now.page] = page
		switch {
		case stored == nil:
			t.Added++
		case changed:
			t.Updated++
		default:
			t.Unchanged++
		}
	}
}

// drop removes a name of a page, and deletes the page if it has no other name.
func (p *Pages) drop(url string, t *millrace.Counts) {
	if p.claims[url]--; p.claims[url] > 0 {
		return
	}
	delete(p.claims, url)
	if p.pages[url] != nil {
		delete(p.pages, url)
		t.Deleted++
	}
}

// Cursor implements [millrace.SyncState].
func (p *Pages) Cursor(_ context.Context, from string) (millrace.Cursor, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.sources[from]; s != nil {
		return s.cursor, nil
	}
	return "", nil
}

// KnownRefs implements [millrace.SyncState].
func (p *Pages) KnownRefs(_ context.Context, from string, urls ...string) iter.Seq2[millrace.Ref, error] {
	p.mu.Lock()
	defer p.mu.Unlock()
	var refs []millrace.Ref
	if s := p.sources[from]; s != nil {
		if len(urls) == 0 {
			urls = slices.Collect(maps.Keys(s.names))
		}
		for _, u := range urls {
			if n, ok := s.names[u]; ok {
				refs = append(refs, n.ref)
			}
		}
	}
	slices.SortFunc(refs, func(a, b millrace.Ref) int { return cmp.Compare(a.URL, b.URL) })
	return func(yield func(millrace.Ref, error) bool) {
		for _, r := range refs {
			if !yield(r, nil) {
				return
			}
		}
	}
}
