package wordpress

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

const index = `{"home":"AT/blog","namespaces":["wp/v2"],"description":""}`

// answer is the response of a test server at a path.
type answer struct {
	status int // 0 = 200
	header map[string]string
	body   string // AT is replaced by the URL of the server
}

func serve(t *testing.T, answers map[string]answer, asked *[]string) *httptest.Server {
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.RequestURI())
		key := r.URL.Path
		if route := r.URL.Query().Get("rest_route"); route != "" {
			key += "?" + route
		}
		a, ok := answers[key]
		if !ok {
			a = answer{status: http.StatusNotFound, body: "<html>no such page"}
		}
		for k, v := range a.header {
			w.Header().Set(k, strings.ReplaceAll(v, "AT", s.URL))
		}
		if a.status != 0 {
			w.WriteHeader(a.status)
		}
		fmt.Fprint(w, strings.ReplaceAll(a.body, "AT", s.URL))
	}))
	t.Cleanup(s.Close)
	return s
}

func TestFind(t *testing.T) {
	header := map[string]string{"Link": `<AT/x>; rel=shortlink, <AT/blog/wp-json/>; rel="https://api.w.org/"`, "Content-Type": "text/html"}
	closed := answer{status: http.StatusUnauthorized, body: `{"code":"rest_login_required","message":"<b>Log in</b> first."}`}
	for _, tt := range []struct {
		name     string
		answers  map[string]answer
		home     string
		want     error
		says     string
		requests int
	}{
		{"by its header", map[string]answer{
			"/blog/a/": {header: header}, "/blog/wp-json/": {body: index},
		}, "/blog/", nil, "", 2},
		{"by the header of an error", map[string]answer{
			"/blog/a/": {status: 404, header: header}, "/blog/wp-json/": {body: index},
		}, "/blog/", nil, "", 2},
		{"by its HTML", map[string]answer{
			"/blog/a/":       {body: `<html><head><link rel='https://api.w.org/' href='/blog/wp-json/'>`},
			"/blog/wp-json/": {body: index},
		}, "/blog/", nil, "", 2},
		{"with plain links", map[string]answer{
			"/blog/a/":          {header: map[string]string{"Link": `<AT/blog/index.php?rest_route=/>; rel="https://api.w.org/"`}},
			"/blog/index.php?/": {body: index},
		}, "/blog/", nil, "", 2},
		{"that hides its links", map[string]answer{
			"/blog/a/":         {body: `<html><script src="AT/blog/wp-includes/js/a.js"></script>`},
			"/blog/a/wp-json/": {body: `<html>`},
			"/blog/a/?/":       {body: index},
		}, "/blog/", nil, "", 3},
		{"with a byte order mark", map[string]answer{
			"/blog/a/": {header: header}, "/blog/wp-json/": {body: "\ufeff\n" + index},
		}, "/blog/", nil, "", 2},
		{"none", map[string]answer{"/blog/a/": {body: `<html><p>Hello`}}, "", millrace.ErrNotFound, "no-wordpress", 1},
		{"no page", map[string]answer{}, "", millrace.ErrNotFound, "http-404", 1},
		{"down", map[string]answer{"/blog/a/": {status: 500}}, "", millrace.ErrUnavailable, "http-500", 1},
		{"API down", map[string]answer{"/blog/a/": {header: header}, "/blog/wp-json/": {status: 500}}, "", millrace.ErrUnavailable, "http-500", 2},
		{"API closed", map[string]answer{"/blog/a/": {header: header}, "/blog/wp-json/": closed}, "", millrace.ErrForbidden, "rest-login-required", 2},
		{"API gone", map[string]answer{"/blog/a/": {header: header}}, "", millrace.ErrNotFound, "http-404", 2},
		{"HTML instead of an API", map[string]answer{
			"/blog/a/": {header: header}, "/blog/wp-json/": {body: "<!DOCTYPE html><p>Welcome"},
		}, "", millrace.ErrNotFound, "html", 2},
		{"a plugin's warning", map[string]answer{
			"/blog/a/": {header: header}, "/blog/wp-json/": {body: "<br />\n<b>Warning</b>: in plugin.php" + index},
		}, "", millrace.ErrNotFound, "no-json", 2},
		{"another API", map[string]answer{
			"/blog/a/": {header: header}, "/blog/wp-json/": {body: `{"namespaces":["oembed/1.0"]}`},
		}, "", millrace.ErrNotFound, "no-wp-v2", 2},
		{"on another host", map[string]answer{
			"/blog/a/": {header: map[string]string{"Link": `<https://elsewhere.example/wp-json/>; rel="https://api.w.org/"`}},
		}, "", millrace.ErrNotFound, "other-host", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked []string
			s := serve(t, tt.answers, &asked)
			home, err := Find(t.Context(), s.Client(), s.URL+"/blog/a/")
			if !errors.Is(err, tt.want) || tt.want != nil && millrace.ErrorCode(err) != tt.says {
				t.Errorf("%v is not %v: code %q, want %q", err, tt.want, millrace.ErrorCode(err), tt.says)
			}
			if n := sentinels(err); tt.want != nil && n != 1 {
				t.Errorf("%v wraps %d sentinels", err, n)
			}
			if tt.home != "" && home != s.URL+tt.home {
				t.Errorf("the home is %q", home)
			}
			if len(asked) != tt.requests {
				t.Errorf("requested %q, want %d requests", asked, tt.requests)
			}
		})
	}
}

