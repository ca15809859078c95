package edition

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
)

func TestNothingPublished(t *testing.T) {
	s := newTestServer(t, newMemSite(3), &memProtocol{}, nil)
	if w := ask(t, s, "GET", "/1.txt"); w.Code != 0 || s.Current() != nil {
		t.Errorf("status %d before the first edition", w.Code)
	}
	if err := s.Refresh(t.Context()); !errors.Is(err, millrace.ErrNotFound) {
		t.Errorf("refresh: %v", err)
	}
	select {
	case <-s.Ready():
		t.Error("ready")
	default:
	}
	publish(t, s)
	<-s.Ready()
	if w := ask(t, s, "GET", "/1.txt"); w.Code != 200 {
		t.Errorf("answered %d", w.Code)
	}
	if w := ask(t, s, "GET", "/missing.txt"); w.Code != 0 {
		t.Errorf("status %d for a missing document", w.Code)
	}
}

// A large document is built again only if it may have changed, and its date changes only
// with its bytes.
func TestReuse(t *testing.T) {
	site, proto := newMemSite(10), &memProtocol{}
	s := newTestServer(t, site, proto, nil)
	publish(t, s)
	even, odd := ask(t, s, "GET", "/even.txt").Header(), ask(t, s, "GET", "/odd.txt").Header()
	if even.Get("Last-Modified") != timeOf(10).Format(http.TimeFormat) {
		t.Errorf("first build: %s", even.Get("Last-Modified"))
	}
	for _, target := range []string{"/1.txt", "/2.txt"} {
		ask(t, s, "GET", target)
	}
	proto.renders.Store(0)
	site.set("/1", "changed")
	site.set("/2", "changed and")
	site.set("/2", "page 2") // the first text again
	publish(t, s)
	if n := proto.renders.Load(); n != 2 {
		t.Errorf("%d renderings, want 2 lists", n)
	}
	odd2, even2 := ask(t, s, "GET", "/odd.txt").Header(), ask(t, s, "GET", "/even.txt").Header()
	if odd2.Get("ETag") == odd.Get("ETag") || odd2.Get("Last-Modified") != timeOf(13).Format(http.TimeFormat) {
		t.Errorf("odd: %v", odd2)
	}
	if even2.Get("ETag") != even.Get("ETag") || even2.Get("Last-Modified") != even.Get("Last-Modified") {
		t.Errorf("even: same bytes: %v", even2)
	}
	proto.renders.Store(0)
	site.set("/3", "changed")
	publish(t, s)
	if n := proto.renders.Load(); n != 1 {
		t.Errorf("%d renderings, want 1 list", n)
	}
	if h := ask(t, s, "GET", "/even.txt").Header(); h.Get("Last-Modified") != even2.Get("Last-Modified") {
		t.Errorf("an unchanged list has a new date: %v", h)
	}
	proto.renders.Store(0)
	if changed, err := s.Publish(t.Context()); changed || err != nil || proto.renders.Load() != 0 {
		t.Errorf("nothing to publish: %t %v", changed, err)
	}
}

// Two editions within one second have different dates, because a client may use the date as its
// only validator.
func TestTwoEditionsInOneSecond(t *testing.T) {
	site, proto := newMemSite(10), &memProtocol{}
	s := newTestServer(t, site, proto, nil)
	publish(t, s)
	for i, body := range []string{"changed", "changed again", "and again"} {
		seq := site.set("/1", body)
		site.log[seq].Time = timeOf(11).Add(time.Duration(i) * 300 * time.Millisecond)
		publish(t, s)
		got := ask(t, s, "GET", "/odd.txt").Header().Get("Last-Modified")
		if want := timeOf(uint64(11 + i)).Format(http.TimeFormat); got != want {
			t.Errorf("edit %d: %s, want %s", i, got, want)
		}
	}
}

