package dashboard

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	artifactmemory "github.com/millrace/millrace/artifact/memory"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin/folder"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/protocol/scp"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// handbook is a site from a folder in a real store, published in every protocol.
type handbook struct {
	*SiteOptions
	dir   string
	store *memory.Store
	from  edition.Source
	take  func() // reads the folder into the store

	public http.Handler // the site for everyone
}

func newHandbook(t testing.TB, base string, guarded bool) *handbook {
	t.Helper()
	ctx, log := t.Context(), slog.New(slog.DiscardHandler)
	h := &handbook{dir: t.TempDir()}
	// Start some hours before seedTime, which is the current time of the dashboard.
	began := time.Now()
	now := func() time.Time { return seedTime.Add(time.Since(began) - 3*time.Hour) }
	if err := os.CopyFS(h.dir, os.DirFS("../../testdata/sites/handbook")); err != nil {
		t.Fatal(err)
	}
	f, err := folder.New(h.dir, &folder.Options{Base: base})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	h.store = memory.New(&store.Options{Logger: log, Now: now})
	conf := store.Config{Base: base, EndpointBase: base}
	var published []edition.Protocol
	protocols := slices.DeleteFunc(all.Protocols(), func(p protocol.Protocol) bool {
		return guarded && p.Name == scp.Protocol().Name // its files are public by design
	})
	policy := &millrace.Policy{
		Terms: base + "terms", Contact: "mailto:rights@handbook.test",
		Purposes:     map[millrace.Purpose]bool{millrace.Search: true, millrace.AITrain: false},
		Requirements: millrace.Requirements{Attribution: true}, Rate: millrace.RateHints{PerSecond: 0.5, Note: "more at night"},
	}
	o := &protocol.PublisherOptions{Auth: guarded, Policy: policy}
	for _, proto := range protocols {
		o.Protocols = append(o.Protocols, proto.Name)
	}
	for _, proto := range protocols {
		conf.Taggers = append(conf.Taggers, proto.Tagger)
		published = append(published, edition.Protocol{
			Name: proto.Name, Guarded: guarded,
			Publisher: proto.NewPublisher(o),
		})
	}
	site, err := h.store.Site(ctx, "handbook", base)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := site.Publication(ctx, conf)
	if err != nil {
		t.Fatal(err)
	}
	h.from = edition.Source{Store: h.store, Site: site, Publication: pub}
	server := edition.NewServer(h.from, published, artifactmemory.New(nil), &edition.Options{Logger: log, Now: now})
	h.take = func() {
		t.Helper()
		if err := backdate(h.dir, now()); err != nil {
			t.Fatal(err)
		}
		if _, err := mirror.Sync(ctx, "folder", f, site, nil); err != nil {
			t.Fatal(err)
		}
	}
	h.take()
	if _, err := server.Publish(ctx); err != nil {
		t.Fatal(err)
	}
	files, err := proxy.NewFiles(f, base, log)
	if err != nil {
		t.Fatal(err)
	}
	gateO := &gateway.Options{Base: base, EndpointBase: base, Origin: files, Logger: log, Access: access.Options{Rate: 1}, Policy: policy}
	if guarded {
		gateO.Access.Keys = h.store.Keys()
	}
	g, err := gateway.New(server, gateO)
	if err != nil {
		t.Fatal(err)
	}
	h.SiteOptions = &SiteOptions{Name: "handbook", Base: base, EndpointBase: base, Pages: site, Server: server, Protocols: protocols, Policy: policy}
	h.public, h.OwnRequests = g, g.OwnRequests
	inside, key := g.OwnHandler()
	h.Gateway, h.Key = func() http.Handler { return inside }, func() string { return key }
	return h
}

// backdate sets the modification time of files newer than seedTime to now.
func backdate(dir string, now time.Time) error {
	return filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil || info.ModTime().Before(seedTime) {
			return err
		}
		return os.Chtimes(name, now, now)
	})
}

// Every protocol of a site is checked in process and conforms to its specification, with
// https, and with a key for the content.
func TestCheckResults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, base string
		guarded    bool
	}{
		{"open", "https://handbook.test/", false},
		{"guarded", "http://handbook.test:8080/", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHandbook(t, tt.base, tt.guarded)
			v := NewCheckResults()
			start := time.Now()
			<-v.run(t.Context(), 0, h.SiteOptions, h.Protocols)
			t.Logf("all checks took %s", time.Since(start).Round(time.Millisecond))
			for _, proto := range h.Protocols {
				is, running := v.of(proto.Name)
				if is == nil || is.Err != nil || !running.IsZero() {
					t.Errorf("%s: %+v, running since %s", proto.Name, is, running)
					continue
				}
				t.Logf("%s: %+v in %d requests and %s", proto.Name, *is.Result, is.Requests, is.Took.Round(time.Millisecond))
				if !is.Result.Found || is.Report.Failed() || is.Edition != h.Server.Current().View.Site().Seq {
					t.Errorf("%s: %+v of edition %d: %+v", proto.Name, is.Result, is.Edition, is.Report.Findings)
				}
				for _, o := range is.Report.Outcomes {
					if o.State == check.NotRun {
						t.Errorf("%s: not run: %s", o.Rule.ID, o.Reason)
					}
				}
			}
		})
	}
}

