package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// seen is a site's own server that records the requests it gets.
type seen struct {
	mu   sync.Mutex
	list []string
}

func (s *seen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if r.Method == http.MethodHead && r.URL.Path == "/" {
		return // the gateway probes the home page
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		return // the request was canceled
	}
	line := r.Method + " " + r.RequestURI
	if len(body) > 0 {
		line += fmt.Sprintf(" %q", body)
	}
	s.list = append(s.list, line)
	w.Header().Set("Content-Type", "text/html")
	_, _ = io.WriteString(w, "<html><head></head><body>the site</body></html>")
}

// take returns the requests since the last call.
func (s *seen) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.list
	s.list = nil
	return out
}

// A path means the same to the site's server as to the client, whatever its spelling. A
// machine document is served under the spellings that RFC 3986 treats as equivalent, and no
// others.
func TestProxyPaths(t *testing.T) {
	site := new(seen)
	b := inFront(t, site, proxy.Options{Hosts: []string{"x.test"}}, setup{}, nil)
	for _, c := range []struct{ target, want string }{
		{"/a%2Fb", "/a%2Fb"},
		{"/a%2fb", "/a%2fb"},
		{"/a/../b", "/a/../b"},
		{"/a/%2e%2E/b", "/a/%2e%2E/b"},
		{"/a%252Fb%252e%252e", "/a%252Fb%252e%252e"},
		{"/..%2f..%5c", "/..%2f..%5c"},
		{"//evil.test/x", "//evil.test/x"},
		{"///", "///"},
		{"/./a//b/.", "/./a//b/."},
		{"/%00%0d%0aX:%20y", "/%00%0d%0aX:%20y"},
		{"/a;v=1/b", "/a;v=1/b"},
		{"/a?b?c&d;e=%zz&=&&", "/a?b?c&d;e=%zz&=&&"},
		{"/a?", "/a?"},
		{"/a\\b|\"", "/a%5Cb%7C%22"}, // characters that are invalid in URLs are encoded
		{"/caf\xe9", "/caf%E9"},
		{"/a#b", "/a%23b"},
		{"http://x.test/a%2Fb?q", "/a%2Fb?q"},
		{"HTTP://X.TEST:80/a", "/a"},
		{"http://x.test", "/"},
		{"http://evil.test/a", "421"},
		{"//x.test/a/llm.json", "//x.test/a/llm.json"},
		{"/a/llm.json", "200"}, // the document
		{"/a/./llm.json", "200"},
		{"/a%2Fllm.json", "/a%2Fllm.json"},
		{"/%61/llm.json", "200"},
		{"/a/b/../llm.json", "200"},
		{"/A/llm.json", "/A/llm.json"},
		{"/a//llm.json", "/a//llm.json"},
		{"/a%252Fllm.json", "/a%252Fllm.json"},
		{"*", "400"},
		{"x.test:80", "400"},
		{"a", "400"},
		{"/%zz", "400"},
		{"/a b", "400"},
		{"/a\x01", "400"},
		{"ftp://x.test/a", "/a"}, // an absolute URL, as a client of a forward proxy sends it
	} {
		got := raw(t, b.url, "GET "+c.target+" HTTP/1.1\r\nHost: x.test\r\nConnection: close\r\n\r\n")
		status, body, _ := strings.Cut(strings.TrimPrefix(got, "HTTP/1.1 "), " ")
		asked := site.take()
		if !strings.HasPrefix(c.want, "/") {
			if status != c.want || len(asked) != 0 || strings.Contains(got, "the site") {
				t.Errorf("%q: %s, want %s; the site's server received %q", c.target, status, c.want, asked)
			}
			continue
		}
		if d := cmp.Diff([]string{"GET " + c.want}, asked); d != "" || status != "200" || !strings.Contains(body, "the site") {
			t.Errorf("%q: %s\n%s", c.target, status, d)
		}
	}
}

