package gateway

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/origin/folder"
)

// decoders undo the content codings.
var decoders = map[string]func(io.Reader) (io.Reader, error){
	"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
}

func decodedIn(t *testing.T, coding string, body []byte) string {
	t.Helper()
	r, err := decoders[coding](bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// onDisk returns a gateway of a folder on disk with one page.
func onDisk(t *testing.T, html string) (g *Gateway, file string) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "b.html")
	write(t, file, html, past)
	f, err := folder.New(dir, &folder.Options{Base: "https://x.test/"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return setup{files: f, pages: []*millrace.Page{page("/b.html", "B")}}.gateway(t), file
}

// write replaces a file by renaming, as most editors do.
func write(t *testing.T, file, html string, modified time.Time) {
	t.Helper()
	if err := os.WriteFile(file+"~", []byte(html), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file+"~", modified, modified); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+"~", file); err != nil {
		t.Fatal(err)
	}
}

// A page of a folder has the same content in each coding, with its own validator and ranges.
func TestPreparedCodings(t *testing.T) {
	html := "<html><head><title>B</title></head><body>" + strings.Repeat("<p>one paragraph of many", 200)
	g, _ := onDisk(t, html)
	plain := ask(g, "GET", "/b.html")
	want := strings.Replace(html, "</head>", `<link rel="alternate" type="application/json" href="https://x.test/b.html/llm.json"/>`+"\n</head>", 1)
	if plain.Body.String() != want {
		t.Fatalf("without coding: %q", plain.Body)
	}
	tags := map[string]bool{plain.Header().Get("ETag"): true}
	for _, c := range []string{"gzip", "br", "zstd"} {
		for i := range 2 {
			head := ask(g, "HEAD", "/b.html", "Accept-Encoding", c)
			w := ask(g, "GET", "/b.html", "Accept-Encoding", c)
			h, body := w.Header(), w.Body.Bytes()
			tag := h.Get("ETag")
			if i == 0 && tags[tag] || h.Get("Content-Encoding") != c || h.Get("Content-Length") != fmt.Sprint(len(body)) || h.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s: %v", c, h)
			}
			tags[tag] = true
			if head.Code != 200 || head.Header().Get("ETag") != tag || head.Header().Get("Content-Encoding") != c || head.Body.Len() > 0 {
				t.Errorf("HEAD in %s: %d %v", c, head.Code, head.Header())
			}
			if c != "br" && decodedIn(t, c, body) != want {
				t.Errorf("%s: %q", c, body)
			}
			if w := ask(g, "GET", "/b.html", "Accept-Encoding", c, "If-None-Match", tag); w.Code != 304 || w.Header().Get("ETag") != tag {
				t.Errorf("%s: %d with its validator", c, w.Code)
			}
			if w := ask(g, "GET", "/b.html", "Accept-Encoding", c, "Range", "bytes=3-9", "If-Range", tag); w.Code != 206 || !bytes.Equal(w.Body.Bytes(), body[3:10]) {
				t.Errorf("range in %s: %d", c, w.Code)
			}
			if w := ask(g, "GET", "/b.html", "Accept-Encoding", c, "Range", "bytes=3-9", "If-Range", plain.Header().Get("ETag")); w.Code != 200 {
				t.Errorf("range in %s of the page without coding: %d", c, w.Code)
			}
		}
	}
	if w := ask(g, "GET", "/b.html", "Accept-Encoding", "x-gzip"); w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("x-gzip: %v", w.Header())
	}
}

// The next request after a change gets the new page, even if the size and the time are the
// same, and even soon after another change.
func TestPreparedChanges(t *testing.T) {
	g, file := onDisk(t, "<p>version 0")
	seen := map[string]string{}
	for i := range 8 {
		html := fmt.Sprintf("<p>version %d", i)
		if i%2 == 0 {
			write(t, file, html, past)
		} else if err := os.WriteFile(file, []byte(html), 0o600); err != nil { // write in place
			t.Fatal(err)
		}
		for _, c := range []string{"identity", "gzip", "gzip"} {
			w := ask(g, "GET", "/b.html", "Accept-Encoding", c)
			got, tag := w.Body.String(), w.Header().Get("ETag")
			if c == "gzip" {
				got = decodedIn(t, c, w.Body.Bytes())
			}
			if !strings.HasSuffix(got, html) {
				t.Fatalf("version %d in %s: %q", i, c, got)
			}
			if of, had := seen[tag]; had && of != html+c {
				t.Fatalf("%q and %q have the same validator %[1]s", tag, of, html+c)
			}
			seen[tag] = html + c
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if w := ask(g, "GET", "/b.html"); w.Code != http.StatusNotFound {
		t.Errorf("a page that was removed: %d", w.Code)
	}
}

// settled is a folder whose files appear unchanged for a while. It counts lookups.
type settled struct {
	*folder.Folder
	lookups int
}

type settledInfo struct{ fs.FileInfo }

func (settledInfo) Sys() any { return nil }

func (f *settled) Lookup(path string) (file, redirect string, err error) {
	f.lookups++
	return f.Folder.Lookup(path)
}

func (f *settled) Stat(name string) (fs.FileInfo, error) {
	info, err := f.Folder.Stat(name)
	return settledInfo{info}, err
}

func (f *settled) Peek(name string) (fs.FileInfo, error) {
	info, err := f.Folder.Peek(name)
	return settledInfo{info}, err
}

// A cached page is the folder's file at the path, whatever other files exist. It needs no
// further lookup.
func TestPreparedPaths(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"index.html", "a.html", "a/index.html", "b.html", "c/index.htm", "d/index.html", "d/index.htm", "100%.html", "100%25.html"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, file, "<p>"+name, past)
	}
	opened, err := folder.New(dir, &folder.Options{Base: "https://x.test/"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	f := &settled{Folder: opened}
	g := setup{files: f}.gateway(t)
	pages := []struct {
		path, file string
		lookups    int // of the second request
	}{
		{"/", "index.html", 0},
		{"/a/", "a/index.html", 0},
		{"/a.html", "a.html", 0},
		{"/b.html", "b.html", 0},
		{"/b", "b.html", 1},
		{"/b/", "b.html", 1},
		{"/c/", "c/index.htm", 1},
		{"/d/", "d/index.html", 0},
		{"/d/index.htm", "d/index.htm", 1},
		{"/100%25.html", "100%.html", 1},
		{"/100%2525.html", "100%25.html", 1},
	}
	for again := range 2 {
		for _, p := range pages {
			f.lookups = 0
			if w := ask(g, "GET", p.path); w.Code != http.StatusOK || !strings.HasSuffix(w.Body.String(), "<p>"+p.file) {
				t.Errorf("%s: %d %q instead of %s", p.path, w.Code, w.Body, p.file)
			}
			if again == 1 && f.lookups != p.lookups {
				t.Errorf("%s was looked up %d times", p.path, f.lookups)
			}
		}
	}
	for path, want := range map[string]int{"/index.html": 301, "/a": 301, "/a/index.html": 301, "/none/": 404, "/../index.html": 404} {
		if w := ask(g, "GET", path); w.Code != want {
			t.Errorf("%s: %d instead of %d", path, w.Code, want)
		}
	}
	outside := filepath.Join(t.TempDir(), "b.html")
	write(t, outside, "<p>b.html", past.Add(time.Hour))
	if err := os.Remove(filepath.Join(dir, "b.html")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "b.html")); err != nil {
		return // symbolic links need a privilege on this system
	}
	if w := ask(g, "GET", "/b.html"); w.Code != http.StatusNotFound {
		t.Errorf("a link out of the folder: %d %q", w.Code, w.Body)
	}
}
