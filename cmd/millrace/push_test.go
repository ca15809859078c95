package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// serve notifies search engines of the changed page, and serves the key file.
func TestPushIndexNow(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	engine := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, string(body))
	}))
	defer engine.Close()
	dir := copySite(t, "handbook")
	s := serve(t, dir, "--indexnow", "--indexnow-url", engine.URL, "--indexnow-key", "0123456789abcdef", "--allow-private")
	if code, header, body := get(t, s.url+"0123456789abcdef.txt"); code != http.StatusOK || body != "0123456789abcdef" || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
		t.Errorf("key file: %d %q", code, body)
	}
	eventually(t, "unchanged pages were submitted", func() bool { return strings.Contains(s.out.String(), "0123456789abcdef.txt") })
	edit(t, dir, "Alderford is a mill", "Alderford was a mill")
	eventually(t, "the edit is submitted", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) > 0 })
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(got[0], `"urlList":["`+s.url+`about/"]`) {
		t.Errorf("submitted: %s", got)
	}
}

// serve rejects notifications that no search engine could use, and contradicting flags,
// at startup.
func TestPushUsage(t *testing.T) {
	t.Parallel()
	site := copySite(t, "handbook")
	s := serve(t, site)
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	pull(t, s.url, mirror)
	out := []string{"--base-url", "https://www.example.com/"}
	for _, tt := range []struct {
		args []string
		code string
	}{
		{[]string{"serve", site, "--hub", "https://hub.example/"}, "usage/hub"},
		{[]string{"serve", site, "--indexnow"}, "usage/indexnow"},
		{append([]string{"serve", mirror, "--indexnow"}, out...), "usage/indexnow"},
		{append([]string{"serve", site, "--hub", "hub.example"}, out...), "usage/hub"},
		{append([]string{"serve", site, "--hub", "https://hub.example/", "--require-key"}, out...), "usage/hub"},
		{append([]string{"serve", site, "--indexnow-key", "0123456789"}, out...), "usage/indexnow-key"},
		{append([]string{"serve", site, "--indexnow", "--indexnow-key", "../key"}, out...), "usage/indexnow-key"},
		{append([]string{"serve", site, "--indexnow", "--indexnow-url", "ftp://example.com/"}, out...), "usage/indexnow"},
		{append([]string{"build", site, "--out", t.TempDir(), "--hub", "https://user:pass@hub.example/"}, out...), "usage/hub"},
		{[]string{"watch", "https://www.example.com/", "--callback", "http://127.0.0.1:8081/"}, "usage/callback"},
		{[]string{"watch", "https://www.example.com/", "--callback", "me.example"}, "usage/callback"},
	} {
		args := slices.Concat(tt.args, []string{"--store", filepath.Join(t.TempDir(), "s.db")})
		switch tt.args[0] {
		case "serve":
			args = append(args, "--listen", "127.0.0.1:0")
			if tt.args[1] == mirror {
				args = slices.DeleteFunc(args, func(a string) bool { return a == "--store" || strings.HasSuffix(a, "s.db") })
			}
		case "build":
			args = tt.args
		}
		if exit, code, out := failure(t, nil, args...); exit != exitUsage || code != tt.code || strings.Contains(out, "pass@") {
			t.Errorf("%q: exit %d %s, want %s:\n%s", tt.args, exit, code, tt.code, out)
		}
	}
}