// If two servers disagree where a request ends, one request can pass unchecked. The gateway
// must parse each request that reaches the site's server.
func TestProxySmuggling(t *testing.T) {
	const head = "POST /up HTTP/1.1\r\nHost: x.test\r\n"
	const inner = "GET /inner HTTP/1.1\r\nHost: x.test\r\n\r\n"
	const last = "GET /last HTTP/1.1\r\nHost: x.test\r\nConnection: close\r\n\r\n"
	site, log := new(seen), new(bytes.Buffer)
	var mu sync.Mutex
	var through []string
	origin := httptest.NewServer(site)
	t.Cleanup(origin.Close)
	p, err := proxy.New(origin.URL, &proxy.Options{Hosts: []string{"x.test"}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	g := setup{o: Options{Origin: p}}.gateway(t)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		through = append(through, r.Method+" "+r.RequestURI)
		mu.Unlock()
		g.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	for name, c := range map[string]struct {
		request string
		status  string   // of the first response; "" = any
		asked   []string // nil = nothing
	}{
		"a body":                  {head + "Content-Length: 5\r\n\r\nhello" + last, "200", []string{`POST /up "hello"`, "GET /last"}},
		"chunks":                  {head + "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n" + last, "200", []string{`POST /up "hello"`, "GET /last"}},
		"a request in a body":     {head + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(inner)) + inner + last, "200", []string{fmt.Sprintf("POST /up %q", inner), "GET /last"}},
		"both lengths, chunks":    {head + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(inner), inner) + last, "", []string{fmt.Sprintf("POST /up %q", inner)}},
		"both lengths, no chunk":  {head + "Transfer-Encoding: chunked\r\nContent-Length: 43\r\n\r\n0\r\n\r\n" + last, "", []string{"POST /up"}},
		"two lengths":             {head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello" + last, "400", nil},
		"a list of lengths":       {head + "Content-Length: 5, 5\r\n\r\nhello" + last, "400", nil},
		"a signed length":         {head + "Content-Length: +5\r\n\r\nhello" + last, "400", nil},
		"a hexadecimal length":    {head + "Content-Length: 0x5\r\n\r\nhello" + last, "400", nil},
		"an unknown coding":       {head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + last, "501", nil},
		"two codings":             {head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + last, "501", nil},
		"coding fields":           {head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + last, "501", nil},
		"a space in a name":       {head + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + last, "400", nil},
		"a tab in a coding":       {head + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + last, "400", nil},
		"a line that begins":      {"POST /up HTTP/1.1\r\n Content-Length: 5\r\nHost: x.test\r\n\r\nhello" + last, "400", nil},
		"a NUL in a value":        {head + "X: a\x00b\r\n\r\n" + last, "400", nil},
		"a CR in a value":         {head + "X: a\rTransfer-Encoding: chunked\r\n\r\n" + last, "400", nil},
		"a negative chunk":        {head + "Transfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n" + last, "", nil},
		"a huge chunk":            {head + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx\r\n0\r\n\r\n" + last, "", nil},
		"a prefixed chunk":        {head + "Transfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n" + last, "", nil},
		"a chunk without its end": {head + "Transfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n0\r\n\r\n" + last, "", nil},
		"two hosts":               {"GET /up HTTP/1.1\r\nHost: x.test\r\nHost: evil.test\r\n\r\n" + last, "400", nil},
		"no host":                 {"GET /up HTTP/1.1\r\n\r\n" + last, "400", nil},
		"another version":         {"GET /up HTTP/9.1\r\nHost: x.test\r\n\r\n" + last, "505", nil},
		"no length":               {"GET /up\r\n\r\n" + last, "400", nil},
		"hidden by Connection":    {head + "Connection: Content-Length, keep-alive\r\nContent-Length: 5\r\n\r\nhello" + last, "200", []string{`POST /up "hello"`, "GET /last"}},
		"HTTP/2 asked for":        {"GET /up HTTP/1.1\r\nHost: x.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n" + last, "200", []string{"GET /up", "GET /last"}},
		"HTTP/2 at once":          {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", nil},
		"a tunnel":                {"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x.test\r\n\r\n" + last, "", nil},
		"a mirror":                {"TRACE /up HTTP/1.1\r\nHost: x.test\r\nCookie: s=1\r\nConnection: close\r\n\r\n", "501", nil},
	} {
		got := raw(t, front.URL, c.request)
		status, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(got, "HTTP/1.1 "), "HTTP/1.0 "), " ")
		asked := site.take()
		mu.Lock()
		passed := slices.Clone(through)
		through = nil
		mu.Unlock()
		for _, a := range asked {
			request, _, _ := strings.Cut(a, ` "`)
			if i := slices.Index(passed, request); i < 0 {
				t.Errorf("%s: the site's server received %q, and the gateway %q", name, asked, passed)
			} else {
				passed = slices.Delete(passed, i, i+1)
			}
		}
		if c.status != "" && status != c.status {
			t.Errorf("%s: %s, want %s", name, status, c.status)
		}
		if c.asked != nil && (len(asked) < len(c.asked) || cmp.Diff(c.asked, asked[:len(c.asked)]) != "") {
			t.Errorf("%s: the site's server received %q, want %q", name, asked, c.asked)
		}
		if c.asked == nil && slices.ContainsFunc(asked, func(a string) bool { return !strings.HasSuffix(a, "/last") }) {
			t.Errorf("%s: the site's server received %q", name, asked)
		}
	}
}

// Requests for unknown hosts are refused, except for health checks.
func TestProxyHosts(t *testing.T) {
	site := new(seen)
	b := inFront(t, site, proxy.Options{Hosts: []string{"x.test", "www.x.test", "127.0.0.1:8080"}}, setup{}, nil)
	for host, want := range map[string]int{
		"x.test": 200, "X.Test": 200, "x.test.": 200, "x.test:80": 200, "x.test:443": 200, "www.x.test": 200, "127.0.0.1:8080": 200,
		"x.test:81": 421, "evil.test": 421, "x.test.evil.test": 421, "a.x.test": 421, "127.0.0.1": 421, "127.0.0.1:8081": 421, "[::1]": 421,
		"x.test:80:80": 421, "localhost": 421,
	} {
		for _, path := range []string{"/", "/a/", "/a/llm.json", "/llm-pages.json", "/robots.txt"} {
			if resp, body := send(t, "GET", b.url+path, "", "Host", host); resp.StatusCode != want {
				t.Errorf("%s %s: %d %s", host, path, resp.StatusCode, body)
			}
		}
		if resp, _ := send(t, "GET", b.url+"/healthz", "", "Host", host); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: /healthz: %d", host, resp.StatusCode)
		}
		if asked := site.take(); want != 200 && len(asked) > 0 {
			t.Errorf("%s: the site's server received %q", host, asked)
		}
	}
	if got := raw(t, b.url, "GET /a/ HTTP/1.0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.0 421 ") {
		t.Errorf("without a host: %s", got)
	}
}

