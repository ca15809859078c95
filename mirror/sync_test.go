package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
)

// site is a source that lists its pages with versions, in one list or in sections.
type site struct {
	mu       sync.Mutex
	pages    map[string]string // URL -> version, which is also the title
	section  func(url string) string
	broken   map[string]error // errors of Page, by URL
	listErr  error            // if set, the stream fails with it after the first half of the pages
	skips    []string
	absent   bool     // Page reports pages in skip as missing
	asked    []string // requested URLs
	have     map[string]string
	since    []millrace.Cursor
	conflict bool // refuse every cursor
	delay    time.Duration
}

func (s *site) Changes(_ context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	s.mu.Lock()
	s.since = append(s.since, since)
	s.mu.Unlock()
	return func(yield func(millrace.Change, error) bool) {
		if s.conflict && since != "" {
			yield(millrace.Change{}, fmt.Errorf("cursor %s: %w", since, millrace.ErrConflict))
			return
		}
		urls := slices.Sorted(maps.Keys(s.pages))
		sections := map[string][]string{}
		for _, u := range urls {
			sec := ""
			if s.section != nil {
				sec = s.section(u)
			}
			sections[sec] = append(sections[sec], u)
		}
		if len(sections) == 0 {
			sections[""] = nil
		}
		for _, u := range s.skips {
			if !yield(millrace.Change{}, &millrace.SkipError{URL: u, Err: millrace.ErrInvalid, Absent: s.absent}) {
				return
			}
		}
		for _, sec := range slices.Sorted(maps.Keys(sections)) {
			for i, u := range sections[sec] {
				if s.listErr != nil && i == len(sections[sec])/2 {
					yield(millrace.Change{}, s.listErr)
					return
				}
				if !yield(millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: u, Version: s.pages[u], Section: sec}}, nil) {
					return
				}
			}
			if !yield(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: "c" + millrace.Cursor(strconv.Itoa(len(urls))), Complete: true, Section: sec}}, nil) {
				return
			}
		}
	}
}

func (s *site) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	if s.delay > 0 {
		select {
		case <-time.After(s.delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, have.URL)
	if s.have == nil {
		s.have = map[string]string{}
	}
	s.have[have.URL] = have.Version
	if err := s.broken[have.URL]; err != nil {
		return nil, err
	}
	v, ok := s.pages[have.URL]
	switch {
	case !ok:
		return nil, millrace.ErrNotFound
	case v == have.Version:
		return nil, millrace.ErrUnmodified
	}
	return &millrace.Page{URL: have.URL, Title: v, Version: v, Known: millrace.FieldTitle}, nil
}

func (s *site) takeAsked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.asked
	s.asked = nil
	slices.Sort(a)
	return a
}

// sink stores titles and the sync state in memory.
type sink struct {
	mu      sync.Mutex
	titles  map[string]string
	refs    map[string]millrace.Ref
	cursor  millrace.Cursor
	batches int
	fail    error // error of every Apply
	failAt  int   // number of the batch that fails, starting with 1; 0 = all
}

func newSink() *sink { return &sink{titles: map[string]string{}, refs: map[string]millrace.Ref{}} }

func (s *sink) Apply(_ context.Context, _ string, batch []millrace.Change) (t millrace.Counts, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches++
	if s.fail != nil && (s.failAt == 0 || s.failAt == s.batches) {
		return t, s.fail
	}
	for i, c := range batch {
		switch c.Kind {
		case millrace.Put:
			ref := c.Ref
			if c.Page != nil {
				if c.Page.Version != "" { // as in a store
					ref.Version = c.Page.Version
				}
				switch old, ok := s.titles[c.URL]; {
				case !ok:
					t.Added++
				case old != c.Page.Title:
					t.Updated++
				default:
					t.Unchanged++
				}
				s.titles[c.URL] = c.Page.Title
			} else {
				t.Unchanged++
			}
			s.refs[c.URL] = ref
		case millrace.Delete:
			delete(s.titles, c.URL)
			delete(s.refs, c.URL)
			t.Deleted++
		case millrace.KindCheckpoint:
			if i != len(batch)-1 {
				return t, errors.New("the mark is not the last change of its batch")
			}
			s.cursor = c.Checkpoint.Cursor
		}
	}
	return t, nil
}

func (s *sink) Cursor(context.Context, string) (millrace.Cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursor, nil
}

func (s *sink) KnownRefs(_ context.Context, _ string, urls ...string) iter.Seq2[millrace.Ref, error] {
	s.mu.Lock()
	refs := maps.Clone(s.refs)
	s.mu.Unlock()
	if len(urls) == 0 {
		urls = slices.Sorted(maps.Keys(refs))
	}
	return func(yield func(millrace.Ref, error) bool) {
		for _, u := range urls {
			if r, ok := refs[u]; ok && !yield(r, nil) {
				return
			}
		}
	}
}

