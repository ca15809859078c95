package edition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/andybalholm/brotli"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/lease"
)

// deferringProtocol is a memProtocol with a deferred artifact that names the pages of a
// view.
type deferringProtocol struct {
	memProtocol
	begun chan struct{} // if not nil, receives a value when building an artifact begins
	end   chan struct{} // sends a value to end the artifact
}

func (r *deferringProtocol) Artifacts(ctx context.Context, _ millrace.View, _ time.Time, s millrace.ArtifactSet) (time.Time, error) {
	index := ""
	if stored := s.Existing(); len(stored) > 0 {
		last := stored[len(stored)-1]
		s.Keep(last)
		index = last.Path
	}
	return time.Time{}, s.Put(ctx, &millrace.Document{
		Path: "/index.txt", Header: http.Header{"Content-Type": {"text/plain"}},
		Parts: millrace.SinglePart(index, func(_ context.Context, w io.Writer) error {
			_, err := io.WriteString(w, index)
			return err
		}),
	})
}

func (r *deferringProtocol) Deferred(ctx context.Context, view millrace.View, _ time.Time, s millrace.ArtifactSet) error {
	path := fmt.Sprint("/files/", view.Site().Seq)
	for _, f := range s.Existing() {
		if f.Path == path {
			return nil
		}
	}
	d, err := s.Create()
	if err != nil {
		return err
	}
	defer d.Discard()
	if r.begun != nil {
		r.begun <- struct{}{}
		<-r.end
	}
	_, err = d.Finish(ctx, []byte(path), millrace.Artifact{ETag: "x"}, []string{""}, func(_, _ string) string { return path })
	return err
}

// A deferred artifact does not delay a publication, and is published when it is complete.
func TestDeferredFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site, proto := newMemSite(4), &deferringProtocol{begun: make(chan struct{}), end: make(chan struct{})}
		s := newTestServer(t, site, proto, nil)
		run(t, s)
		<-proto.begun // for the first edition
		site.set("/1", "changed")
		time.Sleep(5 * time.Second)
		if w := ask(t, s, "GET", "/odd.txt"); !strings.Contains(w.Body.String(), "changed") {
			t.Error("a publication waits for a deferred file")
		}
		if w := ask(t, s, "GET", "/index.txt"); w.Body.Len() > 0 {
			t.Errorf("listed before it is built: %s", w.Body)
		}
		proto.end <- struct{}{}
		<-proto.begun // for the second
		time.Sleep(5 * time.Second)
		if w := ask(t, s, "GET", "/index.txt"); w.Body.String() != "/files/4" || ask(t, s, "GET", "/files/4").Body.String() != "/files/4" {
			t.Errorf("not published: %s", w.Body)
		}
		proto.end <- struct{}{}
		time.Sleep(5 * time.Second)
		if w := ask(t, s, "GET", "/index.txt"); w.Body.String() != "/files/5" {
			t.Errorf("not replaced: %s", w.Body)
		}
	})
}

// Publish also publishes the deferred artifacts.
func TestPublishDeferred(t *testing.T) {
	site := newMemSite(4)
	s := newTestServer(t, site, &deferringProtocol{}, nil)
	publish(t, s)
	if w := ask(t, s, "GET", "/index.txt"); w.Body.String() != "/files/4" {
		t.Errorf("%q", w.Body)
	}
	if changed, err := s.Publish(t.Context()); changed || err != nil {
		t.Errorf("nothing to publish: %t %v", changed, err)
	}
}

// A deferred artifact that was not published with its edition is published with the next
// one.
func TestDeferredBeforeFailure(t *testing.T) {
	site := newMemSite(4)
	s := newTestServer(t, site, &deferringProtocol{}, nil)
	if _, err := s.publish(t.Context(), lease.Wait); err != nil {
		t.Fatal(err)
	}
	if err := s.deferArtifacts(t.Context(), lease.Hold); err != nil {
		t.Fatal(err)
	}
	site.casHook = func() error { return errNoLuck }
	if _, err := s.publish(t.Context(), lease.Wait); !errors.Is(err, errNoLuck) {
		t.Fatal(err)
	}
	site.casHook = nil
	if _, err := s.publish(t.Context(), lease.Wait); err != nil {
		t.Fatal(err)
	}
	if w := ask(t, s, "GET", "/index.txt"); w.Body.String() != "/files/4" {
		t.Errorf("%q", w.Body)
	}
}