// If another server serves the pages, their absence here is not a finding. The documents
// served here are checked as usual.
func TestCheckResultsAlongside(t *testing.T) {
	t.Parallel()
	h := newHandbook(t, "https://handbook.test/", false)
	g, err := gateway.New(h.Server, &gateway.Options{Base: h.Base, EndpointBase: h.EndpointBase, Logger: slog.New(slog.DiscardHandler), Policy: h.Policy})
	if err != nil {
		t.Fatal(err)
	}
	inside, _ := g.OwnHandler()
	h.Gateway = func() http.Handler { return inside }
	for _, h.ExternalPages = range []bool{false, true} {
		v := NewCheckResults()
		<-v.run(t.Context(), 0, h.SiteOptions, h.Protocols)
		for _, proto := range h.Protocols {
			is, _ := v.of(proto.Name)
			if is == nil || is.Err != nil || !is.Result.Found || is.Result.Must.Pass == 0 {
				t.Errorf("%s: %+v", proto.Name, is)
				continue
			}
			if missed := proto.Name == "arc" && !h.ExternalPages; is.Report.Failed() != missed {
				t.Errorf("%s, alongside: %t: %+v", proto.Name, h.ExternalPages, is.Report.Findings)
			}
			for _, f := range is.Report.Findings {
				if h.ExternalPages && (strings.Contains(f.Rule, "/E.4/") || strings.Contains(f.Rule, "/E.11/")) {
					t.Errorf("%+v", f)
				}
			}
		}
	}
}

// A check requests the public address as the owner: with the key, and without limits. It finds
// what a server in between breaks. If the address cannot be reached, the check runs inside this
// process and says so.
func TestCheckResultsPublic(t *testing.T) {
	t.Parallel()
	var site atomic.Pointer[http.Handler]
	var weak atomic.Bool
	public := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if weak.Load() { // like a cache that drops validators
			w = dropsTags{w}
		}
		(*site.Load()).ServeHTTP(w, r)
	}))
	h := newHandbook(t, public.URL+"/", true)
	site.Store(&h.public)
	h.Public = &fetch.Options{AllowPrivate: true, IgnoreRobots: true, Delay: -1}
	proto := h.Protocols[slices.IndexFunc(h.Protocols, func(p protocol.Protocol) bool { return p.Name == "tct-01" })]
	if is := runCheck(t.Context(), h.SiteOptions, proto); is.Err != nil || is.Unreached != nil || !is.Result.Found || is.Result.Must.Fail > 0 {
		t.Errorf("%+v, %+v", is, is.Report)
	}
	weak.Store(true)
	if is := runCheck(t.Context(), h.SiteOptions, proto); is.Err != nil || is.Unreached != nil || is.Result.Must.Fail == 0 {
		t.Errorf("without validators: %+v", is)
	}
	public.Close()
	if is := runCheck(t.Context(), h.SiteOptions, proto); is.Err != nil || is.Unreached == nil || is.Result.Must.Fail > 0 {
		t.Errorf("unreachable: %+v", is)
	}
}

// dropsTags is a response without ETag.
type dropsTags struct{ http.ResponseWriter }

func (w dropsTags) WriteHeader(status int) {
	w.Header().Del("ETag")
	w.ResponseWriter.WriteHeader(status)
}

// A check ends with an error if the handler hangs, panics or fails, or if the protocol is not
// published.
func TestCheckResultsOfBrokenSites(t *testing.T) {
	t.Parallel()
	h := newHandbook(t, "https://handbook.test/", false)
	for name, broken := range map[string]http.HandlerFunc{
		"panics":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"fails":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"is busy": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
	} {
		s := *h.SiteOptions
		s.Gateway = func() http.Handler { return broken }
		if is := runCheck(t.Context(), &s, h.Protocols[0]); is.Err == nil || is.Result != nil {
			t.Errorf("a site that %s: %+v", name, is)
		}
	}
	s := *h.SiteOptions
	hangs := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s.Gateway = func() http.Handler { return hangs }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if is := runCheck(ctx, &s, h.Protocols[0]); is.Err == nil {
		t.Error("a site that hangs has a result")
	}
	unpublished := edition.NewServer(h.from, nil, artifactmemory.New(nil), nil)
	s = *h.SiteOptions
	s.Server = unpublished
	if is := runCheck(t.Context(), &s, h.Protocols[0]); is.Err == nil {
		t.Error("a protocol that is not published has a result")
	}
}

// No other host is fetched, whatever a document names.
func TestLoopRequestsOnlyTheSite(t *testing.T) {
	t.Parallel()
	in := newLoop(http.NotFoundHandler(), "k", "https://a.test/x/")
	defer in.Close()
	for _, u := range []string{"http://a.test/", "https://b.test/", "https://a.test:444/", "https://a.test.b.test/"} {
		if _, err := in.client().Get(u); !errors.Is(err, check.ErrLimit) { //nolint:bodyclose // no body
			t.Errorf("a request was sent to %s: %v", u, err)
		}
	}
	resp, err := in.client().Get("https://A.test/y")
	if err != nil || resp.StatusCode != http.StatusNotFound || resp.Header.Get("Date") == "" {
		t.Fatalf("%v, %v", resp, err)
	}
	_ = resp.Body.Close()
}