// onlySink hides the sync state of a sink.
type onlySink struct{ millrace.Sink }

func pages(n int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprintf("/p%03d", i)] = "v1"
	}
	return m
}

func run(t *testing.T, src millrace.Source, to millrace.Sink, o *mirror.Options) *mirror.Report {
	t.Helper()
	r, err := mirror.Sync(t.Context(), "test", src, to, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantCounts(t *testing.T, r *mirror.Report, want millrace.Counts) {
	t.Helper()
	if d := cmp.Diff(want, r.Counts); d != "" {
		t.Errorf("counts (-want +got):\n%s", d)
	}
}

func TestFirstThenNothing(t *testing.T) {
	src, to := &site{pages: pages(700)}, newSink()
	wantCounts(t, run(t, src, to, nil), millrace.Counts{Added: 700})
	if d := cmp.Diff(src.pages, to.titles); d != "" {
		t.Fatalf("mirror (-source +sink):\n%s", d)
	}
	src.takeAsked()
	batches := to.batches
	wantCounts(t, run(t, src, to, nil), millrace.Counts{Unchanged: 700})
	if asked := src.takeAsked(); len(asked) != 0 {
		t.Errorf("requested %v after no change", asked)
	}
	if to.batches != batches {
		t.Errorf("%d batches applied after no change", to.batches-batches)
	}
	if got := src.since[1]; got != "c700" {
		t.Errorf("second run resumed from %q", got)
	}
}

func TestEditAddRemove(t *testing.T) {
	src, to := &site{pages: pages(100)}, newSink()
	run(t, src, to, nil)
	src.takeAsked()
	src.pages["/p010"] = "v2"
	src.pages["/new"] = "v1"
	delete(src.pages, "/p020")
	wantCounts(t, run(t, src, to, nil), millrace.Counts{Added: 1, Updated: 1, Deleted: 1, Unchanged: 98})
	if d := cmp.Diff([]string{"/new", "/p010"}, src.takeAsked()); d != "" {
		t.Error(d)
	}
	if src.have["/p010"] != "v1" {
		t.Errorf("requested /p010 with the version %q, want the stored version", src.have["/p010"])
	}
	if d := cmp.Diff(src.pages, to.titles); d != "" {
		t.Errorf("mirror (-source +sink):\n%s", d)
	}
}

// The version in the list is only a hint if it differs from the version of the page.
func TestParityMismatch(t *testing.T) {
	src, to := &site{pages: pages(3)}, newSink()
	run(t, src, to, nil)
	lying := &lyingList{site: src}
	src.takeAsked()
	for range 2 {
		wantCounts(t, run(t, lying, to, nil), millrace.Counts{Unchanged: 3})
		if n := len(src.takeAsked()); n != 3 {
			t.Errorf("%d requests, want 3 conditional requests", n)
		}
	}
	if to.refs["/p000"].Version != "v1" {
		t.Errorf("stored version is %q, want the page's own", to.refs["/p000"].Version)
	}
}

type lyingList struct{ *site }

func (l *lyingList) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		for c, err := range l.site.Changes(ctx, since) {
			c.Version += "-stale"
			if !yield(c, err) {
				return
			}
		}
	}
}

func TestPrimaryRule(t *testing.T) {
	for _, tt := range []struct {
		name        string
		remove      int
		unconfirmed bool
	}{
		{"less than a fifth", 19, false},
		{"a fifth", 20, true},
		{"all", 100, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src, to := &site{pages: pages(100)}, newSink()
			run(t, src, to, nil)
			for i := range tt.remove {
				delete(src.pages, fmt.Sprintf("/p%03d", i))
			}
			r := run(t, src, to, nil)
			if !tt.unconfirmed {
				wantCounts(t, r, millrace.Counts{Deleted: tt.remove, Unchanged: 100 - tt.remove})
				return
			}
			if r.UnconfirmedDeletions != tt.remove || r.Deleted != 0 || len(to.titles) != 100 {
				t.Fatalf("unconfirmed %d, deleted %d, %d pages left: want an unconfirmed loss", r.UnconfirmedDeletions, r.Deleted, len(to.titles))
			}
			r = run(t, src, to, nil)
			if r.UnconfirmedDeletions != 0 || r.Deleted != tt.remove {
				t.Fatalf("second run: unconfirmed %d, deleted %d: want a confirmed loss", r.UnconfirmedDeletions, r.Deleted)
			}
		})
	}
}

