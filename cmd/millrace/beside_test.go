package main

import (
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// snippetFile writes the output of `millrace snippet` to a file.
func snippetFile(t *testing.T, args ...string) string {
	t.Helper()
	code, text, errs := command(t, nil, append([]string{"snippet"}, args...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	name := filepath.Join(t.TempDir(), "snippet")
	write(t, name, text)
	return name
}

// beside starts `millrace serve` next to a site, at the address that the snippet uses.
func beside(t *testing.T, site, listen string, args ...string) *served {
	t.Helper()
	return serve(t, append([]string{site, "--base-url", site, "--listen", listen, "--allow-private", "--proxies", "127.0.0.1"}, args...)...)
}

// besideBroken lists the rules that fail next to a site, because millrace cannot change
// the site's HTML.
var besideBroken = []string{"tct-00/3.1/alternate-element"}

// sameThere compares every document of a build, fetched through the front server, with
// the same document fetched from millrace.
func sameThere(t *testing.T, url, direct, out string) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(out, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		path, err := filepath.Rel(out, name)
		if err != nil {
			return err
		}
		switch path = filepath.ToSlash(path); {
		case strings.HasPrefix(path, ".millrace/"), path == "_headers", path == "robots.txt", path == "sitemap.xml":
			return nil
		case strings.HasSuffix(path, "/llm/index.html"), path == "llm/index.html":
			path = strings.TrimSuffix(path, "index.html")
		}
		code, h, body := get(t, direct+path)
		if code != 200 { // the site's own, or only for static hosts
			return nil
		}
		n++
		there, header, same := get(t, url+path)
		if there != 200 || same != body || header.Get("Etag") != h.Get("Etag") || header.Get("Content-Type") != h.Get("Content-Type") {
			t.Errorf("/%s: %d, %s, %s, %d bytes; at millrace %s, %s, %d bytes", path, there, header.Get("Etag"), header.Get("Content-Type"), len(same), h.Get("Etag"), h.Get("Content-Type"), len(body))
		}
		return nil
	})
	if err != nil || n < 50 {
		t.Errorf("%v: %d documents", err, n)
	}
}

// sameLinks checks that the home page sends the same Link fields as millrace does.
func sameLinks(t *testing.T, url, direct string) {
	t.Helper()
	links := func(at string) []string {
		_, h, _ := get(t, at)
		var out []string
		for _, field := range h["Link"] {
			for link := range strings.SplitSeq(field, ", <") {
				if link = "<" + strings.TrimPrefix(link, "<"); !strings.HasPrefix(link, "<http") { // the page's own links
					out = append(out, link)
				}
			}
		}
		slices.Sort(out)
		return out
	}
	if d := cmp.Diff(links(direct), links(url)); d != "" {
		t.Errorf("links of the home page (-millrace +server):\n%s", d)
	}
}

// nginx or Caddy serves a static site, and millrace runs next to it.
func TestRealBesideStatic(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"nginx", "caddy"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			html, port, listen := copySite(t, "handbook"), freePort(t), "127.0.0.1:"+freePort(t)
			url := "http://127.0.0.1:" + port + "/"
			snippet := snippetFile(t, server, "--base-url", url, "--listen", listen)
			realSite(t, server, "--html", html, "--snippet", snippet, "--port", port)
			_, _, page := get(t, url+"about/")
			file := filepath.Join(t.TempDir(), "s.db")
			const key = "0123456789abcdef0123456789abcdef"
			beside(t, url, listen, "--store", file, "--indexnow", "--indexnow-key", key, "--indexnow-url", "http://127.0.0.1:1/")
			direct := "http://" + listen + "/"
			if code, _, body := get(t, url+key+".txt"); code != 200 || body != key {
				t.Errorf("the file of the key for search engines: %d %.200s", code, body)
			}

			out := filepath.Join(t.TempDir(), "out")
			built(t, html, out, url)
			sameThere(t, url, direct, out)
			sameLinks(t, url, direct)
			if _, h, after := get(t, url+"about/"); after != page || h.Get("Link") != "" {
				t.Errorf("page of the site differs: %v\n%s", h, after)
			}
			if d := cmp.Diff(besideBroken, brokenIn(t, url, "tct-00", "tct-01", "openfeeder", "arc", "web")); d != "" {
				t.Errorf("broken rules (-expected +found):\n%s", d)
			}
			mirror := filepath.Join(t.TempDir(), "mirror.db")
			if r := pullBest(t, url, mirror); r.Added == 0 || len(r.Skipped) != 0 {
				t.Errorf("%+v", r)
			}
			if code, _, body := get(t, url+"openfeeder?url=/about/"); code != 200 || !strings.Contains(body, `"openfeeder/1.0"`) {
				t.Errorf("a question: %d %.200s", code, body)
			}
			for path, want := range map[string]int{"nothing/llm.json": 404, "nothing": 404, "scp/none.scp": 404} {
				if code, _, _ := get(t, url+path); code != want {
					t.Errorf("/%s: %d", path, code)
				}
			}
			res, err := http.Post(url+"llm-pages.json", "text/plain", strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("POST: %s", res.Status)
			}
		})
	}
}