// If the site's server is slow or down, this is logged and the documents are still served.
func TestProxyTrouble(t *testing.T) {
	wait := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-wait }))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(wait) })
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	garbled, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = garbled.Close() })
	go func() {
		for {
			c, err := garbled.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n")
			_ = c.Close()
		}
	}()
	for name, c := range map[string]struct {
		origin  string
		timeout time.Duration
		want    int
	}{"slow": {slow.URL, 50 * time.Millisecond, 504}, "dead": {dead.URL, 0, 502}, "garbled": {"http://" + garbled.Addr().String(), 0, 502}} {
		b := inFrontOf(t, c.origin, proxy.Options{Timeout: c.timeout}, setup{}, nil)
		for _, path := range []string{"/", "/a/", "/style.css", "/api.json"} {
			resp, body := send(t, "GET", b.url+path, "")
			if resp.StatusCode != c.want || resp.Header.Get("Retry-After") == "" || resp.Header.Get("Cache-Control") != "no-store" || resp.Header["Link"] != nil {
				t.Errorf("%s: %s: %d %v %s", name, path, resp.StatusCode, resp.Header, body)
			}
			if strings.Contains(body, "127.0.0.1") || strings.Contains(body, "SSH") {
				t.Errorf("%s: %s reveals internal details: %s", name, path, body)
			}
		}
		if resp, _ := send(t, "GET", b.url+"/a/llm.json", ""); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: a document: %d", name, resp.StatusCode)
		}
	}
}

