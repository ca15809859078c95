package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// behind is a site's own server and the gateway in front of it.
type behind struct {
	url string // of the gateway, without a trailing "/"
	g   *Gateway
	log *bytes.Buffer
}

// inFront starts a handler and a gateway in front of it, both on loopback.
func inFront(t *testing.T, site http.Handler, o proxy.Options, s setup, so *ServerOptions) *behind {
	t.Helper()
	origin := httptest.NewServer(site)
	t.Cleanup(origin.Close)
	return inFrontOf(t, origin.URL, o, s, so)
}

func inFrontOf(t *testing.T, origin string, o proxy.Options, s setup, so *ServerOptions) *behind {
	t.Helper()
	b := &behind{log: new(bytes.Buffer)}
	o.Logger = slog.New(slog.NewTextHandler(b.log, nil))
	p, err := proxy.New(origin, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	s.o.Origin = p
	b.g = s.gateway(t)
	ln, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.url = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	if so == nil {
		so = new(ServerOptions)
	}
	so.StopTimeout, so.Logger = time.Second, o.Logger
	go func() { done <- NewServer(b.g, so).Run(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		<-done // requests cut off by the shutdown do not fail the test
	})
	return b
}

// plainClient returns a client that neither follows redirects nor decodes bodies.
func plainClient(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{DisableCompression: true, ExpectContinueTimeout: 10 * time.Second}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// send sends a request over the network; header fields come in pairs.
func send(t *testing.T, method, url, body string, fields ...string) (*http.Response, string) {
	t.Helper()
	var b io.Reader
	if body != "" {
		b = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, b)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "Host" {
			r.Host = fields[i+1]
		} else {
			r.Header.Add(fields[i], fields[i+1])
		}
	}
	resp, err := plainClient(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(got)
}

// Requests for anything but machine documents go to the site's server, and its responses come
// back unchanged.
func TestProxyPasses(t *testing.T) {
	coded := new(bytes.Buffer)
	z := gzip.NewWriter(coded)
	_, _ = io.WriteString(z, "<html><head></head><body>unknown</body></html>")
	_ = z.Close()
	b := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/coded":
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("X-Asked", r.Header.Get("Accept-Encoding"))
			_, _ = w.Write(coded.Bytes())
		case "/file.bin":
			w.Header().Set("Etag", `"v1"`)
			http.ServeContent(w, r, "", past, strings.NewReader("0123456789"))
		case "/trailers":
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Trailer", "X-Sum")
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write(body)
			w.Header().Set("X-Sum", r.Trailer.Get("X-Given"))
			w.Header().Set(http.TrailerPrefix+"X-Late", "yes")
		default:
			body, _ := io.ReadAll(r.Body)
			w.Header().Add("Set-Cookie", "a=1; Path=/; HttpOnly")
			w.Header().Add("Set-Cookie", "b=2")
			w.Header()["X-Odd-Name"] = []string{"1", "2"}
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, "%s %s %s %d %s %s", r.Method, r.Host, r.RequestURI, len(body), r.Header.Get("Cookie"), r.Header.Get("Authorization"))
		}
	}), proxy.Options{}, setup{}, nil)

	// The body is larger than the gateway's own limit.
	large := strings.Repeat("x", 3<<20)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "PROPFIND"} {
		resp, got := send(t, method, b.url+"/wp-admin/post.php?a=1&b=%zz;c&d", large, "Host", "x.test", "Cookie", "s=1; t=2", "Authorization", "Basic Zm86YmFy")
		want := method + " x.test /wp-admin/post.php?a=1&b=%zz;c&d 3145728 s=1; t=2 Basic Zm86YmFy"
		if resp.StatusCode != http.StatusTeapot || got != want {
			t.Errorf("%d %q, want %q", resp.StatusCode, got, want)
		}
		if d := cmp.Diff([]string{"a=1; Path=/; HttpOnly", "b=2"}, resp.Header["Set-Cookie"]); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"1", "2"}, resp.Header["X-Odd-Name"]); d != "" {
			t.Error(d)
		}
	}
	resp, got := send(t, "GET", b.url+"/coded", "", "Accept-Encoding", "gzip, br")
	if got != coded.String() || resp.Header.Get("Content-Encoding") != "gzip" || resp.Header.Get("X-Asked") != "gzip, br" {
		t.Errorf("a coded page without links: %v", resp.Header)
	}
	resp, got = send(t, "GET", b.url+"/file.bin", "", "Range", "bytes=2-4", "If-Range", `"v1"`)
	if resp.StatusCode != http.StatusPartialContent || got != "234" || resp.Header.Get("Content-Range") != "bytes 2-4/10" {
		t.Errorf("range: %d %q %v", resp.StatusCode, got, resp.Header)
	}
	if resp, _ = send(t, "GET", b.url+"/file.bin", "", "If-None-Match", `"v1"`); resp.StatusCode != http.StatusNotModified {
		t.Errorf("condition: %d", resp.StatusCode)
	}
	if resp, _ = send(t, "HEAD", b.url+"/file.bin", ""); resp.ContentLength != 10 {
		t.Errorf("HEAD: %d", resp.ContentLength)
	}

	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/trailers", io.MultiReader(strings.NewReader("body"))) // a body of unknown length
	if err != nil {
		t.Fatal(err)
	}
	r.Trailer = http.Header{"X-Given": {"from the client"}}
	resp, err = plainClient(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "body" {
		t.Errorf("%q %v", body, err)
	}
	if resp.Trailer.Get("X-Sum") != "from the client" || resp.Trailer.Get("X-Late") != "yes" {
		t.Errorf("trailers: %v", resp.Trailer)
	}
}

