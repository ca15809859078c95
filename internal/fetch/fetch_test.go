package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace/millrace"
)

func TestRequestHeader(t *testing.T) {
	seen := make(chan http.Header, 1)
	dial := memory(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header })
	for name, c := range map[string]struct {
		o          Options
		set        map[string]string
		agent, enc string
	}{
		"defaults": {agent: "millrace/dev (+https://github.com/millrace/millrace)", enc: "zstd, br, gzip"},
		"contact":  {o: Options{Contact: "ops@site.example"}, agent: "millrace/dev (+https://github.com/millrace/millrace; ops@site.example)", enc: "zstd, br, gzip"},
		"own name": {o: Options{UserAgent: "own/1", Contact: "unused"}, agent: "own/1", enc: "zstd, br, gzip"},
		"set":      {set: map[string]string{"User-Agent": "mine", "Accept-Encoding": "gzip"}, agent: "mine", enc: "gzip"},
		"range":    {set: map[string]string{"Range": "bytes=0-9"}, agent: "millrace/dev (+https://github.com/millrace/millrace)", enc: "identity"},
	} {
		c.o.Dial = dial
		req := get(t, "http://site.example/")
		for k, v := range c.set {
			req.Header.Set(k, v)
		}
		before := req.Header.Clone()
		resp, err := Do(t.Context(), newClient(t, c.o).HTTP(), req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		h := <-seen
		if got := h.Get("User-Agent"); got != c.agent {
			t.Errorf("%s: User-Agent %q", name, got)
		}
		if got := h.Values("Accept-Encoding"); len(got) != 1 || got[0] != c.enc {
			t.Errorf("%s: Accept-Encoding %q", name, got)
		}
		if diff := cmp.Diff(before, req.Header); diff != "" {
			t.Errorf("%s: the caller's request was changed: %s", name, diff)
		}
	}
	if New(nil).HTTP().Jar != nil || New(nil).transport.Proxy != nil {
		t.Error("the client uses cookies or a proxy")
	}
}

func TestStats(t *testing.T) {
	body := encode(t, strings.Repeat(prose, 100), "gzip")
	c, url := loopback(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			w.Header().Set("Location", "/page")
			w.WriteHeader(http.StatusFound)
		case "/page":
			if r.Header.Get("If-None-Match") != "" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "Text/HTML; charset=utf-8")
			_, _ = io.WriteString(w, body)
		case "/json":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}")
		default:
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<p>no</p>")
		}
	})
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for _, path := range []string{"/moved", "/page", "/none", "/json"} {
				_, _ = fetchBody(t, c, url+path)
				_ = c.Stats()
			}
			// A page that is not read to its end is not counted.
			if resp, err := Do(t.Context(), c.HTTP(), get(t, url+"/page")); err == nil {
				_ = resp.Body.Close()
			}
			req := get(t, url+"/page")
			req.Header.Set("If-None-Match", `"v"`)
			resp, err := Do(t.Context(), c.HTTP(), req)
			if err != nil {
				t.Error(err)
				return
			}
			wantErr(t, CheckStatus(resp), millrace.ErrUnmodified, "http-304")
		})
	}
	wg.Wait()
	got := c.Stats()
	want := Stats{
		Requests: 70, Status: [6]int64{2: 40, 3: 20, 4: 10}, NotModified: 10, Conditional: 10,
		BodyBytes: 20*int64(len(body)) + 10*int64(len("{}")+len("<p>no</p>")), HeaderBytes: got.HeaderBytes,
		HTML: 20, HTMLReceived: got.HTMLReceived, HTMLBytes: 20 * 100 * int64(len(prose)),
	}
	if head := got.HTMLReceived - 20*int64(len(body)); head < 20*60 || head > 20*300 {
		t.Errorf("%d bytes of header belong to pages", head)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.HeaderBytes < 70*60 || got.HeaderBytes > 70*300 || got.Received() != got.HeaderBytes+got.BodyBytes {
		t.Errorf("%+v, received %d", got, got.Received())
	}
}

