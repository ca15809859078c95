package gateway

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace/millrace/internal/proxy"
)

// testTimeLimit is a time limit of the server. It is long enough for slow test machines.
const testTimeLimit = time.Second

// The response of the site's server is passed on as it arrives, interim responses first. A
// stream lasts as long as data flows, whatever the server's other limits are.
func TestProxyStreams(t *testing.T) {
	t.Parallel()
	next := make(chan bool)
	b := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/events" {
			return
		}
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	}), proxy.Options{}, setup{}, &ServerOptions{ReadTimeout: testTimeLimit, WriteTimeout: testTimeLimit})
	var hints []string
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(code, h["Link"]))
		return nil
	}}
	r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, b.url+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := plainClient(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if d := cmp.Diff([]string{"103 [</style.css>; rel=preload]"}, hints); d != "" || resp.Header.Get("Link") != "" {
		t.Errorf("%s%v", d, resp.Header)
	}
	lines := bufio.NewReader(resp.Body)
	for i := range 3 {
		line, err := lines.ReadString('\n')
		if err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("%q %v", line, err)
		}
		_, _ = lines.ReadString('\n')
		time.Sleep(testTimeLimit + testTimeLimit/8) // longer than both limits
		next <- true
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) != 0 {
		t.Errorf("%q %v", rest, err)
	}
}

// A request body may be slow, and the response may begin before the body is complete.
func TestProxyUploads(t *testing.T) {
	t.Parallel()
	b := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %v", body, err)
	}), proxy.Options{}, setup{}, &ServerOptions{ReadTimeout: testTimeLimit, WriteTimeout: testTimeLimit})
	pr, pw := io.Pipe()
	go func() {
		for _, part := range []string{"slow", "ly", " but surely"} {
			time.Sleep(testTimeLimit + testTimeLimit/8)
			_, _ = io.WriteString(pw, part)
		}
		_ = pw.Close()
	}()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/up", pr)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Expect", "100-continue")
	resp, err := plainClient(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "slowly but surely <nil>" {
		t.Errorf("%d %q %v", resp.StatusCode, got, err)
	}
	r, err = http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/no", io.MultiReader(strings.NewReader("never sent")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Expect", "100-continue")
	if resp, err = plainClient(t).Do(r); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusExpectationFailed {
		t.Errorf("%d", resp.StatusCode)
	}
}

// A client that stalls in the middle of a body is disconnected.
func TestProxyStalledUpload(t *testing.T) {
	b := inFront(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}), proxy.Options{ClientTimeout: 50 * time.Millisecond}, setup{}, nil)
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "POST /x HTTP/1.1\r\nHost: x.test\r\nContent-Length: 100\r\n\r\nten bytes.")
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Minute))
	got, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 408 ") {
		t.Errorf("%q %v", got, err)
	}
}

// A body that does not match its header is the client's fault. It does not mean that the
// site's server is down.
func TestProxyBrokenUpload(t *testing.T) {
	b := inFront(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}), proxy.Options{}, setup{}, nil)
	got := raw(t, b.url, "POST /x HTTP/1.1\r\nHost: x.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 400 ") || !strings.Contains(got, "Connection: close\r\n") {
		t.Errorf("%q", got)
	}
	if strings.Contains(b.log.String(), " origin=") {
		t.Errorf("%s", b.log)
	}
}

// The gateway adds no type that the site's server omits.
func TestProxyNoType(t *testing.T) {
	b := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		_, _ = io.WriteString(w, "<html><head></head>text, perhaps")
	}), proxy.Options{}, setup{}, nil)
	for _, path := range []string{"/a/", "/x.bin"} {
		resp, body := send(t, "GET", b.url+path, "")
		if resp.Header["Content-Type"] != nil || body != "<html><head></head>text, perhaps" {
			t.Errorf("%s: %v %q", path, resp.Header, body)
		}
	}
}

// A connection that switches protocols is forwarded in both directions.
func TestProxyUpgrades(t *testing.T) {
	t.Parallel()
	b := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Sec-Websocket-Key") != "k" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: a\r\n\r\n")
		_, _ = io.Copy(c, rw)
	}), proxy.Options{}, setup{}, &ServerOptions{ReadTimeout: testTimeLimit, WriteTimeout: testTimeLimit})
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Minute))
	_, _ = io.WriteString(c, "GET /a/ HTTP/1.1\r\nHost: x.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n")
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Sec-Websocket-Accept") != "a" {
		t.Fatalf("%v %v", resp, err)
	}
	_ = resp.Body.Close()
	for range 3 {
		time.Sleep(testTimeLimit + testTimeLimit/8) // longer than the server's limits
		sent := make([]byte, 1000)
		_, _ = rand.Read(sent)
		if _, err := c.Write(sent); err != nil {
			t.Fatal(err)
		}
		received := make([]byte, len(sent))
		if _, err := io.ReadFull(r, received); err != nil || !bytes.Equal(sent, received) {
			t.Fatal(err)
		}
	}
}

// Under HTTP/2, too, a stream may be silent for longer than the server's limits, and a request
// body may be slow.
func TestProxyStreamsHTTP2(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		lines := bufio.NewReader(r.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(w, "received "+line)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(origin.Close)
	p, err := proxy.New(origin.URL, &proxy.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	front := httptest.NewUnstartedServer(setup{o: Options{Origin: p}}.gateway(t))
	front.EnableHTTP2 = true
	front.Config.ReadTimeout, front.Config.WriteTimeout = testTimeLimit, testTimeLimit
	front.StartTLS()
	t.Cleanup(front.Close)
	pr, pw := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/talk", pr)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := front.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for i := range 3 {
		time.Sleep(testTimeLimit + testTimeLimit/8)
		if _, err := fmt.Fprintf(pw, "word %d\n", i); err != nil {
			t.Fatal(err)
		}
		if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("received word %d\n", i) || resp.ProtoMajor != 2 {
			t.Fatalf("HTTP/%d: %q %v", resp.ProtoMajor, line, err)
		}
	}
	_ = pw.Close()
	if rest, err := io.ReadAll(lines); err != nil || len(rest) != 0 {
		t.Errorf("%q %v", rest, err)
	}
}