func TestPrimaryComesBack(t *testing.T) {
	src, to := &site{pages: pages(10)}, newSink()
	run(t, src, to, nil)
	src.pages = nil
	run(t, src, to, nil)
	src.pages = pages(10)
	wantCounts(t, run(t, src, to, nil), millrace.Counts{Unchanged: 10})
	src.pages = nil // a new loss must be confirmed again
	if r := run(t, src, to, nil); r.UnconfirmedDeletions != 10 || len(to.titles) != 10 {
		t.Errorf("unconfirmed %d, %d pages left", r.UnconfirmedDeletions, len(to.titles))
	}
}

// Only pages of sections that were read can be deleted, and a page that moves to another
// section is not deleted.
func TestSections(t *testing.T) {
	bySecond := func(u string) string { return "s" + u[len(u)-1:] }
	src, to := &site{pages: pages(100), section: bySecond}, newSink()
	run(t, src, to, nil)
	src.takeAsked()
	delete(src.pages, "/p013")
	src.section = func(u string) string {
		if u == "/p011" {
			return "s2"
		}
		return bySecond(u)
	}
	r := run(t, src, to, nil)
	if r.Deleted != 1 || to.titles["/p013"] != "" {
		t.Errorf("deleted %d, want only /p013", r.Deleted)
	}
	if to.refs["/p011"].Section != "s2" || to.titles["/p011"] == "" {
		t.Errorf("moved page is stored as %+v", to.refs["/p011"])
	}
	if asked := src.takeAsked(); len(asked) != 0 {
		t.Errorf("asked for %v", asked)
	}
	partial := &part{site: src, section: "s1"}
	delete(src.pages, "/p021")
	delete(src.pages, "/p022")
	if r := run(t, partial, to, nil); r.Deleted != 1 || to.titles["/p022"] == "" {
		t.Errorf("deleted %d pages of a section that was not read", r.Deleted)
	}
}

// part returns only one section, as if the others were not modified.
type part struct {
	*site
	section string
}

func (p *part) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		for c, err := range p.site.Changes(ctx, since) {
			in := c.Section == p.section || c.Checkpoint != nil && c.Checkpoint.Section == p.section
			if in && !yield(c, err) {
				return
			}
		}
	}
}

func TestMissingPageKeepsTheCursor(t *testing.T) {
	src, to := &site{pages: pages(10), broken: map[string]error{"/p003": millrace.ErrNotFound}}, newSink()
	r := run(t, src, to, nil)
	if r.SkippedN != 1 || r.Skipped[0].URL != "/p003" || r.Added != 9 {
		t.Fatalf("report %+v", r)
	}
	src.broken = nil
	src.takeAsked()
	wantCounts(t, run(t, src, to, nil), millrace.Counts{Added: 1, Unchanged: 9})
	if d := cmp.Diff([]millrace.Cursor{"", ""}, src.since); d != "" {
		t.Errorf("the cursor passed a missing page: %s", d)
	}
}

func TestSkippedEntryIsNotAbsent(t *testing.T) {
	src, to := &site{pages: pages(10)}, newSink()
	run(t, src, to, nil)
	delete(src.pages, "/p003")
	src.skips = []string{"/p003"}
	if r := run(t, src, to, nil); r.Deleted != 0 || r.SkippedN != 1 || to.titles["/p003"] == "" {
		t.Errorf("report %+v", r)
	}
	src.absent = true
	if r := run(t, src, to, nil); r.Deleted != 1 || r.SkippedN != 1 || to.titles["/p003"] != "" {
		t.Errorf("the source reports the deletion, report %+v", r)
	}
}

func TestBrokenStreamDeletesNothing(t *testing.T) {
	src, to := &site{pages: pages(10)}, newSink()
	run(t, src, to, nil)
	src.pages["/p000"] = "v2"
	src.listErr = fmt.Errorf("cut: %w", millrace.ErrUnavailable)
	r, err := mirror.Sync(t.Context(), "test", src, to, nil)
	if !errors.Is(err, millrace.ErrUnavailable) || r.Deleted != 0 || len(to.titles) != 10 {
		t.Fatalf("err %v, report %+v", err, r)
	}
	if to.titles["/p000"] != "v2" {
		t.Error("the pages received before the error were not stored")
	}
}

func TestGivesUp(t *testing.T) {
	src, to := &site{pages: pages(500), broken: map[string]error{}}, newSink()
	for u := range src.pages {
		src.broken[u] = fmt.Errorf("503: %w", millrace.ErrUnavailable)
	}
	_, err := mirror.Sync(t.Context(), "test", src, to, &mirror.Options{Failures: 5, Concurrency: 2})
	if !errors.Is(err, millrace.ErrUnavailable) || millrace.ErrorCode(err) != "too-many-failures" {
		t.Fatalf("err = %v", err)
	}
	if n := len(src.takeAsked()); n > 20 {
		t.Errorf("%d requests before the run gave up", n)
	}
}