// A connection whose body was read to its end is reused even if the request's context ends.
func TestConnectionsAreReused(t *testing.T) {
	dials := 0
	dial := memory(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/304" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(noise(100 << 10))
	})
	c := newClient(t, Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials++
		return dial(ctx, network, addr)
	}})
	for i := range 50 {
		path := []string{"/", "/304"}[i%2]
		if _, err := fetchBody(t, c, "http://site.example"+path); err != nil {
			t.Fatal(err)
		}
	}
	if dials > 5 { // net/http closes the connection of a request whose sender has not ended within 50 ms
		t.Errorf("%d connections", dials)
	}
}

func TestHeaderLimit(t *testing.T) {
	c, url := loopback(t, func(w http.ResponseWriter, r *http.Request) {
		n := 1 << 20
		if r.URL.Path == "/fits" {
			n = 32 << 10
		}
		w.Header().Set("X-Large", strings.Repeat("x", n))
	})
	if _, err := fetchBody(t, c, url+"/fits"); err != nil {
		t.Error(err)
	}
	_, err := fetchBody(t, c, url)
	wantErr(t, err, millrace.ErrUnavailable, "header-size")
}

// TestTimeLimits covers every way a server can be slow, in fake time.
func TestTimeLimits(t *testing.T) {
	drip := func(conn net.Conn, gap time.Duration, s string) {
		for {
			time.Sleep(gap)
			if _, err := conn.Write([]byte(s)); err != nil {
				return
			}
		}
	}
	silent := func(context.Context, string, string) (net.Conn, error) {
		a, b := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, b) }()
		return a, nil
	}
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
	for name, c := range map[string]struct {
		url    string
		answer func(net.Conn, *http.Request)
		took   time.Duration
		kind   error // if nil, ErrUnavailable
		text   string
	}{
		"no answer":       {took: firstByteTimeout, text: "timeout-response"},
		"TLS":             {url: "https://site.example/", took: tlsTimeout, text: "timeout-tls"},
		"a byte a second": {answer: func(c net.Conn, _ *http.Request) { say(c, head); drip(c, time.Second, "x") }, took: time.Minute, text: "timeout-total"},
		"header drips":    {answer: func(c net.Conn, _ *http.Request) { say(c, "HTTP/1.1 200 OK\r\n"); drip(c, time.Second, "x") }, took: firstByteTimeout, text: "timeout-response"},
		"body stops":      {answer: func(c net.Conn, _ *http.Request) { say(c, head, "x"); time.Sleep(time.Hour) }, took: bodyIdleTimeout, text: "timeout-idle"},
		"endless 1xx":     {answer: func(c net.Conn, _ *http.Request) { drip(c, time.Second, "HTTP/1.1 103 Early Hints\r\n\r\n") }, took: time.Minute, text: ""},
		"redirect dawdles": {answer: func(c net.Conn, _ *http.Request) {
			say(c, "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 9\r\n\r\n")
			time.Sleep(time.Hour)
		}, took: bodyIdleTimeout + time.Second, kind: millrace.ErrInvalid, text: "redirect-loop"},
		"chunk size drips": {answer: func(c net.Conn, _ *http.Request) {
			say(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			drip(c, 20*time.Second, "0")
		}, took: bodyIdleTimeout, text: "timeout-idle"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dial := silent
				if c.answer != nil {
					dial = raw(t, c.answer)
				}
				if c.url == "" {
					c.url = "http://site.example/"
				}
				cl := newClient(t, Options{Dial: dial})
				began := time.Now()
				_, err := fetchBody(t, cl, c.url)
				if c.kind == nil {
					c.kind = millrace.ErrUnavailable
				}
				wantErr(t, err, c.kind, c.text)
				if took := time.Since(began); took > c.took {
					t.Errorf("took %s, more than %s", took, c.took)
				}
				time.Sleep(2 * time.Hour) // so that the servers end
			})
		})
	}
}

