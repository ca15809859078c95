package main

import (
	"io"
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

// wholeSite tests a site from outside: check finds only the expected broken rules, and
// a mirror has every page of the list.
func wholeSite(t *testing.T, url string, expected []string, wanted ...string) {
	t.Helper()
	if d := cmp.Diff(expected, brokenIn(t, url, wanted...)); d != "" {
		t.Errorf("broken rules (-expected +found):\n%s", d)
	}
	_, _, list := get(t, url+"llm-pages.json")
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	r := pull(t, url, mirror)
	if n := strings.Count(list, `"mUrl"`); n < 10 || r.Added != n || len(r.Skipped) != 0 {
		t.Errorf("%d pages in the list; %+v", n, r)
	}
	for u, p := range storedPages(t, mirror, url, url) {
		if p.Text() == "" || strings.Contains(u, "hush") {
			t.Errorf("%s: %d bytes of text", u, len(p.Text()))
		}
	}
	if best := pullBest(t, url, filepath.Join(t.TempDir(), "best.db")); best.Added == 0 || best.Via == "crawl" {
		t.Errorf("%+v", best)
	}
}

// unfollowed follows no redirects.
var unfollowed = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// A WordPress in three modes: alongside nginx and Caddy, as files, and in front of it.
func TestRealModesWordPress(t *testing.T) {
	t.Parallel()
	port := testkit.FreePort(t)
	url := "http://127.0.0.1:" + port + "/"
	behind, _ := realSite(t, "wordpress", "--pages", "15", "--home", url)
	names := regexp.MustCompile(`"cUrl":"([^"]*)"`)
	var pages [][]string // of the lists

	t.Run("alongside Caddy", func(t *testing.T) {
		s, direct := alongsideServer(t, "caddy", url, []string{"--html", copySite(t, "handbook"), "--site", behind}, []string{"--store", filepath.Join(t.TempDir(), "s.db")})
		wordPressAlongside(t, s, "caddy", behind, url)
		checkRejection(t, s, url, url, direct)
	})

	t.Run("alongside nginx", func(t *testing.T) {
		s, direct := alongsideServer(t, "nginx", url, []string{"--html", copySite(t, "handbook"), "--site", behind}, []string{"--store", filepath.Join(t.TempDir(), "s.db")})
		if !strings.Contains(s.out.String(), " site=") {
			t.Errorf("not read as a WordPress:\n%s", s.out)
		}
		looked, found, errs := command(t, nil, "init", url, filepath.Join(t.TempDir(), "millrace.yaml"), "--allow-private", "--json")
		if looked != 0 || !strings.Contains(found, `"as": "wordpress"`) || !strings.Contains(found, "snippet nginx") || !strings.Contains(found, `"generator": "WordPress `) {
			t.Errorf("init: exit %d\n%s%s", looked, found, errs)
		}
		sameLinks(t, url, direct)
		wordPressAlongside(t, s, "nginx", behind, url)
		_, _, list := get(t, url+"llm-pages.json")
		pages = names.FindAllStringSubmatch(list, -1)

		out, static := filepath.Join(t.TempDir(), "out"), testkit.FreePort(t)
		there := "http://127.0.0.1:" + static + "/"
		r := built(t, url, out, there, "--store", filepath.Join(t.TempDir(), "built.db"), "--allow-private", "--complete", "--host", "nginx")
		realSite(t, "nginx", "--build", "--html", out, "--port", static)
		_, _, list = get(t, there+"llm-pages.json")
		if d := cmp.Diff(pages, names.FindAllStringSubmatch(list, -1)); d != "" || r.Pages < len(pages) {
			t.Errorf("the built list has other pages (-alongside +built):\n%s", d)
		}
		if r := pull(t, there, filepath.Join(t.TempDir(), "mirror.db")); r.Added != len(pages) || len(r.Skipped) != 0 {
			t.Errorf("built: %+v", r)
		}
	})

	t.Run("in front", func(t *testing.T) {
		s := serve(t, url, "--origin", behind, "--listen", "127.0.0.1:"+port, "--store", filepath.Join(t.TempDir(), "s.db"))
		if s.url != url {
			t.Fatalf("the base is %s", s.url)
		}
		wholeSite(t, url, []string{}, "tct-00", "tct-01", "openfeeder", "arc", "web", "scp")
		_, _, list := get(t, url+"llm-pages.json")
		if d := cmp.Diff(pages, names.FindAllStringSubmatch(list, -1)); d != "" {
			t.Errorf("the list in front has other pages (-alongside +in front):\n%s", d)
		}
		if code, _, body := get(t, url+"robots.txt"); code != 200 || !strings.Contains(body, "wp-admin") || !strings.Contains(body, "arc-sitemap.json") {
			t.Errorf("robots.txt: %d %s", code, body)
		}
		// millrace changes only the links of a page.
		post := pages[len(pages)/2][1]
		own, before := askBehind(t, behind, url, post)
		res, after := askBehind(t, url, url, post)
		added := regexp.MustCompile(`<link rel="[a-z]+"[^>]*/>\n`).ReplaceAllStringFunc(after, func(s string) string {
			if strings.Contains(before, s) {
				return s
			}
			return ""
		})
		if own.StatusCode != http.StatusOK || res.StatusCode != http.StatusOK || added != before || after == before {
			t.Errorf("%s: %s, %s; the page has changed in more than its links (-before +after):\n%s", post, own.Status, res.Status, cmp.Diff(before, added))
		}
		if !slices.ContainsFunc(res.Header["Link"], func(l string) bool { return strings.Contains(l, "llm.json>") }) {
			t.Errorf("a Link to its document is missing: %v", res.Header)
		}
		// Other requests pass through: the API, and a login with its cookie.
		if code, h, body := get(t, url+"?rest_route=/wp/v2/posts&per_page=1"); code != 200 || !strings.Contains(h.Get("Content-Type"), "json") || !strings.HasPrefix(body, "[{") {
			t.Errorf("the API: %d %v %.200s", code, h, body)
		}
		login, err := unfollowed.Get(url + "wp-login.php")
		if err != nil {
			t.Fatal(err)
		}
		login.Body.Close()
		if login.StatusCode != http.StatusOK || len(login.Cookies()) == 0 {
			t.Errorf("the login: %s %v", login.Status, login.Header)
		}
		if admin, err := unfollowed.Get(url + "wp-admin/"); err != nil || admin.StatusCode != http.StatusFound || !strings.HasPrefix(admin.Header.Get("Location"), url+"wp-admin/") {
			t.Errorf("the administration: %v %v", admin, err)
		} else {
			admin.Body.Close()
		}
	})
}

// askBehind requests a page of the site at url from the server at base.
func askBehind(t *testing.T, base, url, page string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+strings.TrimPrefix(page, url), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = strings.Trim(strings.TrimPrefix(url, "http:"), "/")
	res, err := unfollowed.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := readAll(res)
	if err != nil {
		t.Fatal(err)
	}
	return res, b
}

// wordPressAlongside tests a WordPress behind a server that millrace runs alongside.
func wordPressAlongside(t *testing.T, s *served, server, behind, url string) {
	t.Helper()
	if !strings.Contains(s.out.String(), " site=") {
		t.Errorf("not read as a WordPress:\n%s", s.out)
	}
	wholeSite(t, url, []string{}, alongsideProtocols(server)...)
	if code, h, body := get(t, url+"robots.txt"); code != 200 || !strings.Contains(body, "wp-admin") || !strings.Contains(body, "arc-sitemap.json") {
		t.Errorf("robots.txt: %d %v %s", code, h, body)
	}
	_, _, list := get(t, url+"llm-pages.json")
	post := regexp.MustCompile(`"cUrl":"([^"]*)"`).FindAllStringSubmatch(list, -1)[5][1]
	_, before := askBehind(t, behind, url, post)
	negotiates(t, server, url, post, before)
	login, err := unfollowed.Get(url + "wp-login.php")
	if err != nil {
		t.Fatal(err)
	}
	login.Body.Close()
	if login.StatusCode != http.StatusOK || len(login.Cookies()) == 0 {
		t.Errorf("the login: %s %v", login.Status, login.Header)
	}
}

// millrace runs in front of a static site on nginx, with any compression.
func TestRealFrontStatic(t *testing.T) {
	t.Parallel()
	html := copySite(t, "handbook")
	behind, _ := realSite(t, "nginx", "--html", html)
	listen := "127.0.0.1:" + testkit.FreePort(t)
	url := "http://" + listen + "/"
	serve(t, url, "--origin", behind, "--listen", listen)
	wholeSite(t, url, []string{}, "tct-00", "tct-01", "openfeeder", "arc", "web", "scp")
	css, err := os.ReadFile(filepath.Join(html, "css", "style.css"))
	if err != nil {
		t.Fatal(err)
	}
	if code, h, body := get(t, url+"css/style.css", "Range", "bytes=10-29"); code != 206 || body != string(css[10:30]) || h.Get("Etag") == "" {
		t.Errorf("a range: %d %v %q", code, h, body)
	}
	_, own, _ := get(t, behind+"css/style.css", "Accept-Encoding", "gzip")
	code, h, body := get(t, url+"css/style.css", "Accept-Encoding", "gzip")
	if code != 200 || h.Get("Content-Encoding") != "gzip" || own.Get("Content-Encoding") != "gzip" || h.Get("Etag") != own.Get("Etag") || !strings.HasPrefix(body, "\x1f\x8b") {
		t.Errorf("compressed: %d %v, behind %v", code, h, own)
	}
	if code, h, _ := get(t, url+"css/style.css", "If-None-Match", h.Get("Etag")); code != 304 {
		t.Errorf("unmodified: %d %v", code, h)
	}
	if code, h, body := get(t, url+"about"); code != 301 || h.Get("Location") != url+"about/" {
		t.Errorf("a redirect: %d %v %s", code, h, body)
	}
	if code, _, body := get(t, url+"nothing"); code != 404 || !strings.Contains(body, "<h1>") {
		t.Errorf("the site's own 404 page: %d %s", code, body)
	}
}

func readAll(res *http.Response) (string, error) {
	b, err := io.ReadAll(res.Body)
	return string(b), err
}
