package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/conns"
)

// serve runs a gateway on loopback. It returns the address and a function that stops the
// gateway.
func serve(t *testing.T, g *Gateway, o ...ServerOptions) (address string, stop func() error) {
	t.Helper()
	o = append(o, ServerOptions{})
	ln, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx, ln, &o[0]) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return ln.Addr().String(), stop
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "access.log")
	log, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	g := setup{files: site(), o: Options{RequestLog: log}}.gateway(t)
	address, stop := serve(t, g)
	for target, want := range map[string]int{"/readyz": 200, "/llm-pages.json": 200, "/a/llm.json": 200, "/a/": 200, "/style.css": 200, "/no": 404} {
		if res, _ := get(t, "http://"+address+target); res.StatusCode != want {
			t.Errorf("%s: %s", target, res.Status)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(file); err != nil || bytes.Count(b, []byte("\n")) != 6 {
		t.Errorf("request log: %q %v", b, err)
	}
}

func TestListenInUse(t *testing.T) {
	ln, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, err = Listen(t.Context(), ln.Addr().String())
	if !errors.Is(err, syscall.EADDRINUSE) || millrace.ErrorCode(err) != "address-in-use" || strings.Count(err.Error(), "listen") != 1 || !strings.Contains(err.Error(), "; ") {
		t.Errorf("%v", err)
	}
	if _, err := Listen(t.Context(), "127.0.0.1:notaport"); err == nil {
		t.Error("no error")
	}
}

// At a shutdown, pending requests finish, and new ones are not accepted.
func TestShutdown(t *testing.T) {
	started, release := make(chan bool), make(chan bool)
	origin := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			started <- true
			<-release
		}
		io.WriteString(w, "whole answer")
	})
	address, stop := serve(t, setup{o: Options{Origin: origin}}.gateway(t), ServerOptions{StopTimeout: 5 * time.Minute})
	got := make(chan string)
	go func() {
		_, body := get(t, "http://"+address+"/slow")
		got <- body
	}()
	<-started
	ended := make(chan error)
	go func() { ended <- stop() }()
	for {
		c, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		c.Close()
		time.Sleep(time.Millisecond)
	}
	close(release)
	if body := <-got; body != "whole answer" {
		t.Errorf("interrupted: %q", body)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestStopTimeout(t *testing.T) {
	started := make(chan bool)
	origin := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			started <- true
			<-r.Context().Done()
		}
	})
	address, stop := serve(t, setup{o: Options{Origin: origin}}.gateway(t), ServerOptions{StopTimeout: 50 * time.Millisecond})
	go func() { _, _ = http.Get("http://" + address + "/slow") }()
	<-started
	begin := time.Now()
	if err := stop(); err != nil || time.Since(begin) > time.Minute {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

func TestTooManyRequests(t *testing.T) {
	started, release := make(chan bool), make(chan bool)
	origin := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			started <- true
			<-release
		}
	})
	g := setup{o: Options{Origin: origin, Access: access.Options{MaxRequests: 2}}}.gateway(t)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { ask(g, "GET", "/slow") })
		<-started
	}
	w := ask(g, "GET", "/a/llm.json")
	if w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := ask(g, "GET", "/healthz"); w.Code != 200 {
		t.Errorf("healthz: %d", w.Code)
	}
	close(release)
	wg.Wait()
	if w := ask(g, "GET", "/a/llm.json"); w.Code != 200 || g.guard.Active() != 0 {
		t.Errorf("afterwards: %d, %d active", w.Code, g.guard.Active())
	}
}

