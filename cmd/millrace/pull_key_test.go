package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/agent"
)

// pull sends its key only to the named site. It rejects wrong keys without printing
// them.
func TestPullKey(t *testing.T) {
	t.Parallel()
	var received string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("Authorization"); key != "" {
			received = key
		}
		http.NotFound(w, r)
	}))
	defer srv.Close()
	dir := t.TempDir()
	good, bad, empty := filepath.Join(dir, "good"), filepath.Join(dir, "bad"), filepath.Join(dir, "empty")
	write(t, good, "mill_file\nanything\n")
	write(t, bad, "secret and more\n")
	write(t, empty, "\n")
	args := []string{"pull", srv.URL, "--allow-private", "--via", "openfeeder", "--store", filepath.Join(dir, "m.db")}
	if _, _, errs := command(t, nil, append(args, "--key-file", good)...); received != "Bearer mill_file" {
		t.Errorf("the server received %q: %s", received, errs)
	}
	received = ""
	if _, _, errs := command(t, map[string]string{"MILLRACE_KEY": "mill_env"}, args...); received != "Bearer mill_env" {
		t.Errorf("the server received %q: %s", received, errs)
	}
	for name, more := range map[string][]string{
		"no key":      {"--key-file", bad},
		"no line":     {"--key-file", empty},
		"no file":     {"--key-file", filepath.Join(dir, "none")},
		"two servers": {"--key-file", good, "https://other.example/"},
	} {
		code, out, errs := command(t, nil, append(args, more...)...)
		if code != exitUsage || strings.Contains(out+errs, "secret") || strings.Contains(out+errs, "mill_file") {
			t.Errorf("%s: exit %d: %s%s", name, code, out, errs)
		}
	}
}

// pull also sends the key when it fetches a page's HTML because the protocol lacks the page. It
// does not send it after a redirect to another site, and does not treat that response as a page.
func TestPullKeyFallback(t *testing.T) {
	t.Parallel()
	const html = `<!doctype html><html lang=en><title>The weir</title><main><h1>The weir</h1><p>It holds the water back, and the page about the flood.</p></main></html>`
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("another site received the key at %s", r.URL)
		}
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(html))
	}))
	defer stranger.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" && r.URL.Path != "/.well-known/openfeeder.json" && r.Header.Get("Authorization") != "Bearer mill_file" {
			http.Error(w, "a key is needed", http.StatusUnauthorized)
			return
		}
		body := `{"schema":"openfeeder/1.0","error":{"code":"SERVER_ERROR","message":"broken"}}`
		switch q := r.URL.Query(); {
		case r.URL.Path == "/.well-known/openfeeder.json":
			body = `{"version":"1.0","site":{"name":"Mill","url":"/","language":"en"},"feed":{"endpoint":"/openfeeder","type":"paginated"},"capabilities":["auth"]}`
		case r.URL.Path == "/openfeeder" && q.Has("url"):
			w.WriteHeader(http.StatusBadRequest)
		case r.URL.Path == "/openfeeder":
			body = `{"schema":"openfeeder/1.0","type":"index","page":1,"total_pages":1,"items":[{"url":"/weir/","title":"The weir"},{"url":"/away/","title":"Away"}]}`
		case r.URL.Path == "/weir/":
			w.Header().Set("Content-Type", "text/html")
			body = html
		case r.URL.Path == "/away/":
			http.Redirect(w, r, stranger.URL+"/", http.StatusFound)
			return
		default:
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(body))
	}))
	defer srv.Close()
	dir := t.TempDir()
	key, mirror := filepath.Join(dir, "key"), filepath.Join(dir, "m.db")
	write(t, key, "mill_file\n")
	_, out, errs := command(t, nil, "pull", srv.URL, "--allow-private", "--via", "openfeeder", "--store", mirror, "--key-file", key, "--json")
	var r agent.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	if r.Added != 1 || !slices.ContainsFunc(r.Ways, func(w agent.Way) bool { return w.Protocol == webCrawl && w.Pages == 1 }) {
		t.Errorf("%s%s", out, errs)
	}
	if p := storedPages(t, mirror, srv.URL+"/", srv.URL+"/")[srv.URL+"/weir/"]; p == nil || !strings.Contains(p.Text(), "the page about the flood") {
		t.Errorf("the mirror has %+v", p)
	}
}

// check sends the key, except for documents that must be public.
func TestCheckKey(t *testing.T) {
	t.Parallel()
	keySent := map[string]bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keySent[r.URL.Path] = r.Header.Get("Authorization") == "Bearer mill_file"
		if r.URL.Path == "/.well-known/openfeeder.json" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"version":"1.0","feed":{"endpoint":"/openfeeder"}}`))
			return
		}
		http.NotFound(w, r)
	}))
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "key")
	write(t, file, "mill_file\n")
	args := []string{"check", srv.URL, "--allow-private", "--protocol", "openfeeder", "--key-file"}
	if code, out, errs := command(t, nil, append(args, file)...); code != exitFailure || !keySent["/openfeeder"] || keySent["/.well-known/openfeeder.json"] {
		t.Errorf("exit %d, key sent %v: %s%s", code, keySent, out, errs)
	}
	if code, out, errs := command(t, nil, append(args, filepath.Join(file, "none"))...); code != exitUsage {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}
