package protocoltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
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
	"github.com/millrace/millrace/protocol"
)

// Run runs the law and what goes with it for one protocol.
func Run(t *testing.T, p protocol.Protocol) {
	t.Run("descriptor", func(t *testing.T) { descriptor(t, p) })
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("site%d", seed), func(t *testing.T) {
			o := &protocol.PublisherOptions{}
			if seed%2 == 1 {
				o.ListItems = 8
			}
			s := start(t, p, o, seed)
			s.carry(t)
			s.documents(t)
			s.law(t)
			s.single(t)
		})
	}
	t.Run("cancel", func(t *testing.T) { start(t, p, nil, 1).cancel(t) })
}

func descriptor(t *testing.T, p protocol.Protocol) {
	if p.Name == "" || p.Title == "" || p.Version == "" || p.Source == "" {
		t.Errorf("the descriptor is incomplete: %+v", p)
	}
	if _, err := time.Parse(time.DateOnly, p.Date); err != nil {
		t.Errorf("Date: %v", err)
	}
	if p.Carry == nil || p.NewPublisher == nil || p.NewReader == nil || p.Rules == nil {
		t.Fatal("a function of the descriptor is nil")
	}
	if p.Tagger.Room != p.Name {
		t.Errorf("the tagger is of room %q, the protocol is %q", p.Tagger.Room, p.Name)
	}
}

// site is a generated site that is served.
type site struct {
	p     protocol.Protocol
	o     *protocol.PublisherOptions
	seed  uint64
	pages []*millrace.Page
	view  *View
	srv   *Server
	url   string
}

func start(t *testing.T, p protocol.Protocol, o *protocol.PublisherOptions, seed uint64) *site {
	t.Helper()
	s := &site{p: p, o: o, seed: seed, pages: Pages(seed), srv: Serve(p, o)}
	h := httptest.NewServer(s.srv)
	t.Cleanup(h.Close)
	s.url = h.URL + "/"
	s.show(t, s.pages, 1)
	return s
}

func (s *site) show(t *testing.T, pages []*millrace.Page, seq uint64) {
	t.Helper()
	s.pages = pages
	s.view = NewView(millrace.Site{Base: s.url, Seq: seq}, pages, s.p.Tagger)
	if err := s.srv.Show(t.Context(), s.view); err != nil {
		t.Fatal(err)
	}
}

func (s *site) reader() millrace.Source {
	client := fetch.New(&fetch.Options{AllowPrivate: true}).HTTP()
	return s.p.NewReader(client, s.url, nil)
}

