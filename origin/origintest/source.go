package origintest

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// refStore stores in memory the refs that a sink would store for a source.
type refStore struct {
	mu   sync.Mutex
	refs map[string]millrace.Ref
}

// newRefStore returns a refStore that contains only the given refs.
func newRefStore(refs map[string]millrace.Ref) *refStore {
	n := &refStore{refs: map[string]millrace.Ref{}}
	maps.Copy(n.refs, refs)
	return n
}

// knownRefs returns the stored refs of the URLs, as a sink does. If no URL is given, it returns all
// refs.
func (n *refStore) knownRefs(_ context.Context, urls ...string) iter.Seq2[millrace.Ref, error] {
	return func(yield func(millrace.Ref, error) bool) {
		n.mu.Lock()
		refs := maps.Clone(n.refs)
		n.mu.Unlock()
		if len(urls) == 0 {
			urls = slices.Collect(maps.Keys(refs))
		}
		for _, u := range slices.Compact(slices.Sorted(slices.Values(urls))) {
			if ref, ok := refs[u]; ok && !yield(ref, nil) {
				return
			}
		}
	}
}

// take stores the effect of a change.
func (n *refStore) take(c millrace.Change) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch ref := c.Ref; c.Kind {
	case millrace.Put:
		if c.Page != nil && c.Page.Version != "" {
			ref.Version = c.Page.Version
		}
		n.refs[c.URL] = ref
	case millrace.Delete:
		delete(n.refs, c.URL)
	}
}

// stream contains the results of one call of Changes.
type stream struct {
	puts    []millrace.Change
	deleted []string
	skips   []*millrace.SkipError
	marks   []millrace.Checkpoint
	last    millrace.Kind // kind of the last change
	err     error         // error that ended the stream, or nil
}

// read reads a stream to its end, and stores the changes in n.
func (n *refStore) read(ctx context.Context, src millrace.Source, since millrace.Cursor) (s stream) {
	for c, err := range src.Changes(ctx, since) {
		var skip *millrace.SkipError
		switch {
		case errors.As(err, &skip):
			s.skips = append(s.skips, skip)
			continue
		case err != nil:
			s.err = err
			continue
		case c.Kind == millrace.Put:
			s.puts = append(s.puts, c)
		case c.Kind == millrace.Delete:
			s.deleted = append(s.deleted, c.URL)
		case c.Checkpoint != nil:
			s.marks = append(s.marks, *c.Checkpoint)
		}
		n.take(c)
		s.last = c.Kind
	}
	return s
}

// cursor returns the last cursor of a stream.
func (s *stream) cursor() millrace.Cursor {
	if len(s.marks) == 0 {
		return ""
	}
	return s.marks[len(s.marks)-1].Cursor
}

// names returns the sorted URLs that a stream has named.
func (s *stream) names() (urls []string) {
	for _, c := range s.puts {
		urls = append(urls, c.URL)
	}
	slices.Sort(urls)
	return slices.Compact(urls)
}

// checkStream fails the test unless a stream satisfies the contract of millrace.Source.
func (f *fixture) checkStream(s stream, when string) {
	f.Helper()
	if s.err != nil {
		f.Fatalf("%s: the stream ends with %v", when, s.err)
	}
	if len(s.marks) == 0 || s.last != millrace.KindCheckpoint {
		f.Fatalf("%s: the last of %d changes is not a checkpoint", when, len(s.puts)+len(s.deleted)+len(s.marks))
	}
	for _, m := range s.marks {
		if !utf8.ValidString(string(m.Cursor)) || strings.ContainsFunc(string(m.Cursor), func(r rune) bool { return !unicode.IsPrint(r) }) {
			f.Errorf("%s: the cursor %q is not printable", when, m.Cursor)
		}
	}
	for _, c := range s.puts {
		f.checkURL(c.URL, when)
		if c.Page != nil {
			f.checkPage(c.Page, when)
		}
	}
	for _, skip := range s.skips {
		if skip.URL == "" || skip.Err == nil {
			f.Errorf("%s: SkipError without a URL or a reason: %+v", when, skip)
		}
		f.checkSentinel(skip.Err, when)
	}
}

// checkURL fails the test unless a URL is canonical, and is an identity or absolute.
func (f *fixture) checkURL(u, when string) {
	f.Helper()
	base, err := url.Parse(f.site.Base())
	f.must(err)
	abs := u
	if strings.HasPrefix(u, "/") {
		abs = canon.Absolute(base.String(), u)
	}
	if c, err := canon.URL(abs); err != nil || c != abs {
		f.Errorf("%s: %q is not canonical: %q, %v", when, u, c, err)
	}
}