// Bodies stay in the cache if the next edition has the same document.
func TestBodiesSurviveEditions(t *testing.T) {
	site, proto := newMemSite(4), &memProtocol{}
	s := newTestServer(t, site, proto, nil)
	publish(t, s)
	ask(t, s, "GET", "/2.txt")
	site.set("/1", "changed")
	publish(t, s)
	proto.renders.Store(0)
	proto.finds.Store(0)
	for range 5 {
		ask(t, s, "GET", "/2.txt")
	}
	if proto.renders.Load() != 0 || proto.finds.Load() != 1 {
		t.Errorf("%d renderings and %d lookups, want 0 and 1", proto.renders.Load(), proto.finds.Load())
	}
	site.set("/2", "new words")
	publish(t, s)
	if w := ask(t, s, "GET", "/2.txt"); !strings.Contains(w.Body.String(), "new words") {
		t.Errorf("outdated body %q", w.Body)
	}
	site.set("/2", "")
	publish(t, s)
	if w := ask(t, s, "GET", "/2.txt"); w.Code != 0 {
		t.Errorf("a deleted page has status %d", w.Code)
	}
	if s.cache.get(key{path: "/2.txt"}) != nil {
		t.Error("a deleted page is cached")
	}
}

// A 304 and a HEAD of any document render nothing.
func TestNeverWrites(t *testing.T) {
	for _, sharedETag := range []bool{false, true} {
		proto := &memProtocol{sharedETag: sharedETag}
		s := newTestServer(t, newMemSite(20), proto, nil)
		publish(t, s)
		proto.renders.Store(0)
		for d, err := range proto.All(t.Context(), s.Current().View) {
			if err != nil {
				t.Fatal(err)
			}
			head := ask(t, s, "HEAD", d.Path, "Accept-Encoding", "gzip")
			not := ask(t, s, "GET", d.Path, "Accept-Encoding", "gzip", "If-None-Match", head.Header().Get("ETag"))
			if head.Code != 200 || not.Code != 304 || head.Body.Len()+not.Body.Len() > 0 {
				t.Errorf("%s: %d %d", d.Path, head.Code, not.Code)
			}
		}
		if n := proto.renders.Load(); n != 0 {
			t.Errorf("%d renderings", n)
		}
	}
}

func TestSingleFlight(t *testing.T) {
	proto := &memProtocol{slow: 20 * time.Millisecond}
	s := newTestServer(t, newMemSite(3), proto, nil)
	publish(t, s)
	proto.renders.Store(0)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if w := ask(t, s, "GET", "/1.txt", "Accept-Encoding", "gzip"); w.Code != 200 {
				t.Errorf("%d", w.Code)
			}
		})
	}
	wg.Wait()
	if n := proto.renders.Load(); n != 1 {
		t.Errorf("%d renderings", n)
	}
}

// A client that disconnects does not cancel the rendering for the others that wait.
func TestCanceledRendering(t *testing.T) {
	s := newTestServer(t, newMemSite(3), &memProtocol{}, nil)
	publish(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "GET", "/1.txt", nil)
	w := httptest.NewRecorder()
	if done, err := s.Serve(w, r); !done || !errors.Is(err, context.Canceled) || len(w.Header()) > 0 {
		t.Errorf("%t %v %v", done, err, w.Header())
	}
	if w := ask(t, s, "GET", "/1.txt"); w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
}

func TestVaryingDocumentsAreNotCached(t *testing.T) {
	proto := &memProtocol{vary: "Accept"}
	s := newTestServer(t, newMemSite(3), proto, nil)
	publish(t, s)
	for range 3 {
		if h := ask(t, s, "GET", "/1.txt").Header(); h.Get("Vary") != "Accept, Accept-Encoding" {
			t.Error(h)
		}
	}
	if proto.finds.Load() != 3 || s.cache.bytes() != 0 {
		t.Errorf("%d lookups, %d bytes kept", proto.finds.Load(), s.cache.bytes())
	}
}