// A connection that waits for a request is closed for a new one; a connection with a request is
// not.
func TestTooManyConnections(t *testing.T) {
	started, release := make(chan bool), make(chan bool)
	origin := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			started <- true
			<-release
		}
	})
	address, _ := serve(t, setup{o: Options{Origin: origin}}.gateway(t), ServerOptions{MaxConnections: 2})
	send := func(path string) *bufio.Reader {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
		return bufio.NewReader(c)
	}
	respond := func(in *bufio.Reader, status int) string {
		t.Helper()
		res, err := http.ReadResponse(in, nil)
		if err != nil || res.StatusCode != status || (res.Header.Get("Retry-After") != "") != (status == http.StatusServiceUnavailable) {
			t.Fatal(res, err)
		}
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	slow := send("/slow")
	<-started
	idle := send("/healthz")
	respond(idle, http.StatusOK)
	// Until the server has finished the response to the idle connection, it refuses others.
	var second *bufio.Reader
	var responds chan bool
	for begun := false; !begun; {
		second, responds = send("/slow"), make(chan bool, 1)
		go func() {
			_, _ = second.Peek(1)
			responds <- true
		}()
		select {
		case <-started:
			begun = true
		case <-responds:
		}
	}
	if _, err := idle.ReadByte(); err == nil {
		t.Error("the idle connection is open")
	}
	third := send("/healthz")
	if body := respond(third, http.StatusServiceUnavailable); !strings.HasPrefix(body, "503 ") {
		t.Errorf("%q", body)
	}
	close(release)
	respond(slow, http.StatusOK)
	<-responds
	respond(second, http.StatusOK)
	for { // until the server has finished one of these responses, it refuses others
		res, err := http.ReadResponse(send("/healthz"), nil)
		if err != nil || res.StatusCode != http.StatusOK && res.StatusCode != http.StatusServiceUnavailable {
			t.Fatal(res, err)
		}
		if res.StatusCode == http.StatusOK {
			break
		}
	}
}

// A client that sends nothing, or too much, is disconnected.
func TestSlowAndLargeRequests(t *testing.T) {
	patient, _ := serve(t, setup{}.gateway(t), ServerOptions{ReadTimeout: 5 * time.Minute})
	brief, _ := serve(t, setup{}.gateway(t), ServerOptions{ReadTimeout: testTimeLimit})
	for name, c := range map[string]struct {
		send string
		want int // 0 = the connection closes without a response
	}{
		"nothing":      {"", 0},
		"half":         {"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", 0},
		"header":       {"GET / HTTP/1.1\r\nHost: x\r\nX-A: " + strings.Repeat("a", 2*conns.MaxHeader) + "\r\n\r\n", 431},
		"body":         {"GET /a/llm.json HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\nx", 413},
		"slow body":    {"GET /a/llm.json HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nx", 200},
		"chunked":      {"POST /a/llm.json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 405},
		"evil host":    {"GET /a/llm.json HTTP/1.1\r\nHost: evil.test\r\n\r\n", 200},
		"absolute":     {"GET http://evil.test/a/llm.json HTTP/1.1\r\nHost: x\r\n\r\n", 200},
		"star":         {"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 200},
		"connect":      {"CONNECT evil.test:80 HTTP/1.1\r\nHost: evil.test:80\r\n\r\n", 404},
		"no HTTP":      {"\x16\x03\x01\x00\x00\r\n\r\n", 400},
		"redirect":     {"GET //evil.test/%2e%2e HTTP/1.1\r\nHost: x\r\n\r\n", 404},
		"two lengths":  {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
		"no host":      {"GET / HTTP/1.1\r\n\r\n", 400},
		"bad encoding": {"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := patient
			if c.want == 0 || name == "slow body" || name == "chunked" { // the server waits for the rest
				address = brief
			}
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			if _, err := io.WriteString(conn, c.send); err != nil {
				t.Logf("sending: %v", err)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if c.want == 0 {
				// net/http may send 408 before it closes the connection.
				if err == nil && res.StatusCode != http.StatusRequestTimeout {
					t.Errorf("%s", res.Status)
				}
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("the client was not disconnected")
				}
				return
			}
			if err != nil || res.StatusCode != c.want {
				t.Fatalf("%v %v, want %d", res, err, c.want)
			}
			b, _ := io.ReadAll(res.Body)
			if strings.Contains(string(b), "evil") || strings.Contains(fmt.Sprint(res.Header), "evil") {
				t.Errorf("the Host field affects the response: %v %q", res.Header, b)
			}
		})
	}
}

// A page is streamed: its head arrives before its end is written.
func TestStreaming(t *testing.T) {
	release := make(chan bool)
	origin := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.Method == http.MethodHead {
			return
		}
		io.WriteString(w, "<html><head><title>T</title></head><body>")
		_ = http.NewResponseController(w).Flush()
		<-release
		io.WriteString(w, "end")
	})
	address, _ := serve(t, setup{o: Options{Origin: origin}}.gateway(t))
	res, err := http.Get("http://" + address + "/a/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	const first = `<html><head><title>T</title><link rel="alternate"`
	b := make([]byte, len(first))
	if _, err := io.ReadFull(res.Body, b); err != nil || string(b) != first {
		t.Errorf("%q %v", b, err)
	}
	close(release)
	if b, err := io.ReadAll(res.Body); err != nil || !strings.HasSuffix(string(b), "<body>end") {
		t.Errorf("%q %v", b, err)
	}
}
