package protocoltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol"
)

// Run tests the equation, and the related requirements, for one protocol.
func Run(t *testing.T, p protocol.Protocol) {
	t.Run("descriptor", func(t *testing.T) { descriptor(t, p) })
	sites := uint64(testkit.Size(2, 2, 12))
	for seed := range sites {
		t.Run(fmt.Sprintf("site%d", seed), func(t *testing.T) {
			o := &protocol.PublisherOptions{}
			if seed%2 == 1 {
				o.ListItems = 8
			}
			s := start(t, p, o, seed)
			s.carry(t)
			s.documents(t)
			s.roundTrip(t)
			s.single(t)
		})
	}
	t.Run("cancel", func(t *testing.T) { start(t, p, nil, 1).cancel(t) })
	t.Run("probe", func(t *testing.T) { Probe(t, p, nil) })
}

func descriptor(t *testing.T, p protocol.Protocol) {
	if p.Name == "" || p.Title == "" || p.Version == "" {
		t.Errorf("the descriptor is incomplete: %+v", p)
	}
	if _, err := time.Parse(time.DateOnly, p.Date); p.Date != "" && err != nil {
		t.Errorf("Date: %v", err)
	}
	if p.Carry == nil || p.NewPublisher == nil || p.NewReader == nil || p.Probe == nil || p.Rules == nil {
		t.Fatal("a function of the descriptor is nil")
	}
	if p.Tagger.Protocol != p.Name {
		t.Errorf("the tagger has protocol %q, want %q", p.Tagger.Protocol, p.Name)
	}
}

// site is a generated site with its server.
type site struct {
	p     protocol.Protocol
	o     *protocol.PublisherOptions
	seed  uint64
	pages []*millrace.Page
	view  *View
	srv   *Server
	url   string
	http  *http.Client
}

func start(t *testing.T, p protocol.Protocol, o *protocol.PublisherOptions, seed uint64) *site {
	t.Helper()
	client := fetch.New(&fetch.Options{AllowPrivate: true})
	t.Cleanup(client.CloseIdleConnections)
	s := &site{p: p, o: o, seed: seed, pages: Pages(seed), srv: Serve(p, o), http: client.HTTP()}
	h := httptest.NewServer(s.srv)
	t.Cleanup(h.Close)
	s.url = h.URL + "/"
	s.show(t, s.pages, 1)
	return s
}

func (s *site) show(t *testing.T, pages []*millrace.Page, seq uint64) {
	t.Helper()
	s.pages = pages
	if s.view == nil {
		s.view = NewView(millrace.Site{Base: s.url, Seq: seq}, pages, s.p.Tagger)
	} else { // later steps have a log of the changes
		s.view = s.view.Next(s.view.Site().Time.Add(time.Hour), pages, s.p.Tagger)
	}
	// A day later, all artifacts may be rebuilt, however long the last ones took.
	s.srv.Now = s.view.Site().Time.AddDate(0, 0, int(seq)-1) //nolint:gosec // 1 or 2
	if err := s.srv.Show(t.Context(), s.view); err != nil {
		t.Fatal(err)
	}
}

func (s *site) reader() millrace.Source { return s.p.NewReader(s.http, s.url, nil) }

