package edition

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

// headed is a protocol whose list of odd pages starts with a line of its options.
type headed struct {
	memProtocol
	line string
}

func (h *headed) All(ctx context.Context, view millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) {
		for d, err := range h.memProtocol.All(ctx, view) {
			if err == nil && d.Path == "/odd.txt" {
				write := d.Write
				d.Parts = millrace.SinglePart(d.Parts.Version, func(ctx context.Context, w io.Writer) error {
					if _, err := io.WriteString(w, h.line); err != nil {
						return err
					}
					return write(ctx, w)
				})
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// A document that another configuration changes gets a later date, for clients that
// compare only dates. The date of an unchanged document stays.
func TestConfigurationMovesDates(t *testing.T) {
	dir, site := newArtifacts(), newMemSite(6)
	modified := func(s *Server, name string) string {
		t.Helper()
		rec := ask(t, s, "GET", name)
		if rec.Code != http.StatusOK {
			t.Fatalf("%s: %d", name, rec.Code)
		}
		return rec.Header().Get("Last-Modified")
	}
	first := serverIn(t, site, &headed{}, dir, &Options{Key: "one"})
	publish(t, first)
	odd, even := modified(first, "/odd.txt"), modified(first, "/even.txt")

	second := serverIn(t, site, &headed{line: "a new option\n"}, dir, &Options{Key: "two"})
	if err := second.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	was, err := http.ParseTime(odd)
	if err != nil {
		t.Fatal(err)
	}
	is, err := http.ParseTime(modified(second, "/odd.txt"))
	if err != nil || !is.After(was) {
		t.Errorf("the date of a changed list is %v, and was %v (%v)", is, was, err)
	}
	if got := modified(second, "/even.txt"); got != even {
		t.Errorf("the date of an unchanged list is %s, and was %s", got, even)
	}
	if rec := ask(t, second, "GET", "/odd.txt", "If-Modified-Since", odd); rec.Code != http.StatusOK {
		t.Errorf("a client with the old list gets %d", rec.Code)
	}
	// Another process with the same options serves the same documents.
	third := newTestServer(t, site, &headed{line: "a new option\n"}, &Options{Key: "two"})
	if err := third.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := modified(third, "/odd.txt"); got != is.Format(http.TimeFormat) {
		t.Errorf("one process returns %s, the other %s", is.Format(http.TimeFormat), got)
	}
}

// A process that missed the edition of its builder, because one of another configuration followed
// at once, still serves the new pages.
func TestConfigurationFollows(t *testing.T) {
	dir, site := newArtifacts(), newMemSite(6)
	builder := serverIn(t, site, &headed{}, dir, &Options{Key: "one"})
	follower := serverIn(t, site, &headed{}, dir, &Options{Key: "one"})
	other := serverIn(t, site, &headed{line: "an option\n"}, dir, &Options{Key: "two"})
	publish(t, builder)
	follower.checkForChanges(t.Context())
	for _, text := range []string{"new", "newer"} {
		site.set("/1", text)
		publish(t, builder)
		publish(t, other)
		follower.checkForChanges(t.Context())
		got, want := ask(t, follower, http.MethodGet, "/odd.txt"), ask(t, builder, http.MethodGet, "/odd.txt")
		if got.Body.String() != want.Body.String() || got.Header().Get("ETag") != want.Header().Get("ETag") || !strings.Contains(ask(t, follower, http.MethodGet, "/1.txt").Body.String(), text) {
			t.Errorf("%s: %s, want %s", text, got.Body, want.Body)
		}
		ed := follower.Current()
		if follower.checkForChanges(t.Context()); follower.Current() != ed {
			t.Error("rebuilt without a change")
		}
	}
}

// Artifacts of another configuration are withdrawn, and withdrawn artifacts stay
// withdrawn.
func TestConfigurationWithdrawsFiles(t *testing.T) {
	dir, site := newArtifacts(), newMemSite(6)
	var were []string
	for i, key := range []string{"one", "two", "three"} {
		site.set("/1", strings.Repeat("a text ", 3+i)) // the name of an artifact has the lengths of its pages
		s := serverIn(t, site, &artifactProtocol{}, dir, &Options{Key: key})
		publish(t, s)
		for _, path := range were {
			if _, err := s.Serve(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)); millrace.Status(err) != http.StatusGone {
				t.Errorf("%s of another configuration: %v", path, err)
			}
		}
		is := listed(t, s)
		for _, path := range is {
			if rec := ask(t, s, http.MethodGet, path); rec.Code != http.StatusOK {
				t.Errorf("%s: %d", path, rec.Code)
			}
		}
		were = append(were, is...)
	}
}

// Another version of the program serves the edition of the old one, until it publishes its own
// documents. The artifacts stay. While both versions run, each serves the editions of the other.
func TestVersionKeepsFiles(t *testing.T) {
	dir, site := newArtifacts(), newMemSite(6)
	old := serverIn(t, site, &artifactProtocol{}, dir, &Options{Version: "1"})
	publish(t, old)
	files := listed(t, old)
	if len(files) == 0 {
		t.Fatal("no files")
	}
	s := serverIn(t, site, &artifactProtocol{}, dir, &Options{Version: "2"})
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.Current().manifest.Version != "1" || s.Current().stored != old.Current().stored {
		t.Errorf("version %s of edition %d", s.Current().manifest.Version, s.Current().stored)
	}
	publish(t, s)
	if s.Current().manifest.Version != "2" || s.Current().stored != old.Current().stored+1 {
		t.Errorf("version %s of edition %d", s.Current().manifest.Version, s.Current().stored)
	}
	if changed, err := s.Publish(t.Context()); changed || err != nil {
		t.Errorf("the new version publishes the same view again: %t %v", changed, err)
	}
	if err := old.follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if old.Current().stored != s.Current().stored || old.Current().manifest.Version != "2" {
		t.Errorf("the old version serves edition %d of version %s", old.Current().stored, old.Current().manifest.Version)
	}
	for _, path := range files {
		for _, server := range []*Server{old, s} {
			if _, err := server.Serve(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)); millrace.Status(err) == http.StatusGone {
				t.Errorf("%s is withdrawn", path)
			}
		}
	}
}

// If two configurations publish alternately, each continues its own documents. After an edit, each
// of them builds only the changed parts.
func TestConfigurationsContinue(t *testing.T) {
	dir, site := newArtifacts(), newMemSite(6)
	one := serverIn(t, site, &headed{}, dir, &Options{Key: "one"})
	two := serverIn(t, site, &headed{line: "another option\n"}, dir, &Options{Key: "two"})
	publish(t, one)
	publish(t, two)
	even := map[*Server]string{}
	for _, s := range []*Server{one, two} {
		even[s] = ask(t, s, "GET", "/even.txt").Header().Get("Last-Modified")
	}
	for i := range 3 {
		site.set("/1", strings.Repeat("a text ", 3+i))
		for _, s := range []*Server{one, two} {
			publish(t, s)
			if err := s.follow(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.Current().manifest.Key != s.key {
				t.Errorf("process %s serves the documents of %s", s.key, s.Current().manifest.Key)
			}
			if got := ask(t, s, "GET", "/even.txt").Header().Get("Last-Modified"); got != even[s] {
				t.Errorf("the date of an unchanged list is %s, and was %s", got, even[s])
			}
		}
	}
}