// A page of the site gets its links and is otherwise unchanged.
func TestProxyPage(t *testing.T) {
	const html = "<!DOCTYPE html><html><head><title>A</title></head><body>the page</body></html>"
	asked := make(chan http.Header, 8)
	b := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead && r.URL.Path == "/" {
			return // the gateway probes the home page
		}
		asked <- r.Header
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Etag", `"v1"`)
		h.Set("Content-Digest", "sha-256=:x:")
		h.Set("Repr-Digest", "sha-256=:x:")
		h.Set("Link", `<https://api.example/>; rel="preconnect"`)
		if r.Header.Get("X-Fixed") != "" {
			h.Set("Cache-Control", "public, No-Transform")
		}
		http.ServeContent(w, r, "", past, strings.NewReader(html))
	}), proxy.Options{}, setup{}, nil)

	resp, got := send(t, "GET", b.url+"/a/", "", "Accept-Encoding", "gzip, br", "Range", "bytes=0-9", "If-Range", `"v1"`)
	h := <-asked
	if h.Get("Accept-Encoding") != "gzip" || h.Get("Range") != "" || h.Get("If-Range") != "" {
		t.Errorf("the site's server received %v", h)
	}
	element := `<link rel="alternate" type="application/json" href="https://x.test/a/llm.json"/>` + "\n"
	want := strings.Replace(html, "</head>", element+"</head>", 1)
	if resp.StatusCode != http.StatusOK || got != want {
		t.Errorf("%d %q, want %q", resp.StatusCode, got, want)
	}
	tag := resp.Header.Get("Etag")
	if !strings.HasPrefix(tag, `W/"v1~`) || len(resp.Header["Link"]) < 2 {
		t.Errorf("%v", resp.Header)
	}
	if resp.ContentLength >= 0 && resp.ContentLength != int64(len(want)) {
		t.Errorf("a length of %d", resp.ContentLength)
	}
	for _, name := range []string{"Accept-Ranges", "Content-Digest", "Repr-Digest"} {
		if resp.Header.Get(name) != "" {
			t.Errorf("%s: %s", name, resp.Header.Get(name))
		}
	}
	resp, _ = send(t, "GET", b.url+"/a/", "", "If-None-Match", tag)
	if h := <-asked; resp.StatusCode != http.StatusNotModified || resp.Header.Get("Etag") != tag || h.Get("If-None-Match") != `W/"v1"` {
		t.Errorf("%d %v, requested with %v", resp.StatusCode, resp.Header, h)
	}
	if resp, _ = send(t, "GET", b.url+"/a/", "", "If-None-Match", `"v1"`); resp.StatusCode != http.StatusOK {
		t.Errorf("the validator of the page without links matches the page with links: %d", resp.StatusCode)
	}
	<-asked
	resp, got = send(t, "HEAD", b.url+"/a/", "")
	if <-asked; got != "" || resp.Header.Get("Etag") != tag || resp.ContentLength != -1 {
		t.Errorf("HEAD: %q %v", got, resp.Header)
	}
	// With no-transform, the body is unchanged; the Link fields are still added.
	resp, got = send(t, "GET", b.url+"/a/", "", "X-Fixed", "1")
	if <-asked; got != html || resp.Header.Get("Etag") != `"v1"` || len(resp.Header["Link"]) < 2 || resp.ContentLength != int64(len(html)) {
		t.Errorf("no-transform: %q %v", got, resp.Header)
	}
	// A page without documents is unchanged, including its ranges.
	resp, got = send(t, "GET", b.url+"/unknown/", "", "Range", "bytes=0-9", "Accept-Encoding", "br")
	if h := <-asked; resp.StatusCode != http.StatusPartialContent || got != html[:10] || h.Get("Accept-Encoding") != "br" {
		t.Errorf("%d %q %v", resp.StatusCode, got, h)
	}
	// With a query, such as for a search or a draft, a server returns another page.
	for _, target := range []string{"/a/?s=mill", "/?p=7&preview=true"} {
		resp, got = send(t, "GET", b.url+target, "", "Range", "bytes=0-9")
		if <-asked; resp.StatusCode != http.StatusPartialContent || got != html[:10] {
			t.Errorf("%s: %d %q", target, resp.StatusCode, got)
		}
		resp, _ = send(t, "GET", b.url+target, "")
		if <-asked; len(resp.Header["Link"]) != 1 {
			t.Errorf("%s: %v", target, resp.Header["Link"])
		}
	}
}