// carried gives what the protocol says that it carries of the site, by URL.
func (s *site) carried(t *testing.T) map[string]*millrace.Page {
	t.Helper()
	out := map[string]*millrace.Page{}
	for p, err := range s.view.Scan(t.Context(), millrace.Scan{Bodies: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if c := s.p.Carry(p); c != nil {
			out[p.URL] = c
		}
	}
	return out
}

// carry: Carry is pure, idempotent, and keeps the URL.
func (s *site) carry(t *testing.T) {
	t.Helper()
	for p, err := range s.view.Scan(t.Context(), millrace.Scan{Bodies: true}) {
		if err != nil {
			t.Fatal(err)
		}
		before := p.Revision()
		once := s.p.Carry(p)
		if p.Revision() != before {
			t.Errorf("Carry changes its argument %s", p.URL)
		}
		if once == nil {
			continue
		}
		if once.URL != p.URL {
			t.Errorf("Carry of %s is a page %s", p.URL, once.URL)
		}
		if diff := diffPages(once, s.p.Carry(once)); diff != "" {
			t.Errorf("Carry of Carry of %s (-once +twice):\n%s", p.URL, diff)
		}
	}
}

func diffPages(want, got any) string {
	return cmp.Diff(want, got, cmpopts.IgnoreFields(millrace.Page{}, "Version"), cmpopts.EquateEmpty())
}

// documents: All and Find agree, tags are strong and stand for one sequence of
// bytes, and another publisher over another view of the same pages gives the
// same bytes.
func (s *site) documents(t *testing.T) {
	t.Helper()
	shuffled := slices.Clone(s.pages)
	rand.New(rand.NewPCG(s.seed, 3)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	twin := NewView(s.view.Site(), shuffled, s.p.Tagger)
	docs := s.all(t, s.p.NewPublisher(s.o), s.view)
	twins := s.all(t, s.p.NewPublisher(s.o), twin)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(docs)), slices.Sorted(maps.Keys(twins))); diff != "" {
		t.Errorf("two publishers have other documents (-one +other):\n%s", diff)
	}
	pub := s.p.NewPublisher(s.o)
	for path, d := range docs {
		body := write(t, d)
		if again := write(t, d); !bytes.Equal(body, again) {
			t.Errorf("%s: written twice it is %q and %q", path, body, again)
		}
		other := twins[path]
		if other == nil {
			continue
		}
		if !bytes.Equal(body, write(t, other)) || d.ETag != other.ETag || !cmp.Equal(d.Header, other.Header) {
			t.Errorf("%s: two publishers give other documents", path)
		}
		if strings.HasPrefix(d.ETag, "W/") || strings.ContainsAny(d.ETag, "\" \t") || d.ETag == "" && !d.Large {
			t.Errorf("%s: %q is no strong tag", path, d.ETag)
		}
		if d.Large {
			continue
		}
		found, err := pub.Find(t.Context(), s.view, httptest.NewRequest(http.MethodGet, "http://docs"+path, nil))
		if err != nil {
			t.Errorf("All has %s, Find: %v", path, err)
			continue
		}
		if found.Path != path || found.ETag != d.ETag || !cmp.Equal(found.Header, d.Header) || !bytes.Equal(write(t, found), body) {
			t.Errorf("Find of %s gives %s with tag %s, All %s with %s", path, found.Path, found.ETag, d.Path, d.ETag)
		}
	}
	for _, path := range []string{"/none", "/none/llm.json", "/llm/~3/llm.json?x", "/%00", "/a/../b"} {
		if docs[path] != nil {
			continue
		}
		d, err := pub.Find(t.Context(), s.view, httptest.NewRequest(http.MethodGet, "http://docs"+path, nil))
		if !errors.Is(err, millrace.ErrNotFound) {
			t.Errorf("Find of %s: %v, %v", path, d, err)
		}
	}
}

// all gives the documents of a view by path, and checks that large ones come
// first and that no path comes twice.
func (s *site) all(t *testing.T, pub millrace.Publisher, v millrace.View) map[string]*millrace.Document {
	t.Helper()
	docs := map[string]*millrace.Document{}
	small := false
	for d, err := range pub.All(t.Context(), v) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Large && small {
			t.Errorf("%s: a large document after a small one", d.Path)
		}
		small = small || !d.Large
		if docs[d.Path] != nil {
			t.Errorf("%s: two documents have that path", d.Path)
		}
		if !strings.HasPrefix(d.Path, "/") {
			t.Errorf("%s: no path", d.Path)
		}
		docs[d.Path] = d
	}
	return docs
}

func write(t *testing.T, d *millrace.Document) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := d.Write(t.Context(), &b); err != nil {
		t.Fatalf("%s: %v", d.Path, err)
	}
	return b.Bytes()
}

