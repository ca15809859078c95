package fetch

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
)

func TestRedirects(t *testing.T) {
	hops := map[string]string{
		"/moved": "/end", "/loop": "/loop2", "/loop2": "/loop", "/self": "/self",
		"/ftp": "ftp://site.example/", "/js": "javascript:alert(1)",
		"/user": "http://hidden:secret@site.example/", "/none": "",
	}
	dial := memory(t, func(w http.ResponseWriter, r *http.Request) {
		if n := 0; strings.HasPrefix(r.URL.Path, "/n") && r.URL.Path != "/none" {
			_, _ = fmt.Sscanf(r.URL.Path, "/n%d", &n)
			hops[r.URL.Path] = fmt.Sprintf("/n%d", n+1)
			if n == 10 {
				hops[r.URL.Path] = "/end"
			}
		}
		if to, ok := hops[r.URL.Path]; ok {
			if to != "" {
				w.Header().Set("Location", to)
			}
			w.WriteHeader(http.StatusFound)
			return
		}
		if r.Header.Get("Referer") != "" {
			t.Error("a Referer was sent")
		}
		_, _ = w.Write([]byte("end"))
	})
	c := newClient(t, Options{Dial: dial})
	for path, text := range map[string]string{
		"/moved": "",
		"/n1":    "", // ten redirects
		"/n0":    "redirect-limit",
		"/loop":  "redirect-loop",
		"/self":  "redirect-loop",
		"/ftp":   "redirect-target",
		"/js":    "redirect-target",
		"/user":  "redirect-target",
	} {
		body, err := fetchBody(t, c, "http://site.example"+path)
		if text == "" {
			if err != nil || body != "end" {
				t.Errorf("%s: %q, %v", path, body, err)
			}
			continue
		}
		wantErr(t, err, millrace.ErrInvalid, text)
		if _, ok := errors.AsType[*RedirectError](err); !ok || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", path, err)
		}
	}
	resp, err := Do(t.Context(), c.HTTP(), get(t, "http://site.example/none"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	wantErr(t, CheckStatus(resp), millrace.ErrInvalid, "http-302")

	_, err = fetchBody(t, newClient(t, Options{Dial: dial, MaxRedirects: -1}), "http://site.example/moved")
	wantErr(t, err, millrace.ErrInvalid, "redirect-limit")
}

func TestRedirectLeavesHTTPS(t *testing.T) {
	plainText := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server was reached over http") }))
	defer plainText.Close()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			_, _ = w.Write([]byte(r.Proto))
			return
		}
		to := map[string]string{"/": "/end", "/down": plainText.URL, "/robots.txt": plainText.URL + "/robots.txt"}[r.URL.Path]
		http.Redirect(w, r, to, http.StatusMovedPermanently)
	}))
	secure.EnableHTTP2 = true
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	secure.StartTLS()
	defer secure.Close()
	c := newClient(t, Options{AllowPrivate: true})
	c.transport.TLSClientConfig = &tls.Config{RootCAs: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	if body, err := fetchBody(t, c, secure.URL); err != nil || body != "HTTP/2.0" {
		t.Errorf("%q, %v", body, err)
	}
	_, err := fetchBody(t, c, secure.URL+"/down")
	wantErr(t, err, millrace.ErrInvalid, "redirect-downgrade")
	// A robots.txt behind a refused redirect is unavailable, not absent.
	c.ignoreRobots = false
	_, err = fetchBody(t, c, secure.URL)
	wantErr(t, err, millrace.ErrUnavailable, "robots-unavailable")
	_, err = fetchBody(t, newClient(t, Options{AllowPrivate: true}), secure.URL)
	wantErr(t, err, millrace.ErrUnavailable, "certificate")
}