// A slow reader does not trigger the limits for slow servers.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Options{Timeout: time.Hour, Dial: memory(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(noise(100 << 10))
		})})
		resp, err := Do(t.Context(), c.HTTP(), get(t, "http://site.example/"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		n, buf := 0, make([]byte, 10<<10)
		for err == nil {
			var m int
			m, err = resp.Body.Read(buf)
			n += m
			time.Sleep(2 * bodyIdleTimeout)
		}
		if !ended(err) || n != 100<<10 {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

// If the caller's context ends, its error is returned unchanged.
func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Options{Dial: raw(t, func(conn net.Conn, r *http.Request) {
			if r.URL.Path == "/body" {
				say(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx")
			}
			time.Sleep(time.Hour)
		})})
		for _, path := range []string{"/", "/body"} {
			for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
				ctx, cancel := context.WithCancel(t.Context())
				if errors.Is(want, context.DeadlineExceeded) {
					ctx, cancel = context.WithTimeout(t.Context(), time.Second)
				} else {
					time.AfterFunc(time.Second, cancel)
				}
				resp, err := Do(ctx, c.HTTP(), get(t, "http://site.example"+path))
				if err == nil {
					_, err = ReadBody(resp, 0)
				}
				cancel()
				if !errors.Is(err, want) || errors.Is(err, millrace.ErrUnavailable) || errors.Is(err, millrace.ErrInvalid) {
					t.Errorf("%s: %v, want %v", path, err, want)
				}
			}
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestDelay(t *testing.T) {
	for name, c := range map[string]struct {
		delay time.Duration
		hosts []string
		want  time.Duration
	}{
		"default":        {hosts: []string{"a.example", "a.example", "A.example:8080", "a.example"}, want: 750 * time.Millisecond},
		"two hosts":      {hosts: []string{"a.example", "b.example", "a.example", "b.example"}, want: 250 * time.Millisecond},
		"loopback":       {hosts: []string{"localhost", "localhost:1", "LOCALHOST.", "a.localhost", "a.localhost", "127.0.0.1", "127.0.0.1", "[::1]", "[::1]"}},
		"none":           {delay: -1, hosts: []string{"a.example", "a.example"}},
		"given":          {delay: 2 * time.Second, hosts: []string{"localhost", "localhost", "localhost"}, want: 4 * time.Second},
		"not a loopback": {hosts: []string{"localhost.example", "localhost.example"}, want: 250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cl := New(&Options{Delay: c.delay, AllowPrivate: true, IgnoreRobots: true, Dial: memory(t, func(http.ResponseWriter, *http.Request) {})})
				defer cl.CloseIdleConnections()
				began := time.Now()
				var wg sync.WaitGroup
				for _, host := range c.hosts { // all requests at the same time
					wg.Go(func() {
						if _, err := fetchBody(t, cl, "http://"+host+"/"); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if took := time.Since(began); took.Round(time.Millisecond) != c.want {
					t.Errorf("took %s, want %s", took, c.want)
				}
			})
		})
	}
}

func TestLog(t *testing.T) {
	var buf bytes.Buffer
	c := newClient(t, Options{
		Logger: slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Dial: memory(t, func(w http.ResponseWriter, _ *http.Request) {
			http.Redirect(w, new(http.Request), "http://hidden:secret@site.example/", http.StatusFound)
		}),
	})
	_, err := fetchBody(t, c, "http://site.example/page?q=1#part")
	wantErr(t, err, millrace.ErrInvalid, "redirect-target")
	if s := buf.String(); !strings.Contains(s, `msg=fetch method=GET url="http://site.example/page?q=1" status=302`) ||
		strings.Contains(s+err.Error(), "secret") || strings.Contains(s+err.Error(), "hidden") {
		t.Errorf("%s\n%v", s, err)
	}
}
