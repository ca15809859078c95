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
		"/n0":    "more than 10 redirects",
		"/loop":  "redirect from http://site.example/loop2 to http://site.example/loop not followed: it is a loop",
		"/self":  "it is a loop",
		"/ftp":   "not an http or https URL",
		"/js":    "not an http or https URL",
		"/user":  "to http://site.example/ not followed: the target has a user name",
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
	wantErr(t, CheckStatus(resp), millrace.ErrInvalid, "302 Found")

	_, err = fetchBody(t, newClient(t, Options{Dial: dial, MaxRedirects: -1}), "http://site.example/moved")
	wantErr(t, err, millrace.ErrInvalid, "more than 0 redirects")
}

func TestRedirectLeavesHTTPS(t *testing.T) {
	plainText := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached over http") }))
	defer plainText.Close()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			_, _ = w.Write([]byte(r.Proto))
			return
		}
		to := map[string]string{"/": "/end", "/down": plainText.URL}[r.URL.Path]
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
	wantErr(t, err, millrace.ErrInvalid, "it leaves https for http")
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
			t.Errorf("%s got %q (asked: %t), want %q", at, got, ok, want)
		}
	}
}