func TestFallback(t *testing.T) {
	src, to := &site{pages: pages(5), broken: map[string]error{"/p001": millrace.ErrInvalid}}, &stuck{sink: newSink(), start: make(chan struct{})}
	close(to.start)
	o := &mirror.Options{Fallback: func(_ context.Context, ref millrace.Ref) (*millrace.Page, string, error) {
		return &millrace.Page{URL: ref.URL, Title: "from HTML", Version: "x", Known: millrace.FieldTitle, Original: []byte("<p>")}, "crawl", nil
	}}
	r := run(t, src, to, o)
	if r.Fallbacks["crawl"] != 1 || !errors.Is(r.Fallback, millrace.ErrInvalid) || r.SkippedN != 0 {
		t.Fatalf("report %+v", r)
	}
	if to.titles["/p001"] != "from HTML" || to.refs["/p001"].Version != "" {
		t.Errorf("held %+v", to.refs["/p001"])
	}
	if to.bytes != 0 {
		t.Error("the original of the fallback's page was stored")
	}
	src.broken = nil
	run(t, src, to, o)
	if to.titles["/p001"] != "v1" {
		t.Error("the page of the source itself was not stored again")
	}
}

func TestConflictStartsOver(t *testing.T) {
	src, to := &site{pages: pages(10)}, newSink()
	run(t, src, to, nil)
	src.conflict = true
	src.pages["/p000"] = "v2"
	wantCounts(t, run(t, src, to, nil), millrace.Counts{Updated: 1, Unchanged: 9})
}

func TestSinkFails(t *testing.T) {
	src, to := &site{pages: pages(1000)}, newSink()
	to.fail, to.failAt = errors.New("disk full"), 3
	r, err := mirror.Sync(t.Context(), "test", src, to, nil)
	if !errors.Is(err, to.fail) {
		t.Fatalf("err = %v", err)
	}
	if r.Added != len(to.titles) {
		t.Errorf("the report has %d added pages, the sink %d", r.Added, len(to.titles))
	}
	if to.cursor != "" {
		t.Error("the cursor advanced past a rejected batch")
	}
	src.takeAsked()
	stored := len(to.titles)
	to.fail = nil
	run(t, src, to, nil)
	if n := len(src.takeAsked()); n != 1000-stored {
		t.Errorf("requested %d pages again, want %d", n, 1000-stored)
	}
}

func TestWithoutSyncState(t *testing.T) {
	src, to := &site{pages: pages(10)}, newSink()
	for range 2 {
		run(t, src, onlySink{to}, nil)
	}
	if n := len(src.takeAsked()); n != 20 {
		t.Errorf("%d requests, want two for each page", n)
	}
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, to := &site{pages: pages(1000), delay: time.Second}, newSink()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := mirror.Sync(ctx, "test", src, to, &mirror.Options{Concurrency: 3})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("err = %v", err)
		}
		if n := len(to.titles); n < 24 || n > 30 {
			t.Errorf("%d pages stored of the 27 to 30 that had arrived", n)
		}
	})
}

func TestConcurrencyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, to := &site{pages: pages(100), delay: time.Second}, newSink()
		start := time.Now()
		run(t, src, to, &mirror.Options{Concurrency: 10})
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("100 pages of 1 s each, 10 at a time, took %v", d)
		}
	})
}

// stream yields fixed changes.
type stream []millrace.Change

func (s stream) Changes(context.Context, millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		for _, c := range s {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func (s stream) Page(_ context.Context, have millrace.Ref) (*millrace.Page, error) {
	return &millrace.Page{URL: have.URL, Title: "asked", Version: "1", Known: millrace.FieldTitle}, nil
}

func TestLogOrder(t *testing.T) {
	page := func(title string) *millrace.Page {
		return &millrace.Page{URL: "/a", Title: title, Version: title, Known: millrace.FieldTitle}
	}
	put := func(p *millrace.Page) millrace.Change {
		return millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: "/a"}, Page: p}
	}
	mark := func(c millrace.Cursor) millrace.Change {
		return millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: c}}
	}
	del := millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: "/a"}}
	for range 20 {
		to := newSink()
		run(t, stream{put(nil), put(page("second")), del, put(page("third")), mark("1"), put(nil), del, mark("2")}, to, nil)
		if len(to.titles) != 0 {
			t.Fatalf("a page is stored although its last change is a deletion: %v", to.titles)
		}
		if got := string(to.cursor); !strings.Contains(got, `"2"`) {
			t.Fatalf("cursor %s", got)
		}
	}
}

func TestProgress(t *testing.T) {
	src, to := &site{pages: pages(300)}, newSink()
	var last mirror.Progress
	run(t, src, to, &mirror.Options{Progress: func(p mirror.Progress) { last = p }})
	if last.Done != 300 || last.Found == 0 {
		t.Errorf("last progress %+v", last)
	}
}