func sentinels(err error) (n int) {
	for _, s := range []error{
		millrace.ErrNotFound, millrace.ErrInvalid, millrace.ErrConflict, millrace.ErrUnavailable,
		millrace.ErrUnmodified, millrace.ErrForbidden, millrace.ErrTooLarge,
	} {
		if errors.Is(err, s) {
			n++
		}
	}
	return n
}

// If a site identifies itself as WordPress, all usual paths of the API are tried.
func TestUsualPlaces(t *testing.T) {
	var asked []string
	s := serve(t, map[string]answer{
		"/blog/":              {body: `<html lang="de-CH"><meta name="robots" content="max-image-preview:large, NOINDEX">`},
		"/blog/?/":            {body: index},
		"/blog/?/wp/v2/types": {body: `{"post":{"slug":"post","name":"Posts","rest_base":"posts"}}`},
		"/blog/?/wp/v2/posts": {header: map[string]string{"X-WP-Total": "1"}, body: `[{"id":3,"status":"publish","link":"AT/blog/?p=3",
			"modified_gmt":"2026-01-02T03:04:05","title":{"rendered":"A"},"content":{"rendered":"<p>B","protected":false}}]`},
	}, &asked)
	site, err := New(s.Client(), s.URL+"/blog", nil)
	if err != nil {
		t.Fatal(err)
	}
	puts := 0
	for c, err := range site.Changes(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if c.Page == nil {
			continue
		}
		puts++
		if c.URL != s.URL+"/blog/?p=3" || c.Location != s.URL+"/blog/?rest_route=/wp/v2/posts/3" || c.Page.Language != "de-CH" || !c.Page.Access.NoIndex {
			t.Errorf("%+v: %+v", c.Ref, c.Page)
		}
	}
	if puts != 1 {
		t.Errorf("%d pages, requested %q", puts, asked)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, root := range []string{"", "/blog/", "ftp://mill.example/", "https://user:word@mill.example/", "https://mill.example/?p=1"} {
		if _, err := New(nil, root, nil); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("New(%q): %v", root, err)
		}
	}
}

// The title is fetched after the first run, and again after a day.
func TestSiteTitle(t *testing.T) {
	f := newFake(t)
	f.fill(1)
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	site, err := New(&http.Client{}, f.Address(), &Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	title := func(want string) {
		t.Helper()
		if got, err := site.SiteTitle(t.Context()); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	title("")
	for range site.Changes(t.Context(), "") {
	}
	title("Tom & Jerry")
	f.Server.Close()
	title("Tom & Jerry")
	now = now.Add(24 * time.Hour)
	if _, err := site.SiteTitle(t.Context()); err == nil {
		t.Error("the title was not fetched after a day")
	}
}
