package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// The key of a pull goes to the site that it names, and wrong ones are refused
// without being shown.
func TestPullKey(t *testing.T) {
	var shown string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("Authorization"); key != "" {
			shown = key
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
	if _, _, errs := command(t, nil, append(args, "--key-file", good)...); shown != "Bearer mill_file" {
		t.Errorf("the server was shown %q: %s", shown, errs)
	}
	shown = ""
	if _, _, errs := command(t, map[string]string{"MILLRACE_KEY": "mill_env"}, args...); shown != "Bearer mill_env" {
		t.Errorf("the server was shown %q: %s", shown, errs)
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

// Whoever checks a site shows the key, but not for what has to be public.
func TestCheckKey(t *testing.T) {
	shown := map[string]bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown[r.URL.Path] = r.Header.Get("Authorization") == "Bearer mill_file"
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
	if code, out, errs := command(t, nil, append(args, file)...); code != exitFailure || !shown["/openfeeder"] || shown["/.well-known/openfeeder.json"] {
		t.Errorf("exit %d, shown %v: %s%s", code, shown, out, errs)
	}
	if code, out, errs := command(t, nil, append(args, filepath.Join(file, "none"))...); code != exitUsage {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}