// If all clients get the same document, a field in Vary is only for caches.
func TestIdenticalDocumentsAreCached(t *testing.T) {
	proto := &memProtocol{vary: "Accept, Accept-Encoding", sharedETag: true}
	s := newTestServer(t, newMemSite(3), proto, nil)
	publish(t, s)
	for range 3 {
		if h := ask(t, s, "GET", "/1.txt").Header(); h.Get("Vary") != "Accept, Accept-Encoding" {
			t.Error(h)
		}
	}
	if proto.finds.Load() != 1 || s.cache.bytes() == 0 {
		t.Errorf("%d lookups, %d bytes kept", proto.finds.Load(), s.cache.bytes())
	}
}

func TestEscapedTargetsAreTheirOwn(t *testing.T) {
	site := newMemSite(1)
	site.set("/a/b", "slash")
	s := newTestServer(t, site, &memProtocol{}, nil)
	publish(t, s)
	ask(t, s, "GET", "/a/b.txt")
	if s.cache.get(keyOf(httptest.NewRequest(http.MethodGet, "/a%2Fb.txt", nil).URL)) != nil {
		t.Error("one entry for two targets")
	}
}

// After a restart, the server serves the previous edition without rendering.
func TestRestart(t *testing.T) {
	dir, site, proto := newArtifacts(), newMemSite(6), &memProtocol{}
	s := serverIn(t, site, proto, dir, nil)
	publish(t, s)
	want := ask(t, s, "GET", "/odd.txt", "Accept-Encoding", "zstd")
	site.set("/1", "not published yet")
	proto.renders.Store(0)
	s = serverIn(t, site, proto, dir, nil)
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := ask(t, s, "GET", "/odd.txt", "Accept-Encoding", "zstd")
	if got.Code != 200 || got.Body.String() != want.Body.String() || got.Header().Get("ETag") != want.Header().Get("ETag") || proto.renders.Load() != 0 {
		t.Errorf("another edition after restart: %v", got.Header())
	}
	if w := ask(t, s, "GET", "/1.txt"); strings.Contains(w.Body.String(), "not published") {
		t.Error("a page that is in no edition")
	}
}

