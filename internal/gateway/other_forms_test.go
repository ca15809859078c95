package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
)

// forms is a protocol with an alternative form of /a/ at the page's own URL.
type forms struct{ writes, finds *atomic.Int64 }

const formType = "text/form"

func (f forms) form() *millrace.Document {
	return &millrace.Document{
		Path: "/a/form", ETag: "form", Header: http.Header{"Content-Type": {formType}},
		Write: func(_ context.Context, w io.Writer) error {
			f.writes.Add(1)
			_, err := io.WriteString(w, strings.Repeat("the form of a\n", 50))
			return err
		},
	}
}

func (f forms) Find(_ context.Context, _ millrace.View, r *http.Request) (*millrace.Document, error) {
	switch {
	case r.URL.Path == "/a/form":
		return f.form(), nil
	case r.URL.Path == "/a/" && r.Header.Get("Accept") == formType:
		f.finds.Add(1)
		d := f.form()
		d.Variant = formType
		d.Header["Vary"], d.Header["Cache-Control"] = []string{"Accept"}, []string{"private"}
		return d, nil
	}
	return nil, fmt.Errorf("forms: %w", millrace.ErrNotFound)
}

func (f forms) All(context.Context, millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) { yield(f.form(), nil) }
}

func (f forms) Advertise(millrace.View) millrace.Advertisement {
	return millrace.Advertisement{
		Page: func(_ context.Context, pagePath string) ([]millrace.Link, error) {
			if pagePath != "/a/" {
				return nil, nil
			}
			return []millrace.Link{{URL: "/a/form", Rel: "alternate", Type: formType, Vary: "Accept"}}, nil
		},
		ExplainFallback: func(_ context.Context, r *http.Request) (field, why string, err error) {
			if r.URL.Path == "/b.html" && r.Header.Get("Accept") == formType {
				return "X-Form-Missing", "shapeless", nil
			}
			return "", "", nil
		},
	}
}

// TestForms verifies that a page's URL returns the alternative form to clients that accept it,
// and the page to all others.
func TestForms(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		t.Run(fmt.Sprint("guarded ", guarded), func(t *testing.T) {
			var log bytes.Buffer
			var writes, finds atomic.Int64
			g := setup{
				files:     inMemory("index.html", "<p>home</p>", "a/index.html", "<p>page a</p>", "b.html", "<p>page b</p>"),
				protocols: []edition.Protocol{{Name: "forms", Publisher: forms{&writes, &finds}, Guarded: guarded}}, log: &log,
			}.gateway(t)
			const form, html = "the form of a", "<p>page a</p>"
			for i := range 3 {
				w := ask(g, http.MethodGet, "/a/", "Accept", formType, "Accept-Encoding", "gzip;q=0")
				want := form
				if guarded {
					want = html // no client has the key, so all get the page
				}
				if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
					t.Fatalf("request %d for the form: %d %.60q", i+1, w.Code, w.Body)
				}
				if vary := strings.Join(w.Header()["Vary"], ","); !strings.Contains(vary, "Accept") {
					t.Errorf("Vary: %s", vary)
				}
				w = ask(g, http.MethodGet, "/a/", "Accept", "text/html")
				if !strings.Contains(w.Body.String(), html) || !slices.Contains(w.Header()["Vary"], "Accept, Accept-Encoding") {
					t.Fatalf("request for the page: %.60q, Vary: %q", w.Body, w.Header()["Vary"])
				}
			}
			if n := writes.Load(); n > 1 {
				t.Errorf("the form was rendered %d times", n)
			}
			if n := finds.Load(); n > 1 && !guarded {
				t.Errorf("the form was looked up %d times", n)
			}
			if w := ask(g, http.MethodPost, "/a/", "Accept", "text/html"); w.Code != http.StatusMethodNotAllowed {
				t.Errorf("POST: %d", w.Code)
			}
			if !guarded {
				if w := ask(g, http.MethodGet, "/a/", "Accept", formType, "If-None-Match", `"form"`); w.Code != http.StatusNotModified {
					t.Errorf("with its validator: %d", w.Code)
				}
				if w := ask(g, http.MethodGet, "/a/form"); w.Header().Get("Cache-Control") == "private" || !strings.HasPrefix(w.Body.String(), form) {
					t.Errorf("at its own URL: %v", w.Header())
				}
			}
			for _, accept := range []string{formType, "text/html", formType} {
				w := ask(g, http.MethodGet, "/b.html", "Accept", accept)
				why, vary := w.Header().Get("X-Form-Missing"), slices.Contains(w.Header()["Vary"], "Accept")
				if asked := accept == formType; (why == "shapeless") != asked || vary != asked || !strings.Contains(w.Body.String(), "<p>page b") {
					t.Errorf("%s: %q, Vary %t: %.60q", accept, why, vary, w.Body)
				}
			}
			if n := strings.Count(log.String(), "shapeless"); n != 1 {
				t.Errorf("%d lines in the log:\n%s", n, log.String())
			}
		})
	}
}
