package main

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/testkit"
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

// alongsideServer starts nginx or Caddy with a site, according to the options of its script, and
// `millrace serve` alongside.
func alongsideServer(t *testing.T, server, url string, options, args []string) (s *served, direct string) {
	t.Helper()
	listen := "127.0.0.1:" + testkit.FreePort(t)
	port := strings.TrimSuffix(url[strings.LastIndexByte(url, ':')+1:], "/")
	snippet := snippetFile(t, server, url, "--listen", listen)
	realSite(t, server, append([]string{"--snippet", snippet, "--port", port}, options...)...)
	if server == "caddy" {
		args = append(args, "--no-head-elements")
	}
	s = serve(t, append([]string{url, "--base-url", url, "--listen", listen, "--allow-private", "--proxies", "127.0.0.1"}, args...)...)
	asked(t, url)
	return s, "http://" + listen + "/"
}

// asked waits until the server sends requests to millrace. Caddy pauses after a failure.
func asked(t *testing.T, url string) {
	t.Helper()
	eventually(t, "the server sends requests to millrace", func() bool { code, _, _ := get(t, url+"llms.txt"); return code == http.StatusOK })
}

// alongsideProtocols lists the protocols that a site has alongside a server. Caddy cannot add
// elements to HTML, which draft-00 of TCT requires.
func alongsideProtocols(server string) []string {
	protocols := []string{"tct-01", "scp", "openfeeder", "arc", "web"}
	if server == "nginx" {
		protocols = append(protocols, "tct-00")
	}
	return protocols
}

// negotiates checks the responses at the address of a page, and that its HTML stays the same
// except for its links.
func negotiates(t *testing.T, server, url, page, before string) {
	t.Helper()
	for _, tt := range []struct {
		accept   string
		markdown bool
	}{
		{"text/markdown", true},
		{"text/markdown, text/html;q=0.9, */*;q=0.1", true},
		{"text/markdown;q=0.5, text/html", false},
		{"text/markdown;q=0", false},
		{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false},
		{"*/*", false},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r, err := http.NewRequestWithContext(t.Context(), method, page, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", tt.accept)
			res, err := unfollowed.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := readAll(res)
			res.Body.Close()
			h, kind := res.Header, "text/html"
			if tt.markdown {
				kind = "text/markdown"
			}
			varies := strings.Join(h["Vary"], ",")
			if err != nil || res.StatusCode != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), kind) || !strings.Contains(varies, "Accept") || tt.markdown && !strings.Contains(h.Get("Cache-Control"), "private") {
				t.Errorf("%s with %q: %v, %s, %v", method, tt.accept, err, res.Status, h)
			}
			if tt.markdown == strings.Contains(body, "<body") && method == http.MethodGet {
				t.Errorf("%s with %q:\n%s", method, tt.accept, body)
			}
		}
	}
	_, h, body := get(t, page)
	var links []string
	plain := regexp.MustCompile(`<link rel="[a-z]+"[^>]*/>\n?`).ReplaceAllStringFunc(body, func(s string) string {
		if strings.Contains(before, s) {
			return s
		}
		links = append(links, s)
		return ""
	})
	if plain != before || (len(links) > 0) != (server == "nginx") || !slices.ContainsFunc(h["Link"], func(l string) bool { return strings.Contains(l, "llm.json>") }) {
		t.Errorf("%s has %q, %v; without the links:\n%s", page, links, h, cmp.Diff(before, plain))
	}
	_, h, _ = get(t, page, "Accept", "text/markdown")
	if code, h, _ := get(t, page, "Accept", "text/markdown", "If-None-Match", h.Get("Etag")); code != http.StatusNotModified || !strings.Contains(strings.Join(h["Vary"], ","), "Accept") {
		t.Errorf("Markdown that the client has: %d %v", code, h)
	}
	if code, h, _ := get(t, url+".millrace/page", "X-Forwarded-Uri", "/", "X-Forwarded-Method", "GET"); code == http.StatusNoContent || code == http.StatusForbidden || h.Get("Millrace-Page") != "" {
		t.Errorf("visitors can reach /.millrace/page: %d %v", code, h)
	}
	if code, h, body := get(t, page, "Accept", "text/markdown", "Millrace-Read", "site"); code != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), "text/markdown") {
		t.Errorf("with a forged mark: %d %v\n%s", code, h, body)
	}
}

