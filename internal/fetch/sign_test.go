package fetch

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace"
)

// Every request is signed when it is sent, including the one for robots.txt. Each redirect is
// signed for its own host.
func TestSign(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	note := func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.URL.Path+" "+r.Header.Get("Signature")+" "+r.Host)
	}
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { note(r) }))
	defer far.Close()
	near := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if note(r); r.URL.Path == "/a" {
			http.Redirect(w, r, far.URL+"/b", http.StatusFound)
		}
	}))
	defer near.Close()
	c := New(&Options{AllowPrivate: true, Sign: func(r *http.Request) error {
		if r.Header.Get("User-Agent") == "" || r.Header.Get("Signature") != "" {
			t.Errorf("%s is signed before its final form: %v", r.URL, r.Header)
		}
		if r.URL.Path == "/no" {
			return millrace.ErrConflict
		}
		r.Header.Set("Signature", "for "+r.URL.Host+r.URL.Path)
		return nil
	}})
	get := func(url string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := Do(t.Context(), c.HTTP(), req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if req.Header.Get("Signature") != "" {
			t.Error("the caller's request was changed")
		}
		return err
	}
	if err := get(near.URL + "/a"); err != nil {
		t.Fatal(err)
	}
	if err := get(near.URL + "/no"); !errors.Is(err, millrace.ErrConflict) {
		t.Errorf("got %v", err)
	}
	var want []string
	for _, u := range []string{near.URL + "/robots.txt", near.URL + "/a", far.URL + "/robots.txt", far.URL + "/b"} {
		host, path, _ := strings.Cut(strings.TrimPrefix(u, "http://"), "/")
		want = append(want, "/"+path+" for "+host+"/"+path+" "+host)
	}
	if !slices.Equal(seen, want) {
		t.Errorf("received %q\nwant %q", seen, want)
	}
	if n := c.Stats().Requests; n != 4 {
		t.Errorf("%d requests are counted", n)
	}
}

// The error of Check replaces the end of the body, also if another layer reads it. The request has
// ended before, so Check can send another one to the same host, even if the host gets one at a time.
func TestCheck(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/empty" {
			_, _ = io.WriteString(w, strings.Repeat("words ", 10000))
		}
	}))
	defer site.Close()
	wrong := errors.New("the response is wrong")
	var c *Client
	c = New(&Options{AllowPrivate: true, IgnoreRobots: true, Concurrency: 1, Check: func(resp *http.Response) (func(), error) {
		if resp.Request.URL.Path == "/keys" {
			return nil, nil
		}
		if _, err := fetchBody(t, c, site.URL+"/keys"); err != nil {
			return nil, err
		}
		if resp.Request.URL.RawQuery == "wrong" && resp.Header.Get("Content-Type") != "" {
			return nil, wrong
		}
		return nil, nil
	}})
	read := func(path string, layer bool) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := Do(t.Context(), c.HTTP(), req)
		if err != nil {
			return err
		}
		if layer {
			resp.Body, resp.Request = struct{ io.ReadCloser }{resp.Body}, nil
			resp.Header.Del("Content-Type")
		}
		_, err = ReadBody(resp, 0)
		return err
	}
	for _, layer := range []bool{false, true, false} {
		for path, want := range map[string]error{"/a": nil, "/a?wrong": wrong, "/empty": nil} {
			if err := read(path, layer); !errors.Is(err, want) {
				t.Errorf("%s, %v: %v", path, layer, err)
			}
		}
	}
}

// The function broken is called once if the body does not match its digest.
func TestCheckBroken(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Digest", "sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:") // of "hello"
		_, _ = io.WriteString(w, strings.TrimPrefix(r.URL.Path, "/"))
	}))
	defer site.Close()
	broken := 0
	c := New(&Options{AllowPrivate: true, IgnoreRobots: true, Check: func(*http.Response) (func(), error) {
		return func() { broken++ }, nil
	}})
	for path, want := range map[string]int{"/hello": 0, "/hallo": 1, "/": 1} {
		broken = 0
		if _, err := fetchBody(t, c, site.URL+path); (err != nil) != (want > 0) || broken != want {
			t.Errorf("%s: %v, broken was called %d times, want %d", path, err, broken, want)
		}
	}
}