// In HTTP/1.0, the end of the connection is the end of a page of unknown length.
func TestProxyOldClient(t *testing.T) {
	b := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<head></head>old")
	}), proxy.Options{}, setup{}, nil)
	got := raw(t, b.url, "GET /a/ HTTP/1.0\r\nHost: x.test\r\n\r\n")
	if !strings.Contains(got, "Content-Length: 16\r\n") || !strings.Contains(got, "\r\nLink: ") || !strings.HasSuffix(got, "\r\n\r\n<head></head>old") {
		t.Errorf("%s", got)
	}
}

// raw sends bytes and returns everything received until the connection ends. The last request
// must ask to close it.
func raw(t *testing.T, url, request string) string {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Minute))
	got, _ := io.ReadAll(c) // the error does not matter
	return string(got)
}

// A redirect to the address of the site's server is rewritten to the site.
func TestProxyRedirects(t *testing.T) {
	var origin string
	b := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin = r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()
		_, port, _ := net.SplitHostPort(origin)
		w.Header().Set("Location", map[string]string{
			"/own": "http://" + origin + "/dir/?q#f", "/port": "http://x.test:" + port + "/dir/", "/path": "/dir/",
			"/other": "http://other.test/dir/", "/tls": "https://" + origin + "/dir/", "/none": "http://" + origin,
		}[r.URL.Path])
		w.WriteHeader(http.StatusMovedPermanently)
	}), proxy.Options{}, setup{unready: true}, nil)
	for path, want := range map[string]string{
		"/own": "http://x.test/dir/?q#f", "/port": "http://x.test/dir/", "/path": "/dir/", "/other": "http://other.test/dir/",
		"/tls": "https://ORIGIN/dir/", "/none": "http://x.test",
	} {
		resp, _ := send(t, "GET", b.url+path, "", "Host", "x.test")
		if want = strings.Replace(want, "ORIGIN", origin, 1); resp.Header.Get("Location") != want {
			t.Errorf("%s: %q, want %q", path, resp.Header.Get("Location"), want)
		}
	}
}