// A chunked document is offered in brotli after a request for brotli, until it changes.
// Other processes offer it, too.
func TestDeferredBrotli(t *testing.T) {
	site, artifacts := tall(), newArtifacts()
	s := serverIn(t, site, listProtocol{}, artifacts, nil)
	publish(t, s)
	coding := func(s *Server) string {
		t.Helper()
		w := ask(t, s, "GET", "/list.txt", "Accept-Encoding", "gzip, br")
		got := w.Header().Get("Content-Encoding")
		if got == "br" {
			body, err := io.ReadAll(brotli.NewReader(w.Body))
			if err != nil || string(body) != listOf(t, site) {
				t.Errorf("%d bytes of brotli: %v", len(body), err)
			}
		}
		return got
	}
	work := func() {
		t.Helper()
		if err := s.deferBrotli(t.Context()); err != nil {
			t.Fatal(err)
		}
		publish(t, s)
	}
	ask(t, s, "GET", "/list.txt", "Accept-Encoding", "gzip")
	work()
	if got := coding(s); got != "gzip" {
		t.Errorf("before a request for it: %q", got)
	}
	work()
	other := serverIn(t, site, listProtocol{}, artifacts, nil)
	if err := other.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, b := coding(s), coding(other); a != "br" || b != "br" {
		t.Errorf("after the request: %q, and %q from another process", a, b)
	}
	s.listedAt = time.Time{}
	if err := s.collect(t.Context(), nil, time.Now().Add(2*unknownFor*grace)); err != nil {
		t.Fatal(err)
	}
	if got := coding(s); got != "br" {
		t.Errorf("after collection: %q", got)
	}
	site.set("/x", "another text")
	publish(t, s)
	if got := coding(s); got != "gzip" {
		t.Errorf("of another document: %q", got)
	}
}

// fixedTag is listProtocol with an ETag that does not change with all bytes.
type fixedTag struct{ listProtocol }

func (fixedTag) All(ctx context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) {
		for d := range (listProtocol{}).All(ctx, v) {
			d.ETag = "fixed"
			yield(d, nil)
		}
	}
}

// A brotli form is sent only for the bytes from which it was made, even if other bytes have the
// same ETag.
func TestDeferredBrotliOfSameETag(t *testing.T) {
	site := tall()
	s := newTestServer(t, site, fixedTag{}, nil)
	publish(t, s)
	before := ask(t, s, "GET", "/list.txt", "Accept-Encoding", "gzip, br").Header()
	if err := s.deferBrotli(t.Context()); err != nil {
		t.Fatal(err)
	}
	site.set("/x", "another text")
	publish(t, s)
	for range 2 {
		w := ask(t, s, "GET", "/list.txt", "Accept-Encoding", "br")
		body := io.Reader(w.Body)
		if w.Header().Get("Content-Encoding") == "br" {
			body = brotli.NewReader(w.Body)
		}
		if got, err := io.ReadAll(body); err != nil || string(got) != listOf(t, site) {
			t.Errorf("%s: %d bytes of another document, %v", w.Header(), len(got), err)
		}
		if w.Header().Get("Last-Modified") == before.Get("Last-Modified") {
			t.Error("Last-Modified did not change with the bytes")
		}
		if err := s.deferBrotli(t.Context()); err != nil {
			t.Fatal(err)
		}
		site.set("/x", "a third text")
		publish(t, s)
		before = w.Header()
	}
}

// The loss of an unpublished brotli form does not stop publication.
func TestDeferredBrotliLost(t *testing.T) {
	site := tall()
	s := newTestServer(t, site, listProtocol{}, nil)
	publish(t, s)
	ask(t, s, "GET", "/list.txt", "Accept-Encoding", "gzip, br")
	if err := s.deferBrotli(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.made().brotli {
		losses["missing"](t, s, c.name())
	}
	publish(t, s)
	if w := ask(t, s, "GET", "/list.txt", "Accept-Encoding", "gzip, br"); w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("%s", w.Header())
	}
	if made := s.made(); !made.empty() {
		t.Error("the lost form is still pending")
	}
}

// Deferred work uses at most a tenth of a processor.
func TestDeferredPace(t *testing.T) {
	var jobs []time.Time
	synctest.Test(t, func(t *testing.T) {
		site := newMemSite(4)
		s := newTestServer(t, site, &pacedProtocol{jobs: &jobs}, nil)
		run(t, s)
		for range 12 {
			time.Sleep(time.Second)
			site.set("/1", fmt.Sprint(time.Now()))
		}
	})
	if len(jobs) < 2 {
		t.Fatalf("%d jobs", len(jobs))
	}
	for i := 1; i < len(jobs); i++ {
		if rest := jobs[i].Sub(jobs[i-1]); rest < pausePerWork*pacedWork {
			t.Errorf("%v between two jobs of %v", rest, pacedWork)
		}
	}
}

// pacedProtocol has deferred work of some processor time.
type pacedProtocol struct {
	memProtocol
	jobs *[]time.Time
}

const pacedWork = 30 * time.Millisecond

func (r *pacedProtocol) Artifacts(context.Context, millrace.View, time.Time, millrace.ArtifactSet) (time.Time, error) {
	return time.Time{}, nil
}

func (r *pacedProtocol) Deferred(context.Context, millrace.View, time.Time, millrace.ArtifactSet) error {
	*r.jobs = append(*r.jobs, time.Now())
	time.Sleep(pacedWork)
	for spent := time.Duration(0); spent < pacedWork; {
		spent += processorTime(func() {
			for range 1 << 20 {
			}
		})
	}
	return nil
}
