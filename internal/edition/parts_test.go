package edition

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// batchSite is a site in a store that records its states.
type batchSite struct {
	store.Site
	pages  map[string]string
	all    map[string]bool     // all pages of all states
	states []map[string]string // after each batch
}

const batchBase = "https://example.com/"

// apply applies a batch; an empty text deletes a page.
func (s *batchSite) apply(t *testing.T, batch map[string]string) {
	t.Helper()
	var changes []millrace.Change
	for url, text := range batch {
		c := millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: url}}
		if delete(s.pages, url); text != "" {
			c.Kind, c.Page = millrace.Put, &millrace.Page{URL: url, Title: text, Known: millrace.FieldTitle}
			s.pages[url] = text
		}
		s.all[url] = true
		changes = append(changes, c)
	}
	if _, err := s.Apply(t.Context(), "test", changes); err != nil {
		t.Fatal(err)
	}
	s.states = append(s.states, maps.Clone(s.pages))
}

// titleProtocol has one list of titles, and records the views that it was built from.
type titleProtocol struct {
	silent
	views []millrace.View
	built func() // called for each view; may be nil
}

func (r *titleProtocol) All(ctx context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) {
		r.views = append(r.views, v)
		if r.built != nil {
			r.built()
		}
		titles, err := titlesOf(ctx, v)
		l := lines(titles).parts()
		yield(&millrace.Document{Path: "/list.txt", Large: true, Parts: l, Write: l.Write}, err)
	}
}

func titlesOf(ctx context.Context, v millrace.View) (map[string]string, error) {
	titles := make(map[string]string)
	for page, err := range v.Scan(ctx, millrace.Scan{}) {
		if err != nil {
			return nil, err
		}
		titles[page.URL] = page.Title
	}
	return titles, nil
}

// batchServer returns a server of a site whose parts have at least 10 pages.
func batchServer(t *testing.T, st store.Store, site store.Site, proto *titleProtocol, artifacts artifact.Store) *Server {
	t.Helper()
	pub, err := site.Publication(t.Context(), store.Config{Base: batchBase})
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(Source{Store: st, Site: site, Publication: pub}, []Protocol{{Name: "titles", Publisher: proto}}, artifacts, &Options{Logger: slog.New(slog.DiscardHandler)})
	s.partEntries = 10
	return s
}

// Many changed pages are published in parts of complete batches. Each change is in one part, even
// if the process ends while it publishes any of them.
func TestParts(t *testing.T) {
	for end := range 4 { // 0 = the process does not end
		t.Run(fmt.Sprint(end), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { publishInParts(t, end) })
		})
	}
}

func publishInParts(t *testing.T, end int) {
	st, artifacts, proto := memory.New(nil), newArtifacts(), &titleProtocol{}
	in, err := st.Site(t.Context(), batchBase, batchBase)
	if err != nil {
		t.Fatal(err)
	}
	site := &batchSite{Site: in, pages: map[string]string{}, all: map[string]bool{}}
	change := func(from, to int, text string) {
		batch := make(map[string]string)
		for i := from; i < to; i++ {
			batch[fmt.Sprintf("%sp%02d", batchBase, i)] = text
		}
		site.apply(t, batch)
	}
	s := batchServer(t, st, in, proto, artifacts)
	change(0, 20, "first")
	change(20, 40, "first")
	publish(t, s)
	for i := range 6 { // 7 pages in each batch, 3 of them also in the previous one
		change(4*i, 4*i+7, []string{"", "second", "third"}[i%3])
		time.Sleep(time.Second)
	}
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	proto.built = func() {
		if _, waiting := s.Lag(); end == 0 && waiting == 0 {
			t.Error("no change waits while a part is built")
		}
		if len(proto.views) == end+1 {
			kill()
		}
	}
	publishAll := func(ctx context.Context, s *Server) {
		ctx, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		s.Run(ctx)
	}
	if end > 0 {
		publishAll(ctx, s)
		proto.built = nil
		s = batchServer(t, st, in, proto, artifacts)
		if err := s.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	publishAll(t.Context(), s)
	if _, waiting := s.Lag(); waiting != 0 {
		t.Errorf("a change waits for %v", waiting)
	}
	if at := s.Current().View.Site().Time; at.Sub(start) >= time.Second {
		t.Errorf("the last part was published after %v", at.Sub(start))
	}

	views := slices.CompactFunc(proto.views, func(a, b millrace.View) bool { return a.Site().Seq == b.Site().Seq })
	complete := []map[string]string{site.states[1], site.states[3], site.states[5], site.states[7]}
	var titles []map[string]string
	for i, v := range views {
		got, err := titlesOf(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		titles = append(titles, got)
		if i == 0 {
			continue
		}
		last := views[i-1].Site()
		exp := make(map[string]string) // changed pages
		for url := range site.all {
			if titles[i][url] != titles[i-1][url] {
				exp[url] = titles[i][url]
			}
		}
		for c, err := range v.Changes(t.Context(), last.At(last.Seq)) {
			if err != nil {
				t.Fatal(err)
			}
			if c.Kind == millrace.KindCheckpoint {
				continue
			}
			if _, ok := exp[c.URL]; !ok {
				t.Errorf("part %d shows a change of %s", i, c.URL)
			}
			delete(exp, c.URL)
		}
		if len(exp) > 0 {
			t.Errorf("part %d does not show the changes of %v", i, exp)
		}
	}
	if !slices.EqualFunc(titles, complete, maps.Equal) {
		t.Errorf("%d editions with\n%v\nwant\n%v", len(titles), titles, complete)
	}
	if n := s.Current().stored; end == 0 && n != 4 {
		t.Errorf("edition %d, want 4", n)
	}
	var list bytes.Buffer
	if err := lines(site.pages).parts().Write(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, s, "GET", "/list.txt").Body.String(); got != list.String() {
		t.Errorf("the list at the end: %s\nwant %s", got, &list)
	}
}
