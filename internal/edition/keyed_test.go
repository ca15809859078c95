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
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/dcz"
)

// twoForms is a protocol whose list of odd pages has more for requests with a key, and
// has two paths.
type twoForms struct {
	memProtocol
	secret string // only for requests with a key
	own    string // ETag
}

func (f *twoForms) All(ctx context.Context, view millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) {
		for d, err := range f.memProtocol.All(ctx, view) {
			if err == nil && d.Path == "/odd.txt" {
				d.ETag = f.own
				write := d.Write
				d.PartsKeyed = millrace.SinglePart(d.Parts.Version, func(ctx context.Context, w io.Writer) error {
					if _, err := io.WriteString(w, f.secret); err != nil {
						return err
					}
					return write(ctx, w)
				})
				twin := *d
				twin.Path = "/twin.txt"
				if !yield(&twin, nil) {
					return
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func TestKeyedForm(t *testing.T) {
	for _, own := range []string{"", "own-tag"} {
		t.Run("tag "+own, func(t *testing.T) { keyedForm(t, own) })
	}
}

func keyedForm(t *testing.T, own string) {
	dir, site, proto := newArtifacts(), newMemSite(6), &twoForms{secret: "secret\n", own: own}
	s := serverIn(t, site, proto, dir, nil)
	publish(t, s)
	guard, key := keyed(t)
	none, good, bad := asking(t, guard, ""), asking(t, guard, key), asking(t, guard, key+"x")
	get := func(s *Server, path string, q *access.Request, fields ...string) (*httptest.ResponseRecorder, error) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		w := httptest.NewRecorder()
		_, err := s.Answer(w, r, q)
		return w, err
	}
	check := func(s *Server) {
		t.Helper()
		tags := map[string]string{}
		for _, path := range []string{"/odd.txt", "/twin.txt"} {
			for name, q := range map[string]*access.Request{"nil": nil, "without": none, "good": good} {
				w, err := get(s, path, q)
				h := w.Header()
				if err != nil || w.Code != http.StatusOK {
					t.Fatalf("%s, %s: %d %v", path, name, w.Code, err)
				}
				if got := strings.HasPrefix(w.Body.String(), "secret\n"); got != (name == "good") {
					t.Errorf("%s, %s: the body is %q", path, name, w.Body)
				}
				if !strings.Contains(h.Get("Vary"), "Authorization") {
					t.Errorf("%s, %s: Vary is %q", path, name, h.Get("Vary"))
				}
				if private := strings.Contains(h.Get("Cache-Control"), "private"); private != (name == "good") {
					t.Errorf("%s, %s: Cache-Control is %q", path, name, h.Get("Cache-Control"))
				}
				if cors := h.Get("Access-Control-Allow-Origin") != ""; cors != (name != "good") {
					t.Errorf("%s, %s: CORS %t", path, name, cors)
				}
				if tag := tags[name]; tag != "" && tag != h.Get("ETag") {
					t.Errorf("%s, %s: two tags, %s and %s", path, name, tag, h.Get("ETag"))
				}
				tags[name] = h.Get("ETag")
				if w, err := get(s, path, q, "If-None-Match", h.Get("ETag")); err != nil || w.Code != http.StatusNotModified {
					t.Errorf("%s, %s: its own tag gives %d %v", path, name, w.Code, err)
				}
			}
			if w, err := get(s, path, good, "If-None-Match", tags["without"]); err != nil || w.Code != http.StatusOK {
				t.Errorf("%s: the public tag matches the document for keys: %d %v", path, w.Code, err)
			}
			if w, err := get(s, path, bad); millrace.Status(err) != http.StatusUnauthorized || w.Body.Len() > 0 {
				t.Errorf("%s with a bad key: %v, %q", path, err, w.Body)
			}
		}
		if w, err := get(s, "/even.txt", bad); err != nil || strings.Contains(w.Header().Get("Vary"), "Authorization") {
			t.Errorf("a document with one form: %v, %v", err, w.Header())
		}
	}
	check(s)
	proto.renders.Store(0)
	site.set("/2", "a change of even pages changes no edition")
	publish(t, s)
	if n := proto.renders.Load(); n != 1 {
		t.Errorf("one document changed, and %d were written", n)
	}
	check(s)
	again := serverIn(t, site, proto, dir, nil)
	if err := again.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(again)
	if err := s.collect(t.Context(), nil, epochStart.AddDate(90, 0, 0)); err != nil {
		t.Fatal(err)
	}
	check(s)
}

// Only the public form is a dictionary, and coded against one.
func TestKeyedFormDictionary(t *testing.T) {
	site := newMemSite(2)
	site.set("/1", noise(20_000))
	s := newTestServer(t, site, &twoForms{secret: "secret\n"}, nil)
	publish(t, s)
	guard, key := keyed(t)
	var held []byte
	for i, want := range []string{"", dcz.Name} {
		for _, key := range []string{key, ""} {
			w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/odd.txt", nil)
			r.RemoteAddr, r.Header = "127.0.0.1:1", http.Header{"Accept-Encoding": {"dcz"}, dcz.Available: {dcz.Sum(held).Field()}}
			if key != "" {
				r.Header.Set("Authorization", "Bearer "+key)
			}
			_, err := s.Answer(w, r, new(guard.Request(r)))
			drain(t, s)
			if h := w.Header(); err != nil || (h.Get(dcz.Use) == "") != (key != "") || key == "" && h.Get("Content-Encoding") != want ||
				key != "" && !strings.HasPrefix(w.Body.String(), "secret\n") {
				t.Fatalf("edition %d: %v, %v", i, err, h)
			}
			if key == "" {
				held = w.Body.Bytes()
			}
		}
		site.set("/1", "changed "+noise(20_000))
		publish(t, s)
	}
}

// Two equal forms share one artifact, and a document with several paths is written once.
func TestKeyedFormAlike(t *testing.T) {
	proto := &twoForms{}
	s := newTestServer(t, newMemSite(4), proto, nil)
	publish(t, s)
	if n := proto.renders.Load(); n != 3 { // even, and odd in two forms
		t.Errorf("documents were written %d times", n)
	}
	if n := len(stored(t, s)); n != 2 {
		t.Errorf("two documents have %d artifacts", n)
	}
}
