package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// carriedOf publishes the pages of a mirror at a base, and returns them reduced to the fields
// that a protocol carries.
func carriedOf(t *testing.T, via, mirror, name, base string) map[string]*millrace.Page {
	t.Helper()
	proto, err := protocols(via)
	if err != nil {
		t.Fatal(err)
	}
	pages, out := storedPages(t, copyStore(t, mirror), name, base), map[string]*millrace.Page{}
	site := millrace.Site{Base: base}
	if home := pages[base]; home != nil {
		site.Language = home.Language
	}
	for u, p := range pages {
		if c := proto[0].Carry(site, p); c != nil {
			c.Version = ""
			out[u] = c
		}
	}
	return out
}

// A mirror that was pulled by SCP is published by every other protocol: at its own URLs, at
// another host, and built for a static host. Each reader receives the fields that its protocol
// carries.
func TestTranslate(t *testing.T) {
	t.Parallel()
	s := serve(t, copySite(t, "handbook"))
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	if r := pullBest(t, s.url, mirror, "--via", "scp"); r.Added < 10 || len(r.Skipped) > 0 {
		t.Fatalf("%+v", r)
	}
	s.stop()
	out := filepath.Join(t.TempDir(), "out")
	files := httptest.NewServer(http.FileServer(http.Dir(out)))
	defer files.Close()
	for _, c := range []struct {
		base   string
		logged int
	}{{files.URL + "/", 1}, {s.url, 0}} {
		code, _, errs := command(t, nil, "build", copyStore(t, mirror), "--out", t.TempDir(), "--base-url", c.base)
		if code != 0 || strings.Count(errs, " url=") != c.logged {
			t.Errorf("%s: exit %d: %s", c.base, code, errs)
		}
	}
	built(t, copyStore(t, mirror), out, files.URL+"/", "--rehost", "--complete")
	moved := serve(t, copyStore(t, mirror), "--rehost")
	same := serve(t, copyStore(t, mirror), "--listen", strings.Trim(strings.TrimPrefix(s.url, "http:"), "/"))
	if same.url != s.url {
		t.Fatalf("%s differs from %s", same.url, s.url)
	}
	for _, c := range []struct{ at, from, via string }{
		{"the same URLs", same.url, "openfeeder"},
		{"the same URLs", same.url, "tct-01"},
		{"the same URLs", same.url, "arc"},
		{"elsewhere", moved.url, "openfeeder"},
		{"elsewhere", moved.url, "tct-01"},
		{"elsewhere", moved.url, "tct-00"},
		{"elsewhere", moved.url, "arc"},
		{"elsewhere", moved.url, "scp"},
		{"in files", files.URL + "/", "tct-00"},
		{"in files", files.URL + "/", "arc"},
		{"in files", files.URL + "/", "scp"},
	} {
		t.Run(c.at+" "+c.via, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "translated.db")
			if r := pullBest(t, c.from, file, "--via", c.via); len(r.Skipped) > 0 {
				t.Errorf("%+v", r)
			}
			want, got := carriedOf(t, c.via, mirror, s.url, c.from), storedPages(t, file, c.from, c.from)
			for _, p := range got {
				p.Version = ""
			}
			if len(want) < 10 {
				t.Fatalf("%d pages", len(want))
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-Carry of the mirror +read pages:\n%.3000s", d)
			}
		})
	}
}