// carried returns the pages as the protocol carries them, by URL.
func (s *site) carried(t *testing.T) map[string]*millrace.Page {
	t.Helper()
	out := map[string]*millrace.Page{}
	for p, err := range s.view.Scan(t.Context(), millrace.Scan{WithBlocks: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if c := s.p.Carry(s.view.Site(), p); c != nil {
			out[p.URL] = c
		}
	}
	return out
}

// carry checks that Carry is pure and idempotent, keeps the URL, and carries some content. Without
// content, the equation would hold for a protocol that publishes nothing.
func (s *site) carry(t *testing.T) {
	t.Helper()
	if !slices.ContainsFunc(slices.Collect(maps.Values(s.carried(t))), says) {
		t.Fatal("the protocol carries nothing of this site")
	}
	for p, err := range s.view.Scan(t.Context(), millrace.Scan{WithBlocks: true}) {
		if err != nil {
			t.Fatal(err)
		}
		before := p.Revision()
		once := s.p.Carry(s.view.Site(), p)
		if p.Revision() != before {
			t.Errorf("Carry changes its argument %s", p.URL)
		}
		if once == nil {
			continue
		}
		if once.URL != p.URL {
			t.Errorf("Carry of %s returned page %s", p.URL, once.URL)
		}
		if diff := diffPages(once, s.p.Carry(s.view.Site(), once)); diff != "" {
			t.Errorf("Carry of Carry of %s (-once +twice):\n%s", p.URL, diff)
		}
	}
}

// says reports whether a page has a title, a description, a summary or blocks.
func says(p *millrace.Page) bool {
	return p.Title != "" || p.Description != "" || p.Summary != "" || len(p.Blocks) > 0
}

func diffPages(want, got any) string {
	return cmp.Diff(want, got, cmpopts.IgnoreFields(millrace.Page{}, "Version"), cmpopts.EquateEmpty())
}

// roundTrip checks that the reader gets the carried content, that a second sync transfers and
// renders nothing, and that the changes after an edit update the copy.
func (s *site) roundTrip(t *testing.T) {
	t.Helper()
	copied := &mirror{refs: map[string]millrace.Ref{}, pages: map[string]*millrace.Page{}}
	copied.sync(t, s.reader())
	if diff := diffPages(s.carried(t), copied.pages); diff != "" {
		t.Fatalf("read(publish(view)) is not map(Carry, view) (-carried +read):\n%s", diff)
	}
	writes := s.srv.Writes.Load()
	copied.sync(t, s.reader())
	if copied.got != 0 {
		t.Errorf("nothing changed, but %d pages were fetched", copied.got)
	}
	if n := s.srv.Writes.Load() - writes; n != 0 {
		t.Errorf("nothing changed, but %d documents were written", n)
	}
	src := s.reader()
	for u, ref := range copied.refs {
		if ref.Version == "" {
			continue
		}
		p, err := src.Page(t.Context(), ref)
		if errors.Is(err, errors.ErrUnsupported) {
			break // the protocol has no requests for single pages
		}
		if !errors.Is(err, millrace.ErrUnmodified) {
			t.Errorf("Page with the stored ref of %s: %v, %v", u, p, err)
		}
	}
	s.show(t, edit(s.pages, s.seed), 2)
	copied.sync(t, s.reader())
	if diff := diffPages(s.carried(t), copied.pages); diff != "" {
		t.Errorf("after an edit (-carried +read):\n%s", diff)
	}
	s.heads(t)
	if n := s.srv.quiet.Load(); n != 0 {
		t.Errorf("%d documents were written for a HEAD or a 304", n)
	}
}

// single checks that a page can be read without a list, if the protocol supports this.
func (s *site) single(t *testing.T) {
	t.Helper()
	for u, want := range s.carried(t) {
		if !strings.HasPrefix(u, s.url) {
			continue // served by another host
		}
		got, err := s.reader().Page(t.Context(), millrace.Ref{URL: u})
		if errors.Is(err, errors.ErrUnsupported) {
			return
		}
		if err != nil {
			t.Errorf("Page of %s without a list: %v", u, err)
			continue
		}
		if diff := diffPages(want, got); diff != "" {
			t.Errorf("Page of %s without a list (-carried +read):\n%s", u, diff)
		}
	}
}

// cancel checks that a canceled context stops all operations with its error.
func (s *site) cancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	var last error
	for _, err := range s.reader().Changes(ctx, "") {
		last = err
		if n++; n == 2 {
			cancel()
		}
		if n > 3 && err == nil {
			t.Fatal("the stream continues after its context has ended")
		}
	}
	cancel()
	if !errors.Is(last, context.Canceled) {
		t.Errorf("the stream ended with %v", last)
	}
	if _, err := s.reader().Page(ctx, millrace.Ref{URL: s.url}); !errors.Is(err, context.Canceled) {
		t.Errorf("Page: %v", err)
	}
	for d, err := range s.p.NewPublisher(nil).All(ctx, s.view) {
		if err == nil && !d.Large {
			t.Fatal("All continues after its context has ended")
		}
	}
	for _, err := range s.reader().Changes(t.Context(), "") {
		if err != nil {
			t.Error(err)
		}
		break // an early end must be allowed
	}
}
