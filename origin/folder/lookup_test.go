package folder

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

func TestLookup(t *testing.T) {
	f, _ := site(t, map[string]string{
		"index.html": "home", "a/index.html": "a", "a/x.css": "css", "b.html": "b", "c.html": "c", "c/d.html": "d", "old/index.htm": "old",
		"both/index.html": "1", "both/index.htm": "2", "e.xhtml": "e", "f.htm": "f", "a b.html": "space", "100%.html": "per cent",
		"empty/": "", ".git/config": "git", ".env": "env", ".well-known/security.txt": "s", "_static/x.js": "js", "noext": "n",
		"g.html": "file", "g/index.html": "directory", "404.html": "not found", "b%.html": "b",
	})
	for _, tt := range []struct{ path, file, redirect string }{
		{"/", "index.html", ""},
		{"/a/", "a/index.html", ""},
		{"/a", "", "/a/"},
		{"/a/index.html", "", "/a/"},
		{"/index.html", "", "/"},
		{"/a/x.css", "a/x.css", ""},
		{"/a/x.css?v=3", "a/x.css", ""},
		{"/a?x=/../", "", "/a/"},
		{"/b", "b.html", ""},
		{"/b/", "b.html", ""},
		{"/b.html", "b.html", ""},
		{"/c", "c.html", ""}, // the directory has no index
		{"/c/", "c.html", ""},
		{"/c/d", "c/d.html", ""},
		{"/old", "", "/old/"},
		{"/old/", "old/index.htm", ""},
		{"/old/index.htm", "", "/old/"},
		{"/both/index.htm", "both/index.htm", ""},
		{"/e", "e.xhtml", ""},
		{"/f", "f.htm", ""},
		{"/a%20b.html", "a b.html", ""},
		{"/a%20b", "a b.html", ""},
		{"/100%25", "100%.html", ""},
		{"/%61/", "a/index.html", ""},
		{"/%61", "", "/a/"},
		{"/b%25", "b%.html", ""},
		{"/.well-known/security.txt", ".well-known/security.txt", ""},
		{"/_static/x.js", "_static/x.js", ""},
		{"/noext", "noext", ""},
		{"/g", "", "/g/"},
		{"/g/", "g/index.html", ""},
		{"/g.html", "g.html", ""},
		{"/404.html", "404.html", ""},
		{"", "", ""},
		{"a/", "", ""},
		{"/nothing", "", ""},
		{"/empty", "", ""},
		{"/empty/", "", ""},
		{"/.env", "", ""},
		{"/%2eenv", "", ""},
		{"/.git/config", "", ""},
		{"/%2E%2E/index.html", "", ""},
		{"/../index.html", "", ""},
		{"/a/./index.html", "", ""},
		{"//a/", "", ""},
		{"/a//", "", ""},
		{"/a%2Findex.html", "", ""},
		{"/b%00.html", "", ""},
		{"/b%", "", ""},
		{"/noext/", "", ""},
		{"/a/x.css/", "", ""},
		{"https://mill.example/a/", "", ""},
	} {
		file, redirect, err := f.Lookup(tt.path)
		if file != tt.file || redirect != tt.redirect || errors.Is(err, millrace.ErrNotFound) != (tt.file == "" && tt.redirect == "") {
			t.Errorf("Lookup(%q) = %q, %q, %v, want %q, %q", tt.path, file, redirect, err, tt.file, tt.redirect)
		}
		if redirect != "" {
			if file, again, err := f.Lookup(redirect); file == "" || again != "" || err != nil {
				t.Errorf("%q redirects to %q, which is %q, %q, %v", tt.path, redirect, file, again, err)
			}
		}
		if file != "" {
			h, err := f.Open(file)
			must(t, err)
			h.Close()
		}
	}
}

func TestOpen(t *testing.T) {
	f, _ := site(t, map[string]string{"index.html": "home", "a/b.txt": "text of b", ".env": "key"})
	for name, want := range map[string]error{
		".env": fs.ErrNotExist, "nothing": fs.ErrNotExist, "../x": fs.ErrInvalid, "/etc/passwd": fs.ErrInvalid, "a": millrace.ErrInvalid, ".": fs.ErrNotExist,
		"": fs.ErrInvalid, "a/../index.html": fs.ErrInvalid,
	} {
		h, err := f.Open(name)
		var pe *fs.PathError
		if !errors.Is(err, want) || !errors.As(err, &pe) || h != nil {
			t.Errorf("Open(%q) = %v, %v, want %v", name, h, err, want)
		}
	}
	b, err := fs.ReadFile(f, "a/b.txt")
	if err != nil || string(b) != "text of b" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestOpenLatin1 opens a page whose name is not UTF-8, on file systems that allow such names.
func TestOpenLatin1(t *testing.T) {
	f, dir := site(t, map[string]string{"index.html": "home"})
	if err := os.WriteFile(filepath.Join(dir, "caf\xe9.html"), []byte("coffee"), 0o600); err != nil {
		return // this file system requires UTF-8
	}
	file, _, err := f.Lookup("/caf%E9")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := fs.ReadFile(f, file); err != nil || string(b) != "coffee" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestServe serves the handbook as the gateway does.
func TestServe(t *testing.T) {
	f := open(t, "../../testdata/sites/handbook", nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, redirect, err := f.Lookup(r.URL.EscapedPath())
		switch {
		case err != nil:
			http.NotFound(w, r)
		case redirect != "":
			http.Redirect(w, r, redirect, http.StatusMovedPermanently)
		default:
			http.ServeFileFS(w, r, f, file)
		}
	}))
	defer srv.Close()
	for path, want := range map[string]struct {
		status   int
		end, typ string
	}{
		"/":                 {200, "/", "text/html"},
		"/docs/leat":        {200, "/docs/leat/", "text/html"},
		"/about/":           {200, "/about/", "text/html"},
		"/css/style.css":    {200, "/css/style.css", "text/css"},
		"/nothing":          {404, "/nothing", "text/plain"},
		"/images/ruler.png": {200, "/images/ruler.png", "image/png"},
	} {
		res, err := http.Get(srv.URL + path)
		must(t, err)
		n, _ := io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != want.status || res.Request.URL.Path != want.end || !strings.HasPrefix(res.Header.Get("Content-Type"), want.typ) || n == 0 {
			t.Errorf("%s: %d %s %q, %d bytes", path, res.StatusCode, res.Request.URL.Path, res.Header.Get("Content-Type"), n)
		}
	}
}
