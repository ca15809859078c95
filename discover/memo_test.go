package discover

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol/protocoltest"
)

func newMemo(t *testing.T, h http.HandlerFunc) (m *memo, client *http.Client, sent *atomic.Int64) {
	t.Helper()
	sent = new(atomic.Int64)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Add(1)
		h(w, r)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	m = &memo{next: srv.Client().Transport, ctx: ctx, answers: map[string]*answer{}, maxRequests: 100, maxBytes: 1 << 20, maxBody: 1 << 19}
	t.Cleanup(func() {
		cancel()
		m.close()
		srv.Close()
	})
	base := srv.URL
	return m, &http.Client{Transport: rebase{m, base}}, sent
}

// rebase is a transport that sends requests to a test server.
type rebase struct {
	next http.RoundTripper
	base string
}

func (r rebase) RoundTrip(req *http.Request) (*http.Response, error) {
	u, err := req.URL.Parse(r.base + req.URL.RequestURI())
	if err != nil {
		return nil, err
	}
	out := req.Clone(req.Context())
	out.URL, out.Host = u, ""
	return r.next.RoundTrip(out)
}

func ask(t *testing.T, client *http.Client, method, path string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://x"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func TestMemo(t *testing.T) {
	_, client, sent := newMemo(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/varies" {
			w.Header().Set("Vary", "accept-encoding, Accept")
		}
		_, _ = io.WriteString(w, r.Method+r.URL.Path+r.Header.Get("Accept")+r.Header.Get("Authorization"))
	})
	for _, c := range []struct {
		method, path string
		header       []string
		want         string
		sent         int64 // total number of requests sent
	}{
		{"GET", "/a", nil, "GET/a", 1},
		{"GET", "/a#b", nil, "GET/a", 1},
		{"GET", "/a", []string{"Accept", "text/html"}, "GET/a", 1},
		{"HEAD", "/a", nil, "", 1},
		{"GET", "/a?", nil, "GET/a", 2},
		{"GET", "/a", []string{"Authorization", "Bearer x"}, "GET/aBearer x", 3},
		{"GET", "/a", []string{"If-None-Match", `"x"`}, "GET/a", 4},
		{"GET", "/varies", []string{"Accept", "a"}, "GET/variesa", 5},
		{"GET", "/varies", []string{"Accept", "a"}, "GET/variesa", 5},
		{"GET", "/varies", []string{"Accept", "b"}, "GET/variesb", 6},
		{"POST", "/a", nil, "POST/a", 7},
		{"POST", "/a", nil, "POST/a", 8},
	} {
		resp, body := ask(t, client, c.method, c.path, c.header...)
		if body != c.want || sent.Load() != c.sent {
			t.Errorf("%s %s: %q after %d requests, want %q after %d", c.method, c.path, body, sent.Load(), c.want, c.sent)
		}
		if resp.ContentLength != int64(len(c.want)) && c.method != "HEAD" || resp.Request.Method != c.method {
			t.Errorf("%s %s: %d bytes, of a %s", c.method, c.path, resp.ContentLength, resp.Request.Method)
		}
	}
}

// Concurrent callers that read at different speeds get the same response from a single request.
func TestMemoAtOnce(t *testing.T) {
	text := strings.Repeat("0123456789", 20_000)
	m, client, sent := newMemo(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/", nil)
			resp, err := client.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if i%2 == 0 { // read only the beginning
				b := make([]byte, 100)
				if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != text[:100] {
					t.Errorf("%q, %v", b, err)
				}
				return
			}
			if b, err := io.ReadAll(resp.Body); err != nil || string(b) != text {
				t.Errorf("%d bytes, %v", len(b), err)
			}
		})
	}
	all.Wait()
	if s := m.spent(); sent.Load() != 1 || s.Requests != 1 || s.Bytes != int64(len(text)) {
		t.Errorf("%d requests, %+v", sent.Load(), s)
	}
}

// A body that is not read costs its first bytes, and its connection is reused.
func TestMemoClosed(t *testing.T) {
	_, client, sent := newMemo(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat(r.RemoteAddr+"\n", 1000))
	})
	addresses := map[string]bool{}
	for _, path := range []string{"/a", "/b", "/c", "/d"} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x"+path, nil)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 16)
		_, _ = io.ReadFull(resp.Body, line)
		addresses[string(line)] = true
		_ = resp.Body.Close()
		if _, err := resp.Body.Read(line); err == nil {
			t.Error("a closed body can be read")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(addresses) > 2 || sent.Load() != 4 {
		t.Errorf("%d connections for %d requests", len(addresses), sent.Load())
	}
}

// An exceeded budget ends open responses.
func TestMemoBudget(t *testing.T) {
	_, client, _ := newMemo(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				return
			}
		}
	})
	for _, path := range []string{"/a", "/b", "/c"} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x"+path, nil)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		if !errors.Is(err, millrace.ErrTooLarge) || n > 1<<20+64<<10 {
			t.Errorf("%s: %d bytes, %v", path, n, err)
		}
		_ = resp.Body.Close()
	}
}

// A temporary failure is retried once, by the first caller.
func TestMemoRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := map[string]int{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m := &memo{ctx: ctx, answers: map[string]*answer{}, maxRequests: 100, maxBytes: 1 << 20, maxBody: 1 << 19, next: protocoltest.Transport(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[r.URL.Path]++
			switch {
			case r.URL.Path == "/broken":
				return nil, io.ErrUnexpectedEOF
			case r.URL.Path == "/silent":
				return nil, millrace.ErrUnavailable
			case r.URL.Path == "/passes" && asked["/passes"] == 2:
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("ok")), Request: r}, nil
			}
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		})}
		client := &http.Client{Transport: m}
		for _, c := range []struct {
			path  string
			asked int
			err   error
		}{{"/passes", 2, nil}, {"/busy", 2, millrace.ErrUnavailable}, {"/broken", 2, io.ErrUnexpectedEOF}, {"/silent", 1, millrace.ErrUnavailable}} {
			for range 3 { // protocols
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x"+c.path, nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := fetch.Do(t.Context(), client, req)
				if err == nil {
					_ = resp.Body.Close()
				}
				if (err == nil) != (c.err == nil) {
					t.Errorf("%s: %v", c.path, err)
				}
			}
			if asked[c.path] != c.asked {
				t.Errorf("%s was asked for %d times, want %d", c.path, asked[c.path], c.asked)
			}
		}
		cancel()
		m.close()
	})
}