func TestRedirectCredentials(t *testing.T) {
	seen := make(map[string]string)
	c := newClient(t, Options{Dial: memory(t, func(w http.ResponseWriter, r *http.Request) {
		seen[r.Host+r.URL.Path] = r.Header.Get("Authorization") + r.Header.Get("Cookie")
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Set-Cookie", "a=b")
			http.Redirect(w, r, to, http.StatusFound)
		}
	})})
	q := url.QueryEscape
	for _, start := range []string{
		"http://a.example/?to=/same",
		"http://a.example/?to=http://a.example:80/port80",
		"http://a.example/?to=http://a.example:8080/port",
		"http://a.example/?to=http://sub.a.example/sub",
		"http://a.example/?to=" + q("http://b.example/?to=http://a.example/back"),
		"http://a.example/?to=" + q("http://a.example:8080/?to=http://a.example/back2"),
	} {
		req := get(t, start)
		req.Header.Set("Authorization", "Bearer key")
		resp, err := Do(t.Context(), c.HTTP(), req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	for at, want := range map[string]string{
		"a.example/": "Bearer key", "a.example/same": "Bearer key", "a.example:80/port80": "Bearer key",
		"a.example:8080/port": "", "sub.a.example/sub": "", "b.example/": "", "a.example/back": "", "a.example/back2": "",
	} {
		if got, ok := seen[at]; !ok || got != want {
			t.Errorf("%s returned %q (request sent: %t), want %q", at, got, ok, want)
		}
	}
}

func TestRedirectTarget(t *testing.T) {
	for name, c := range map[string]struct {
		code         int
		from, to     string
		want, reason string
	}{
		"200":                      {code: 200, to: "/b"},
		"304":                      {code: 304, to: "/b"},
		"300":                      {code: 300, to: "/b"},
		"301":                      {code: 301, to: "/b#c", want: "http://site.example/b#c"},
		"302":                      {code: 302, to: "?q", want: "http://site.example/x/a?q"},
		"303":                      {code: 303, to: "b", want: "http://site.example/x/b"},
		"307":                      {code: 307, to: "//other.example", want: "http://other.example"},
		"308":                      {code: 308, to: "https://site.example/x/a", want: "https://site.example/x/a"},
		"none":                     {code: 301},
		"unreadable":               {code: 301, to: "http://[x/%zz", reason: "redirect-target"},
		"not an http or https URL": {code: 301, to: "file:///etc/passwd", reason: "redirect-target"},
		"downgrade":                {code: 301, from: "https://site.example/", to: "http://site.example/", reason: "redirect-downgrade"},
		"credentials":              {code: 301, to: "http://hidden:secret@site.example/", reason: "redirect-target"},
	} {
		if c.from == "" {
			c.from = "http://site.example/x/a"
		}
		resp := response("", "Location", c.to)
		resp.StatusCode, resp.Request = c.code, get(t, c.from)
		got, err := RedirectTarget(resp)
		switch {
		case c.reason != "":
			wantErr(t, err, millrace.ErrInvalid, c.reason)
			if e, ok := errors.AsType[*RedirectError](err); !ok || e.From != c.from || got != nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		case err != nil, c.want == "" && got != nil, c.want != "" && (got == nil || got.String() != c.want):
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// The client of NoRedirects still applies all checks to each hop.
func TestNoRedirects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := obedient(t, Options{Delay: time.Second, Rand: zero, Dial: memory(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/robots.txt":
				_, _ = w.Write([]byte("user-agent: *\ndisallow: /private\ncrawl-delay: 7"))
			case "/1":
				http.Redirect(w, r, "/2", http.StatusFound)
			case "/2":
				http.Redirect(w, r, "/private", http.StatusFound)
			case "/3":
				http.Redirect(w, r, "http://10.0.0.1/", http.StatusFound)
			}
		})})
		followed := c.HTTP()
		client := NoRedirects(followed)
		began := time.Now()
		step := func(u, text string, kind error, took time.Duration) string {
			t.Helper()
			resp, err := Do(t.Context(), client, get(t, u))
			if d := time.Since(began); d != took {
				t.Errorf("%s after %s, want %s", u, d, took)
			}
			if kind != nil {
				wantErr(t, err, kind, text)
				return ""
			}
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			to, err := RedirectTarget(resp)
			if err != nil || to.String() != text {
				t.Fatalf("%v, %v", to, err)
			}
			return to.String()
		}
		u := step("http://site.example/1", "http://site.example/2", nil, time.Second)
		u = step(u, "http://site.example/private", nil, 8*time.Second)
		step(u, "robots-disallow", millrace.ErrForbidden, 8*time.Second)
		u = step("http://site.example/3", "http://10.0.0.1/", nil, 15*time.Second)
		step(u, "address-private", millrace.ErrForbidden, 15*time.Second)
		if _, err := Do(t.Context(), followed, get(t, "http://site.example/1")); !errors.Is(err, millrace.ErrForbidden) {
			t.Errorf("the original client: %v", err)
		}
	})
}
