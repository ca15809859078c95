package fetch

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

func parsed(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Requests for an origin in Behind go to its server, with the origin's name as Host. All other
// requests are checked as usual, including redirects.
func TestBehind(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/out":
			w.Header().Set("Location", "http://"+r.Context().Value(http.LocalAddrContextKey).(interface{ String() string }).String()+"/")
			w.WriteHeader(http.StatusFound)
		case "/robots.txt":
			_, _ = w.Write([]byte("User-agent: *\nDisallow: /no/\n"))
		default:
			_, _ = w.Write([]byte(r.Host + " " + r.Header.Get("X-Forwarded-Proto") + " " + r.URL.RequestURI()))
		}
	}))
	t.Cleanup(srv.Close)
	c := obedient(t, Options{Behind: map[string]*url.URL{
		"https://site.test": parsed(t, srv.URL), "http://site.test": parsed(t, srv.URL), "https://broken.test": {},
	}})
	for target, want := range map[string]string{
		"https://site.test/a%2Fb?q=%zz":     "site.test https /a%2Fb?q=%zz",
		"http://SITE.test:80/":              "SITE.test:80 http /",
		"https://site.test:443//x/../y?a;b": "site.test:443 https //x/../y?a;b",
	} {
		got, err := fetchBody(t, c, target)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", target, got, err, want)
		}
	}
	_, err := fetchBody(t, c, "https://site.test/no/x")
	wantErr(t, err, millrace.ErrForbidden, "robots-disallow")
	_, err = fetchBody(t, c, "http://site.test/out")
	wantErr(t, err, millrace.ErrForbidden, "address-loopback")
	_, err = fetchBody(t, c, srv.URL+"/")
	wantErr(t, err, millrace.ErrForbidden, "address-loopback")
	c.ignoreRobots = true
	_, err = fetchBody(t, c, "https://broken.test/")
	wantErr(t, err, millrace.ErrInvalid, "no-upstream")
}

func TestUpstream(t *testing.T) {
	slow := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-slow
		}
		_, _ = w.Write([]byte(r.Host))
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(slow) })
	tr, err := Upstream(parsed(t, srv.URL), &UpstreamOptions{Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.CloseIdleConnections)
	// Every request goes to the configured server, whatever host it names.
	resp, err := tr.RoundTrip(get(t, "http://169.254.169.254/latest"))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := ReadBody(resp, 0); err != nil || string(body) != "169.254.169.254" {
		t.Errorf("%q, %v", body, err)
	}
	if resp, err := tr.RoundTrip(get(t, srv.URL+"/slow")); err == nil {
		resp.Body.Close()
		t.Error("a server that never responds has responded")
	} else if !IsTimeout(err) {
		t.Errorf("not a timeout: %v", err)
	}
	for raw, want := range map[string]string{"ftp://x.test/": "bad-scheme", "http://u:p@x.test/": "url-credentials", "http:///x": "bad-url"} {
		if _, err := Upstream(parsed(t, raw), nil); millrace.ErrorCode(err) != want {
			t.Errorf("%s: %v: code %q, want %q", raw, err, millrace.ErrorCode(err), want)
		}
	}
	// A cloud metadata address is refused.
	cloud, err := Upstream(parsed(t, "http://169.254.169.254/"), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err = cloud.RoundTrip(get(t, "http://x.test/"))
	if err == nil {
		resp.Body.Close()
	}
	wantErr(t, err, millrace.ErrForbidden, "address-metadata")
	if IsTimeout(err) {
		t.Error("a refused address counts as a timeout")
	}
}