// checkPage fails the test if a page has a value in a field that Known does not include, or if the
// page's URL is not canonical.
func (f *fixture) checkPage(p *millrace.Page, when string) {
	f.Helper()
	if p.URL != "" {
		f.checkURL(p.URL, when)
	}
	for _, field := range []struct {
		is      millrace.Fields
		name    string
		present bool
	}{
		{millrace.FieldTitle, "title", p.Title != ""},
		{millrace.FieldDescription, "description", p.Description != ""},
		{millrace.FieldSummary, "summary", p.Summary != ""},
		{millrace.FieldAuthor, "author", p.Author != ""},
		{millrace.FieldPublished, "published", !p.Published.IsZero()},
		{millrace.FieldLanguage, "language", p.Language != ""},
		{millrace.FieldSection, "section", p.Section != ""},
		{millrace.FieldTags, "tags", len(p.Tags) > 0},
		{millrace.FieldKind, "kind", p.Kind != ""},
		{millrace.FieldSchema, "schema", len(p.Schema) > 0},
		{millrace.FieldAccess, "access", p.Access != millrace.Access{}},
		{millrace.FieldContent, "content", len(p.Blocks) > 0},
		{millrace.FieldExtra, "extra", len(p.Extra) > 0},
		{^millrace.AllFields, "unknown fields", p.Known&^millrace.AllFields != 0},
	} {
		if field.present && !p.Known.Has(field.is) {
			f.Errorf("%s: %s sets %s, which Known does not include", when, p.URL, field.name)
		}
	}
	if w := p.HTMLSize; w.Bytes < 0 || w.Received < 0 || w.Bytes == 0 && w.Received > 0 || p.Known == 0 && w != (millrace.HTMLSize{}) {
		f.Errorf("%s: %s: invalid HTML size %+v", when, p.URL, w)
	}
	if p.Title == "" && len(p.Blocks) == 0 && p.Known != 0 && !p.Access.NoIndex && !p.Access.Auth {
		f.Errorf("%s: %s has neither a title nor content", when, p.URL)
	}
}

// checkSentinel fails the test unless an error wraps exactly one sentinel error.
func (f *fixture) checkSentinel(err error, when string) {
	f.Helper()
	n := 0
	for _, s := range []error{
		millrace.ErrNotFound, millrace.ErrInvalid, millrace.ErrConflict, millrace.ErrUnavailable,
		millrace.ErrUnmodified, millrace.ErrForbidden, millrace.ErrTooLarge, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, s) {
			n++
		}
	}
	if n != 1 {
		f.Errorf("%s: the error wraps %d sentinels, want 1: %v", when, n, err)
	}
}

// isAlias reports whether a change is for an alias.
func isAlias(c millrace.Change) bool { return c.Page != nil && c.Page.Known == 0 }

func streamEnds(f *fixture) {
	n := newRefStore(nil)
	src := f.source(n.knownRefs)
	first := n.read(f.Context(), src, "")
	f.checkStream(first, "the first stream")
	if len(first.names()) < size {
		f.Fatalf("the stream names %d pages, the site has %d", len(first.names()), size)
	}
	again := newRefStore(nil)
	second := again.read(f.Context(), f.source(again.knownRefs), "")
	f.checkStream(second, "the stream of another process")
	if !slices.Equal(first.names(), second.names()) {
		f.Errorf("two streams from the start name %q and %q", first.names(), second.names())
	}
	third := n.read(f.Context(), src, first.cursor())
	f.checkStream(third, "the next stream of the same source")
}

func pagesAsked(f *fixture) {
	ctx, n := f.Context(), newRefStore(nil)
	s := n.read(ctx, f.source(n.knownRefs), "")
	f.checkStream(s, "the stream")
	src := f.source(n.knownRefs)
	found := map[string]bool{}
	for _, c := range s.puts {
		if isAlias(c) {
			continue
		}
		p, err := src.Page(ctx, millrace.Ref{URL: c.URL, Location: c.Location, Section: c.Section})
		if err != nil {
			f.Errorf("page %s of the stream: %v", c.URL, err)
			continue
		}
		f.checkPage(p, "page "+c.URL)
		if c.Page != nil && revision(c.Page) != revision(p) {
			f.Errorf("page %s differs from the one in the stream:\n%s\n%s", c.URL, c.Page.Canonical(), p.Canonical())
		}
		found[p.Title] = true
		f.conditional(src, c.Ref, p)
	}
	for name, w := range f.model {
		if !found[w.title] {
			f.Errorf("the stream lacks the page %s", name)
		}
	}
	for _, u := range []string{f.site.URL("no-such-page"), "", "::", "/%zz", "http://"} {
		p, err := src.Page(ctx, millrace.Ref{URL: u})
		if err == nil || u != "" && u[0] == '/' && u[1] != '%' && !errors.Is(err, millrace.ErrNotFound) {
			f.Errorf("page %q, which does not exist: %v, %v", u, p, err)
			continue
		}
		f.checkSentinel(err, "page "+u)
	}
}

