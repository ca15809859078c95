package edition

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

// A page of the site is read once for each state, rendered once for each content, and
// cached once.
func TestPage(t *testing.T) {
	s := newTestServer(t, newMemSite(0), &memProtocol{}, nil)
	var reads, renders int
	get := func(state, content string, fields ...string) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, "/page?x=1", nil)
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		w := httptest.NewRecorder()
		err := s.Page(w, r, nil, "/page", "", state, func() (*millrace.Document, error) {
			reads++
			return &millrace.Document{Path: "/page", ETag: content, Write: func(_ context.Context, w io.Writer) error {
				renders++
				_, err := io.WriteString(w, strings.Repeat(content, 500))
				return err
			}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if w.Code == http.StatusOK && fields == nil && w.Body.String() != strings.Repeat(content, 500) {
			t.Fatalf("%q instead of %q", w.Body, content)
		}
		return w
	}
	for i, c := range []struct {
		state, content string
		reads, renders int
	}{
		{"1", "a", 1, 1},
		{"1", "a", 0, 0},
		{"2", "a", 1, 0}, // touched
		{"2", "a", 0, 0},
		{"", "a", 1, 0}, // without a state, the page is always read
		{"", "b", 1, 1},
		{"3", "b", 1, 0},
		{"4", "c", 1, 1},
		{"4", "c", 0, 0},
	} {
		reads, renders = 0, 0
		if w := get(c.state, c.content); w.Code != http.StatusOK || w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%d: %d %v", i, w.Code, w.Header())
		}
		if reads != c.reads || renders != c.renders {
			t.Errorf("%d: state %s of %q: %d reads and %d renderings, want %d and %d", i, c.state, c.content, reads, renders, c.reads, c.renders)
		}
	}
	reads, renders = 0, 0
	if w := get("4", "c", "If-None-Match", `"c"`); w.Code != http.StatusNotModified || reads+renders > 0 {
		t.Errorf("%d after %d reads and %d renderings", w.Code, reads, renders)
	}
	if n := s.cache.bytes(); n > 5000 {
		t.Errorf("one page takes %d bytes", n)
	}
}

// A page that changes between its validator and its bytes is read again. The validator
// always matches the bytes.
func TestPageChangesMeanwhile(t *testing.T) {
	s := newTestServer(t, newMemSite(0), &memProtocol{}, nil)
	now := "a"
	page := func(changes int) (*httptest.ResponseRecorder, error) {
		w := httptest.NewRecorder()
		err := s.Page(w, httptest.NewRequest(http.MethodGet, "/page", nil), nil, "/page", "", "", func() (*millrace.Document, error) {
			read := now
			if changes--; changes >= 0 {
				now += "a"
			}
			return &millrace.Document{Path: "/page", ETag: read, Write: func(_ context.Context, w io.Writer) error {
				if read != now {
					return ErrChanged
				}
				_, err := io.WriteString(w, read)
				return err
			}}, nil
		})
		return w, err
	}
	if w, err := page(2); err != nil || w.Body.String() != "aaa" || w.Header().Get("ETag") != `"aaa"` {
		t.Errorf("%v: %q %v", err, w.Body, w.Header())
	}
	s.DropCache()
	if w, err := page(100); !errors.Is(err, ErrChanged) || w.Body.Len() > 0 {
		t.Errorf("a page that changes at each read: %v, %q", err, w.Body)
	}
}
