package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	artifactmemory "github.com/millrace/millrace/artifact/memory"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/protocol/tct"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// oneView is a publication with one view.
type oneView struct {
	view    millrace.View
	onHead  func() // called by Head; may be nil
	mu      sync.Mutex
	edition store.Edition
}

// oneSite is the site of a oneView.
type oneSite struct {
	store.Site // nil: all other methods panic
	of         *oneView
}

func (s oneSite) Head(ctx context.Context) (millrace.View, error) { return s.of.Head(ctx) }

func (s oneSite) HeadCursor(ctx context.Context) (millrace.Cursor, error) {
	v, err := s.of.Head(ctx)
	return v.Site().At(v.Site().Seq), err
}

// source returns the source of an edition server.
func (s *oneView) source() edition.Source {
	return edition.Source{Store: memory.New(nil), Site: oneSite{of: s}, Publication: s}
}

func (s *oneView) Name() string { return "one view" }

func (s *oneView) Refresh(context.Context, store.Lease, int, func(done, total int)) (bool, error) {
	return false, nil
}

func (s *oneView) Head(context.Context) (millrace.View, error) {
	if s.onHead != nil {
		s.onHead()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view, nil
}

func (s *oneView) Published(context.Context) (millrace.View, store.Edition, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.edition.Number == 0 {
		return nil, store.Edition{}, millrace.ErrNotFound
	}
	return s.view, s.edition, nil
}

func (s *oneView) Publish(_ context.Context, _ store.Lease, _, _ uint64, manifest []byte) (store.Edition, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edition = store.Edition{Number: s.edition.Number + 1, Manifest: manifest}
	return s.edition, nil
}

// tree is an in-memory folder.
type tree struct{ fstest.MapFS }

func (f tree) Peek(name string) (fs.FileInfo, error) { return fs.Stat(f, name) }

func (f tree) Lookup(p string) (file, redirect string, err error) {
	p, _, _ = strings.Cut(p, "?")
	name := strings.Trim(p, "/")
	switch {
	case strings.HasSuffix(p, "/index.html"):
		return "", strings.TrimSuffix(p, "index.html"), nil
	case strings.HasSuffix(p, "/"):
		name = strings.TrimPrefix(name+"/index.html", "/")
	}
	if info, err := fs.Stat(f, name); err == nil && !info.IsDir() {
		return name, "", nil
	} else if err == nil {
		return "", p + "/", nil
	}
	return "", "", millrace.ErrNotFound
}

var past = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func inMemory(files ...string) tree {
	f := tree{fstest.MapFS{}}
	for i := 0; i < len(files); i += 2 {
		f.MapFS[files[i]] = &fstest.MapFile{Data: []byte(files[i+1]), ModTime: past}
	}
	return f
}

// setup configures the gateway of a test.
type setup struct {
	base, docs string // "" = https://x.test/
	pages      []*millrace.Page
	files      proxy.Files        // nil = none
	protocols  []edition.Protocol // in addition to tct-01, which comes first
	guarded    bool               // tct-01 is guarded
	site       *oneView           // set by gateway; nil = a new one
	unready    bool               // nothing is published
	artifacts  artifact.Store     // nil = in memory
	cache      int64              // CacheBytes of the edition server
	o          Options            // gateway sets Base, EndpointBase, Origin and the loggers
	log        *bytes.Buffer      // nil = none
}

func (s setup) gateway(t testing.TB) *Gateway {
	t.Helper()
	if s.base == "" {
		s.base = "https://x.test/"
	}
	if s.docs == "" {
		s.docs = s.base
	}
	if s.pages == nil {
		s.pages = []*millrace.Page{page("/", "Home"), page("/a/", "A"), page("/b.html", "B")}
	}
	for _, p := range s.pages {
		p.URL = strings.TrimSuffix(s.base, "/") + p.URL
	}
	draft := tct.Draft01()
	view := protocoltest.NewView(millrace.Site{Base: s.base, EndpointBase: s.docs, Epoch: "e", Seq: 1, Time: past}, s.pages, draft.Tagger)
	log := slog.New(slog.DiscardHandler)
	if s.log != nil {
		log = slog.New(slog.NewTextHandler(s.log, nil))
	}
	protocols := append([]edition.Protocol{{Name: draft.Name, Publisher: draft.NewPublisher(nil), Guarded: s.guarded}}, s.protocols...)
	eo := &edition.Options{Logger: log, CacheBytes: s.cache}
	if s.files != nil {
		origin, err := proxy.NewFiles(s.files, s.base, log)
		if err != nil {
			t.Fatal(err)
		}
		s.o.Origin = origin
	}
	if s.site == nil {
		s.site = new(oneView)
	}
	s.site.view = view
	if s.artifacts == nil {
		s.artifacts = artifactmemory.New(nil)
	}
	server := edition.NewServer(s.site.source(), protocols, s.artifacts, eo)
	if !s.unready {
		if _, err := server.Publish(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.o.Base, s.o.EndpointBase, s.o.Logger = s.base, s.docs, log
	g, err := New(server, &s.o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func page(id, title string) *millrace.Page {
	return &millrace.Page{
		URL: id, Title: title, Known: millrace.AllFields, Detail: millrace.DetailBlocks, Kind: millrace.Article, Modified: past,
		Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: strings.Repeat("All about "+title+". ", 30)}},
	}
}

// ask sends a request; header fields come in pairs.
func ask(g http.Handler, method, target string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = fmt.Sprintf("[2001:db8:%x::1]:1", asked.Add(1)%0xffff) // a new network each time, because of the limit of invalid keys
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

var asked atomic.Int64