func TestManifestOfAnother(t *testing.T) {
	dir, site, proto := newArtifacts(), newMemSite(6), &memProtocol{}
	publish(t, serverIn(t, site, proto, dir, nil))
	for name, change := range map[string]func(*manifest){
		"format":  func(m *manifest) { m.Format++ },
		"key":     func(m *manifest) { m.Key += "x" },
		"missing": func(m *manifest) { m.Documents[0].Chunks.Tree.Root.Sum[0]++ },
		"file": func(m *manifest) {
			m.Artifacts = append(m.Artifacts, storedArtifact{Artifact: millrace.Artifact{Path: "/x", Sum: "../../x"}})
		},
	} {
		m, err := decodeManifest(site.manifest)
		if err != nil {
			t.Fatal(err)
		}
		change(m)
		bad, err := m.encode(new(encoders))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readManifest(bad, "\nmem"); (err == nil) != (name == "missing") {
			t.Errorf("%s: %v", name, err)
		}
		site.manifest = bad
		s := serverIn(t, site, proto, dir, nil)
		if err := s.Refresh(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if w := ask(t, s, "GET", "/odd.txt"); w.Code != 200 {
			t.Errorf("%s: %d", name, w.Code)
		}
		publish(t, serverIn(t, site, proto, dir, nil))
		if _, err := readManifest(site.manifest, "\nmem"); err != nil {
			t.Errorf("%s: not repaired: %v", name, err)
		}
	}
	if _, err := readManifest(site.manifest, "other"); !errors.Is(err, millrace.ErrConflict) {
		t.Errorf("a different key: %v", err)
	}
}

func FuzzReadManifest(f *testing.F) {
	f.Add([]byte(`{"format":6,"key":"","documents":[{"path":"/a","etag":"x","chunks":{"head":"YQ==","tree":{"Height":1,"Root":{"First":"a","Last":"b","Parts":2,"Size":9,"Coded":9}}}}]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = readManifest(b, "") // most inputs are not a frame
		frame, err := new(encoders).encode(zstdCoding, b)
		if err != nil {
			t.Fatal(err)
		}
		m, err := readManifest(frame, "")
		if err != nil {
			return
		}
		for i := range m.Documents {
			if _, e, err := m.Documents[i].entry(new(Server), false, time.Now()); err == nil && e.offer == 0 {
				t.Error("an entry that offers nothing")
			}
		}
	})
}

// A build that ends before the compare-and-swap leaves the old edition, and artifacts
// that are collected later.
func TestCrashBeforeSwap(t *testing.T) {
	dir, site := newArtifacts(), newMemSite(6)
	s := serverIn(t, site, &memProtocol{}, dir, nil)
	publish(t, s)
	want := ask(t, s, "GET", "/odd.txt")
	site.set("/1", "changed")
	killed := errors.New("killed")
	site.casHook = func() error { return killed }
	if _, err := serverIn(t, site, &memProtocol{}, dir, nil).Publish(t.Context()); !errors.Is(err, killed) {
		t.Fatal(err)
	}
	site.casHook = nil
	s = serverIn(t, site, &memProtocol{}, dir, nil)
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, s, "GET", "/odd.txt"); got.Body.String() != want.Body.String() || got.Header().Get("ETag") != want.Header().Get("ETag") {
		t.Errorf("a different edition: %v", got.Header())
	}
	if got := stored(t, s); len(got) != 3 {
		t.Errorf("want the artifacts of two documents, and one that no manifest names: %q", got)
	}
	if err := s.collect(t.Context(), nil, time.Now().Add(unknownFor*grace)); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, s); len(got) != 2 {
		t.Errorf("after collection: %q", got)
	}
}

// A process without some artifacts of another process builds only those. A process of another
// version does not change the edition.
func TestFollow(t *testing.T) {
	site := newMemSite(6)
	a, b := newTestServer(t, site, &memProtocol{}, nil), newTestServer(t, site, &memProtocol{}, nil)
	old := newTestServer(t, site, &memProtocol{}, &Options{Key: "another version"})
	publish(t, old)
	publish(t, a)
	want := string(site.manifest)
	for _, s := range []*Server{b, old} {
		if err := s.follow(t.Context()); err != nil {
			t.Error(err)
		}
		if string(site.manifest) != want {
			t.Error("the manifest has changed")
		}
	}
	get := ask(t, b, "GET", "/odd.txt")
	if get.Code != 200 || get.Header().Get("ETag") != ask(t, a, "GET", "/odd.txt").Header().Get("ETag") {
		t.Errorf("%d %v", get.Code, get.Header())
	}
}

func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newMemSite(6)
		s := newTestServer(t, site, &memProtocol{}, nil)
		publish(t, s)
		time.Sleep(2 * grace)
		site.set("/1", "changed")
		publish(t, s)
		if n := len(stored(t, s)); n != 3 {
			t.Errorf("%d artifacts: those of the previous edition must stay", n)
		}
		time.Sleep(2 * grace)
		site.set("/1", "changed again")
		publish(t, s)
		if n := len(stored(t, s)); n != 3 {
			t.Errorf("%d artifacts, want those of two editions", n)
		}
	})
}

// If the log starts after the previous edition, everything is built.
func TestLogBeforeHorizon(t *testing.T) {
	site, dir := newMemSite(6), newArtifacts()
	publish(t, serverIn(t, site, &memProtocol{}, dir, nil))
	m, err := decodeManifest(site.manifest)
	if err != nil {
		t.Fatal(err)
	}
	m.Cursor = "gone"
	if site.manifest, err = m.encode(new(encoders)); err != nil {
		t.Fatal(err)
	}
	seq := site.set("/1", "changed")
	s := serverIn(t, site, &memProtocol{}, dir, nil)
	publish(t, s)
	if got := ask(t, s, "GET", "/odd.txt"); got.Header().Get("Last-Modified") != timeOf(seq).Format(http.TimeFormat) || !strings.Contains(got.Body.String(), "changed") {
		t.Errorf("%v", got.Header())
	}
	if m, err = decodeManifest(site.manifest); err != nil || string(m.Cursor) != strconv.FormatUint(seq, 10) {
		t.Errorf("cursor: %v, %v", m, err)
	}
}

func TestLargeRanges(t *testing.T) {
	s := newTestServer(t, newMemSite(9), &memProtocol{}, nil)
	publish(t, s)
	full := ask(t, s, "GET", "/odd.txt", "Accept-Encoding", "gzip")
	etag := full.Header().Get("ETag")
	if !strings.HasSuffix(etag, `-gzip"`) {
		t.Fatal(etag)
	}
	part := ask(t, s, "GET", "/odd.txt", "Accept-Encoding", "gzip", "Range", "bytes=5-", "If-Range", etag)
	if part.Code != 206 || part.Body.String() != full.Body.String()[5:] || part.Header().Get("Repr-Digest") != full.Header().Get("Content-Digest") {
		t.Errorf("%d %v", part.Code, part.Header())
	}
	head := ask(t, s, "HEAD", "/odd.txt", "Accept-Encoding", "gzip")
	if head.Header().Get("Content-Length") != full.Header().Get("Content-Length") || head.Body.Len() > 0 {
		t.Errorf("HEAD: %v", head.Header())
	}
}

// A builder that loses a lease while it publishes tries again at once, but not if that happens again.
func TestLostLease(t *testing.T) {
	for times, most := range map[int]time.Duration{1: 3 * time.Second, 2: 15 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			site := newMemSite(4)
			s := newTestServer(t, site, &memProtocol{}, nil)
			var failed []time.Time
			site.casHook = func() error {
				if len(failed) == times {
					return nil
				}
				failed = append(failed, time.Now())
				return millrace.Coded("lease-lost", millrace.ErrConflict)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { s.Run(ctx) })
			<-s.Ready()
			if took := time.Since(failed[0]); took > most || times > 1 && took < retryEvery {
				t.Errorf("published %s after the first of %d failures", took, times)
			}
			cancel()
			running.Wait()
		})
	}
}