// checkRejection restarts millrace alongside the server, with rules for bots, and then stops it.
// The site must still work.
func checkRejection(t *testing.T, s *served, url, page, direct string) {
	t.Helper()
	listen := strings.TrimSuffix(strings.TrimPrefix(direct, "http://"), "/")
	args := []string{url, "--base-url", url, "--listen", listen, "--allow-private", "--proxies", "127.0.0.1", "--store", filepath.Join(t.TempDir(), "s.db")}
	s.stop()
	if code, h, body := get(t, page, "Accept", "text/markdown"); code != http.StatusOK || !strings.Contains(body, "<body") || h.Get("Link") != "" && strings.Contains(h.Get("Link"), "llm.json") {
		t.Errorf("millrace is down: %d %v\n%s", code, h, body)
	}
	s = serve(t, append(args, "--bot", "ClaudeBot=403", "--bot", "CCBot=402", "--bot", "Bytespider=0.1/s")...)
	asked(t, url)
	for _, tt := range []struct {
		agent string
		want  int
	}{
		{"ClaudeBot/1.0", 403}, {"CCBot/2.0", 402}, {"Mozilla/5.0 Firefox/128.0", 200},
	} {
		if code, _, body := get(t, page, "User-Agent", tt.agent); code != tt.want || (code != 200) == strings.Contains(body, "<body") {
			t.Errorf("%s: %d\n%s", tt.agent, code, body)
		}
	}
	var codes []int
	for range 4 {
		code, _, _ := get(t, page, "User-Agent", "Bytespider")
		codes = append(codes, code)
	}
	if codes[0] != 200 || codes[3] != 429 {
		t.Errorf("a bot with a rate: %v", codes)
	}
	s.stop()
	if code, _, body := get(t, page, "User-Agent", "ClaudeBot/1.0"); code != 200 || !strings.Contains(body, "<body") {
		t.Errorf("millrace is down: %d\n%s", code, body)
	}
}

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
		if code != 200 { // a file of the site itself, or one for static hosts only
			return nil
		}
		n++
		there, header, same := get(t, url+path)
		if there != 200 || same != body || header.Get("Etag") != h.Get("Etag") || header.Get("Content-Type") != h.Get("Content-Type") {
			t.Errorf("/%s: %d, %s, %s, %d bytes; from millrace %s, %s, %d bytes", path, there, header.Get("Etag"), header.Get("Content-Type"), len(same), h.Get("Etag"), h.Get("Content-Type"), len(body))
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

// nginx or Caddy serves a static site, and millrace runs alongside.
func TestRealAlongsideStatic(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"nginx", "caddy"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			html := copySite(t, "handbook")
			url := "http://127.0.0.1:" + testkit.FreePort(t) + "/"
			password, err := newPassword()
			if err != nil {
				t.Fatal(err)
			}
			const key = "0123456789abcdef0123456789abcdef"
			s, direct := alongsideServer(t, server, url, []string{"--html", html}, []string{"--store", filepath.Join(t.TempDir(), "s.db"), "--indexnow", "--indexnow-key", key, "--indexnow-url", "http://127.0.0.1:1/", "--dashboard", "/millrace", "--dashboard-password", password.Hash})
			eventually(t, "the URL of the dashboard on millrace itself is printed", func() bool { return strings.Contains(s.out.String(), "dashboard "+direct+"millrace/\n") })
			o := newOwner(t, url+"millrace/")
			o.complete("login")
			if !o.logIn(password.Password) {
				t.Error("the password is rejected")
			}
			o.complete("")
			if code, _, body := get(t, url+key+".txt"); code != 200 || body != key {
				t.Errorf("the file of the key for search engines: %d %.200s", code, body)
			}
			before, err := os.ReadFile(filepath.Join(html, "about", "index.html"))
			if err != nil {
				t.Fatal(err)
			}
			negotiates(t, server, url, url+"about/", string(before))

			out := filepath.Join(t.TempDir(), "out")
			built(t, html, out, url, "--complete")
			sameThere(t, url, direct, out)
			sameLinks(t, url, direct)
			if d := cmp.Diff([]string{}, brokenIn(t, url, alongsideProtocols(server)...)); d != "" {
				t.Errorf("broken rules (-expected +found):\n%s", d)
			}
			mirror := filepath.Join(t.TempDir(), "mirror.db")
			if r := pullBest(t, url, mirror); r.Added == 0 || len(r.Skipped) != 0 {
				t.Errorf("%+v", r)
			}
			if code, _, body := get(t, url+"openfeeder?url=/about/"); code != 200 || !strings.Contains(body, `"openfeeder/1.0"`) {
				t.Errorf("a question: %d %.200s", code, body)
			}
			for path, want := range map[string]int{"nothing/llm.json": 404, "nothing": 404, "scp/none.scp": 404, "css/style.css": 200} {
				if code, h, _ := get(t, url+path); code != want || h.Get("Link") != "" {
					t.Errorf("/%s: %d %v", path, code, h)
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
			_, h, _ := get(t, url+"about/")
			code, h, body := get(t, url+"about/", "If-None-Match", h.Get("Etag"))
			if code != http.StatusNotModified || body != "" || h.Get("Vary") != "Accept" || !strings.Contains(h.Get("Link"), "/about/index.md>") {
				t.Errorf("a page that the client has: %d %v", code, h)
			}
			checkRejection(t, s, url, url+"about/", direct)
		})
	}
}