// conditional fetches a stored page with its version, and with versions that the page never had.
func (f *fixture) conditional(src millrace.Source, ref millrace.Ref, p *millrace.Page) {
	f.Helper()
	if ref.Version = p.Version; ref.Version == "" {
		return // the page has no version to send
	}
	if q, err := src.Page(f.Context(), ref); !errors.Is(err, millrace.ErrUnmodified) {
		f.Errorf("page %s with its version %q: %v, %v", ref.URL, ref.Version, q, err)
	}
	for _, v := range []string{ref.Version + "0", "0", "~", ref.Version[:len(ref.Version)-1]} {
		ref.Version = v
		if q, err := src.Page(f.Context(), ref); v != "" && (err != nil || revision(q) != revision(p)) {
			f.Errorf("page %s with the version %q, which it never had: %v", ref.URL, v, err)
		}
	}
}

func pagesAtOnce(f *fixture) {
	ctx, n := f.Context(), newRefStore(nil)
	src := f.source(n.knownRefs)
	s := n.read(ctx, src, "")
	f.checkStream(s, "the stream")
	want := map[string]string{}
	for _, c := range s.puts {
		if isAlias(c) {
			continue
		}
		p, err := src.Page(ctx, millrace.Ref{URL: c.URL, Location: c.Location})
		f.must(err)
		want[c.URL] = revision(p)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range s.puts {
				c := s.puts[(k+i*3)%len(s.puts)]
				if isAlias(c) {
					continue
				}
				p, err := src.Page(ctx, millrace.Ref{URL: c.URL, Location: c.Location})
				if err != nil || revision(p) != want[c.URL] {
					f.Errorf("page %s, fetched by eight goroutines: %v, %v", c.URL, p, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func cursorResumes(f *fixture) {
	n := newRefStore(nil)
	s := n.read(f.Context(), f.source(n.knownRefs), "")
	f.checkStream(s, "the first stream")
	before := newRefStore(n.refs)
	f.put("page-03")
	f.put("page-11")
	f.put("page-new")
	s = n.read(f.Context(), f.source(before.knownRefs), s.cursor())
	f.checkStream(s, "the stream from the cursor")
	src, changed := f.source(n.knownRefs), map[string]bool{}
	for _, c := range s.puts {
		if have, ok := before.refs[c.URL]; ok && c.Page == nil && c.Version != "" && c.Version == have.Version {
			continue // the page is unchanged
		}
		if isAlias(c) {
			continue
		}
		p := c.Page
		if p == nil {
			var err error
			p, err = src.Page(f.Context(), millrace.Ref{URL: c.URL, Location: c.Location})
			f.must(err)
		}
		changed[p.Title] = true
	}
	for _, name := range []string{"page-03", "page-11", "page-new"} {
		if !changed[f.model[name].title] {
			f.Errorf("the stream from the cursor lacks the change of %s", name)
		}
	}
}

func cursorGarbled(f *fixture) {
	n := newRefStore(nil)
	s := n.read(f.Context(), f.source(n.knownRefs), "")
	f.checkStream(s, "the stream")
	c, want := s.cursor(), s.names()
	for _, bad := range []millrace.Cursor{
		"x", "{}", "[]", "null", `""`, "-1", "99999999999999999999", `{"a":`, "%00",
		millrace.Cursor(strings.Repeat("A", 10000)), c + "~", c[:len(c)/2],
	} {
		none := newRefStore(nil)
		s := none.read(f.Context(), f.source(none.knownRefs), bad)
		if errors.Is(s.err, millrace.ErrConflict) && len(s.marks) == 0 {
			continue
		}
		if s.err != nil || !slices.Equal(s.names(), want) {
			f.Errorf("from the cursor %.40q the stream names %d of %d pages and ends with %v", bad, len(s.names()), len(want), s.err)
		}
	}
}