// Run publishes when the site has changed, at most as often as its pauses allow.
func TestRun(t *testing.T) {
	dir := newArtifacts()
	synctest.Test(t, func(t *testing.T) {
		site, proto := newMemSite(4), &memProtocol{slow: 2 * time.Second} // two lists, built at the same time: two seconds, with little processor time
		s := serverIn(t, site, proto, dir, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { s.Run(ctx) })
		time.Sleep(3500 * time.Millisecond) // between two checks for changes, one a second
		if s.Current() == nil {
			t.Fatal("not published")
		}
		site.set("/1", "a")
		site.set("/2", "b")
		time.Sleep(1900 * time.Millisecond) // less than the duration of the build
		if seq := s.Current().View.Site().Seq; seq != 4 {
			t.Errorf("edition %d is published before it is built", seq)
		}
		time.Sleep(2 * time.Second)
		if seq := s.Current().View.Site().Seq; seq != 6 {
			t.Errorf("edition %d after two more seconds", seq)
		}
		other := serverIn(t, site, proto, dir, nil)
		site.set("/3", "c")
		if _, err := other.Publish(ctx); err != nil {
			t.Error(err)
		}
		time.Sleep(1100 * time.Millisecond)
		if seq := s.Current().View.Site().Seq; seq != 7 {
			t.Errorf("the editions of another process are not loaded: %d", seq)
		}
		cancel()
		wg.Wait()
	})
}