// law: what is read is what is carried; asked again, nothing has changed and
// nothing is rendered; after an edit the difference brings the copy up to date.
func (s *site) law(t *testing.T) {
	t.Helper()
	copied := &mirror{refs: map[string]millrace.Ref{}, pages: map[string]*millrace.Page{}}
	copied.sync(t, s.reader())
	if diff := diffPages(s.carried(t), copied.pages); diff != "" {
		t.Fatalf("read(publish(view)) is not map(Carry, view) (-carried +read):\n%s", diff)
	}
	writes := s.srv.Writes.Load()
	copied.sync(t, s.reader())
	if copied.got != 0 {
		t.Errorf("nothing changed, and %d pages were got", copied.got)
	}
	if n := s.srv.Writes.Load() - writes; n != 0 {
		t.Errorf("nothing changed, and %d documents were written", n)
	}
	src := s.reader()
	for u, ref := range copied.refs {
		if ref.Version == "" {
			continue
		}
		if p, err := src.Page(t.Context(), ref); !errors.Is(err, millrace.ErrUnmodified) {
			t.Errorf("Page of what is held of %s: %v, %v", u, p, err)
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

// heads sends a HEAD and a conditional GET for every document.
func (s *site) heads(t *testing.T) {
	t.Helper()
	for path := range s.all(t, s.p.NewPublisher(s.o), s.view) {
		head := s.ask(t, http.MethodHead, path, "")
		if head.StatusCode != http.StatusOK || head.Header.Get("ETag") == "" {
			t.Errorf("HEAD %s: %s with ETag %q", path, head.Status, head.Header.Get("ETag"))
		}
		if r := s.ask(t, http.MethodGet, path, head.Header.Get("ETag")); r.StatusCode != http.StatusNotModified {
			t.Errorf("GET %s with its own ETag: %s", path, r.Status)
		}
	}
}

func (s *site) ask(t *testing.T, method, path, etag string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(s.url, "/")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

// single: a page is found without a list, where the protocol can do that.
func (s *site) single(t *testing.T) {
	t.Helper()
	for u, want := range s.carried(t) {
		if !strings.HasPrefix(u, s.url) {
			continue // it is served elsewhere
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

// cancel: a context that ends stops everything with its own error.
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
			t.Fatal("the stream goes on after its context")
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
			t.Fatal("All goes on after its context")
		}
	}
	for range s.reader().Changes(t.Context(), "") {
		break // and the iterator stands it
	}
}

// mirror is the least that a sink has to do with a stream.
type mirror struct {
	cursor millrace.Cursor
	refs   map[string]millrace.Ref
	pages  map[string]*millrace.Page
	got    int // pages got by the last sync
}

func (m *mirror) sync(t *testing.T, src millrace.Source) {
	t.Helper()
	m.got = 0
	named := map[string]bool{}
	marks := 0
	for c, err := range src.Changes(t.Context(), m.cursor) {
		if err != nil {
			t.Fatalf("Changes: %v", err)
		}
		switch c.Kind {
		case millrace.Put:
			named[c.URL] = true
			m.put(t, src, c)
		case millrace.Delete:
			delete(m.refs, c.URL)
			delete(m.pages, c.URL)
		case millrace.Mark:
			marks++
			m.cursor = c.Mark.Cursor
			for u, ref := range m.refs {
				if c.Mark.Whole && !named[u] && (c.Mark.Section == "" || c.Mark.Section == ref.Section) {
					delete(m.refs, u)
					delete(m.pages, u)
				}
			}
		}
	}
	if marks == 0 {
		t.Error("the stream has no milestone")
	}
}

func (m *mirror) put(t *testing.T, src millrace.Source, c millrace.Change) {
	t.Helper()
	held, ok := m.refs[c.URL]
	if ok && c.Version != "" && c.Version == held.Version && c.Location == held.Location {
		m.refs[c.URL] = c.Ref
		return
	}
	p := c.Page
	if p == nil {
		have := c.Ref
		have.Version = ""
		if held.Location == c.Location {
			have.Version = held.Version
		}
		var err error
		p, err = src.Page(t.Context(), have)
		if errors.Is(err, millrace.ErrUnmodified) && ok {
			return
		}
		if err != nil {
			t.Fatalf("Page of %s: %v", c.URL, err)
		}
	}
	m.got++
	ref := c.Ref
	ref.Version = p.Version
	m.refs[c.URL], m.pages[c.URL] = ref, p
}