// The page that the root redirects to has the site's links, once the redirect is known.
func TestProxyHome(t *testing.T) {
	requests := make(chan string, 8)
	b := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			requests <- r.Host + r.URL.Path
		}
		if r.URL.Path == "/blog/" {
			w.Header().Set("Location", "http://"+r.Host+"/blog/en/?v=1")
			w.WriteHeader(http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html")
	}), proxy.Options{Base: "http://x.test/blog/", Hosts: []string{"x.test"}}, setup{base: "http://x.test/blog/"}, nil)
	const index = `rel="index"`
	for deadline := time.Now().Add(5 * time.Minute); ; {
		resp, _ := send(t, "GET", b.url+"/blog/en/?v=1", "", "Host", "x.test")
		if strings.Contains(strings.Join(resp.Header["Link"], ","), index) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the home page has no links: %v", resp.Header)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if a, b := <-requests, <-requests; a != "x.test/blog/" || b != "x.test/blog/en/" {
		t.Errorf("%s, %s", a, b)
	}
	// Requests outside of the base are forwarded, too, without links.
	resp, _ := send(t, "GET", b.url+"/shop/", "", "Host", "x.test")
	if resp.StatusCode != http.StatusOK || resp.Header["Link"] != nil {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

func TestProxyForwards(t *testing.T) {
	var got http.Header
	p, err := proxy.New("http://127.0.0.1:1", &proxy.Options{
		Base: "https://x.test/", Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Transport: protocoltest.Transport(func(r *http.Request) (*http.Response, error) {
			got = r.Header
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	forged := []string{
		"X-Forwarded-For", "198.51.100.9", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "evil.test", "X-Forwarded-Port", "1",
		"Forwarded", "for=1", "X-Real-IP", "198.51.100.9", "CF-Connecting-IP", "198.51.100.9", "True-Client-IP", "1", "X-Original-URL", "/admin",
		"X-Rewrite-URL", "/admin", "X_Forwarded_For", "198.51.100.9", "X_FORWARDED_HOST", "evil.test", "X_Real_IP", "1",
		"Connection", "X-Forwarded-For, Cookie2", "Cookie2", "x", "X-Other_Name", "kept",
	}
	for _, c := range []struct {
		remote string
		want   http.Header
	}{
		{"192.0.2.1:1000", http.Header{"X-Forwarded-For": {"192.0.2.1"}, "X-Forwarded-Proto": {"http"}, "X-Forwarded-Host": {"x.test"}}},
		{"10.0.0.1:1000", http.Header{
			"X-Forwarded-For": {"198.51.100.9, 10.0.0.1"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"evil.test"}, "X-Forwarded-Port": {"1"},
			"X-Real-Ip": {"198.51.100.9"}, "Cf-Connecting-Ip": {"198.51.100.9"}, "True-Client-Ip": {"1"}, "X-Original-Url": {"/admin"}, "X-Rewrite-Url": {"/admin"},
		}},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://x.test/", nil)
		r.RemoteAddr = c.remote
		for i := 0; i < len(forged); i += 2 {
			if c.remote != "192.0.2.1:1000" && forged[i] == "Connection" {
				continue // a trusted proxy removes it
			}
			r.Header.Add(forged[i], forged[i+1])
		}
		p.ServeHTTP(httptest.NewRecorder(), r)
		c.want["X-Other_name"] = []string{"kept"}
		if c.remote != "192.0.2.1:1000" {
			c.want["Cookie2"] = []string{"x"}
		}
		c.want["Cdn-Loop"], c.want["User-Agent"] = got["Cdn-Loop"], got["User-Agent"]
		if d := cmp.Diff(c.want, got); d != "" || len(got["Cdn-Loop"]) != 1 {
			t.Errorf("%s:\n%s", c.remote, d)
		}
	}
	// Without fields of the trusted proxy, the request uses the scheme of the base.
	r := httptest.NewRequest(http.MethodGet, "http://x.test/", nil)
	r.RemoteAddr = "10.0.0.1:1000"
	if p.ServeHTTP(httptest.NewRecorder(), r); got.Get("X-Forwarded-Proto") != "https" {
		t.Errorf("%v", got)
	}
}