// If the server dies in the middle of a page, the client must be able to detect that the page is
// incomplete, in either version of HTTP.
func TestProxyDiesMidPage(t *testing.T) {
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				head := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
				switch r.Header.Get("X-Case") {
				case "length":
					_, _ = io.WriteString(c, head+"Content-Length: 1000\r\n\r\n<head></head>half")
				case "chunks":
					_, _ = io.WriteString(c, head+"Transfer-Encoding: chunked\r\n\r\n11\r\n<head></head>half\r\n")
				}
			}()
		}
	}()
	p, err := proxy.New("http://"+ln.Addr().String(), &proxy.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	front := httptest.NewUnstartedServer(setup{o: Options{Origin: p}}.gateway(t))
	front.EnableHTTP2 = true
	front.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	front.StartTLS()
	t.Cleanup(front.Close)
	one := front.Client().Transport.(*http.Transport).Clone()
	one.Protocols = new(http.Protocols)
	one.Protocols.SetHTTP1(true)
	t.Cleanup(one.CloseIdleConnections)
	for version, client := range map[int]*http.Client{2: front.Client(), 1: {Transport: one}} {
		for _, target := range []string{"/a/?length", "/a/?chunks", "/unknown/?length", "/unknown/?chunks", "/x.bin?length"} {
			path, how, _ := strings.Cut(target, "?")
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Case", how)
			resp, err := client.Do(r)
			if err != nil {
				continue // not even the header has arrived
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err == nil || resp.ProtoMajor != version {
				t.Errorf("HTTP/%d %s: %d %q looks whole", resp.ProtoMajor, target, resp.StatusCode, body)
			}
		}
	}
}

// A gateway in front of itself would forward a request forever.
func TestProxyLoop(t *testing.T) {
	front := httptest.NewUnstartedServer(nil)
	p, err := proxy.New("http://"+front.Listener.Addr().String(), &proxy.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	front.Config.Handler = setup{unready: true, o: Options{Origin: p}}.gateway(t)
	front.Start()
	t.Cleanup(front.Close)
	if resp, body := send(t, "GET", front.URL+"/a/", ""); resp.StatusCode != http.StatusLoopDetected {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// If half of the slots are in use, a network that has many of them gets no more.
func TestProxySlots(t *testing.T) {
	const most = 4096 // as in package proxy
	begun, wait := make(chan struct{}, most), make(chan struct{})
	p, err := proxy.New("http://127.0.0.1:1", &proxy.Options{Transport: protocoltest.Transport(func(r *http.Request) (*http.Response, error) {
		begun <- struct{}{}
		<-wait
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	from := func(address string) int {
		r := httptest.NewRequest(http.MethodGet, "http://x.test/", nil)
		r.RemoteAddr = address
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		return w.Code
	}
	var open sync.WaitGroup
	for i := range most / 2 {
		open.Go(func() { from(fmt.Sprintf("[2001:db8::%x]:1", i)) })
		<-begun
	}
	if got := from("[2001:db8::ffff]:1"); got != 429 {
		t.Errorf("one more request of a network with half of the slots: %d", got)
	}
	for i := range most / 2 {
		open.Go(func() { from(fmt.Sprintf("10.%d.%d.1:1", i>>8, i&255)) })
		<-begun
	}
	if got := from("198.51.100.1:1"); got != 503 {
		t.Errorf("all slots are in use: %d", got)
	}
	close(wait)
	open.Wait()
	if got := from("198.51.100.1:1"); got != 200 {
		t.Errorf("all slots are free: %d", got)
	}
}

// Ten thousand clients that stop sending after a few bytes use only their slots, and release them.
func TestProxySlowClients(t *testing.T) {
	clients, most := 10_000, 500
	if testing.Short() {
		clients = 1500
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	if need := uint64(clients + 2*most + 1000); files.Cur < need {
		t.Skipf("the limit is %d open files, and %d are needed", files.Cur, need)
	}
	b := inFront(t, new(seen), proxy.Options{ClientTimeout: 200 * time.Millisecond}, setup{}, &ServerOptions{MaxConnections: most, ReadTimeout: 200 * time.Millisecond})
	before := runtime.NumGoroutine()
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	initial := memory.HeapAlloc
	var mu sync.Mutex
	conns := make([]net.Conn, 0, clients)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	goroutines := 0
	const dialers = 20
	var dialing sync.WaitGroup
	for range dialers {
		dialing.Go(func() {
			for i := range clients / dialers {
				c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.url, "http://"))
				if err != nil {
					t.Error(err)
					return
				}
				// Send an incomplete header, or an incomplete body. Writing to a refused
				// connection fails.
				_, _ = io.WriteString(c, []string{"GET / HTTP/1.1\r\nHost: x", "POST /x HTTP/1.1\r\nHost: x.test\r\nContent-Length: 1000\r\n\r\na"}[i%2])
				mu.Lock()
				conns = append(conns, c)
				goroutines = max(goroutines, runtime.NumGoroutine()-before)
				mu.Unlock()
			}
		})
	}
	dialing.Wait()
	runtime.GC()
	runtime.ReadMemStats(&memory)
	if grown := int64(memory.HeapAlloc) - int64(initial); grown > 64<<20 {
		t.Errorf("%d slow clients take %d MB", clients, grown>>20)
	}
	// Each connection has a goroutine, and more in the transport and the server if forwarded.
	if limit := 8*most + 256 + 100; goroutines > limit {
		t.Errorf("%d slow clients take %d goroutines", clients, goroutines)
	}
	client := plainClient(t)
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		ctx, done := context.WithTimeout(t.Context(), 10*time.Second)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/a/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if err == nil && resp.StatusCode != http.StatusOK {
				err = errors.New(resp.Status)
			}
		}
		done()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("another client is not served: %v", err)
		}
	}
}
