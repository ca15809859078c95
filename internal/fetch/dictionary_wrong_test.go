package fetch

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/dcz"
)

// After a wrong response, one plain request is sent at once, and the coding is not offered to the
// origin for a day.
func TestDictionaryWrong(t *testing.T) {
	t.Parallel()
	other := edition(99)
	window := func(h http.Header, _ []byte) []byte {
		var b bytes.Buffer
		id := dcz.Sum(edition(0))
		b.Write([]byte{0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0})
		b.Write(id[:])
		z, _ := zstd.NewWriter(&b, zstd.WithWindowSize(64<<20))
		_, _ = io.CopyN(z, zeros{}, 65<<20)
		_ = z.Close()
		h.Del("Repr-Digest")
		return b.Bytes()
	}
	bomb := func(h http.Header, _ []byte) []byte {
		b, err := new(dcz.Encoder).Encode(edition(0), dcz.Sum(edition(0)), make([]byte, 7<<20))
		if err != nil {
			t.Error(err)
		}
		h.Del("Repr-Digest")
		return b
	}
	undigested := func(change func(body []byte) []byte) func(http.Header, []byte) []byte {
		return func(h http.Header, body []byte) []byte {
			h.Del("Repr-Digest")
			return change(body)
		}
	}
	for name, spoil := range map[string]func(http.Header, []byte) []byte{
		"another dictionary": undigested(func([]byte) []byte {
			b, _ := new(dcz.Encoder).Encode(other, dcz.Sum(other), edition(1))
			return b
		}),
		"cut frame":          undigested(func(b []byte) []byte { return b[:len(b)-5] }),
		"header only":        undigested(func(b []byte) []byte { return b[:40] }),
		"cut header":         undigested(func(b []byte) []byte { return b[:20] }),
		"empty":              undigested(func([]byte) []byte { return nil }),
		"damaged frame":      undigested(func(b []byte) []byte { b[len(b)-8] ^= 1; return b }),
		"not coded":          undigested(func([]byte) []byte { return edition(1) }),
		"gzip":               undigested(func([]byte) []byte { return gzipped(edition(1)) }),
		"digest":             func(_ http.Header, b []byte) []byte { return append(b, 0) },
		"a window of 64 MiB": window,
		"a bomb":             bomb,
		"three codings": func(h http.Header, b []byte) []byte {
			h.Set("Content-Encoding", "gzip, gzip, dcz")
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &dczServer{match: `match="/"`, spoil: spoil}
			c := newDCZ(t, s)
			c.expect("/", edition(0))
			s.publish(1)
			c.expect("/", edition(1))
			c.expect("/", edition(1))
			c.restart()
			c.expect("/", edition(1))
			if got := s.take(); got != "none 0 plainno-cache plain plain" {
				t.Error(got)
			}
			// A day later, the coding is offered to the origin again.
			_ = c.held.Update(t.Context(), origin(mustParse(c.url)), func(ix *DictionaryIndex) { ix.Refused = ix.Refused.Add(-25 * time.Hour) })
			s.spoil = nil
			c.restart()
			c.expect("/", edition(1))
			if got := s.take(); got != "0" {
				t.Error(got)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

func mustParse(raw string) *url.URL {
	u, err := url.Parse(raw)
	if err != nil {
		panic(err)
	}
	return u
}

// If proxies remove or add fields and codings, the transferred bytes change, but never the
// content.
func TestDictionaryProxies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request func(r *http.Request)
		spoil   func(h http.Header, body []byte) []byte
		want    string
	}{
		"no Accept-Encoding":      {request: func(r *http.Request) { r.Header.Del("Accept-Encoding") }, want: "plain plain"},
		"no Available-Dictionary": {request: func(r *http.Request) { r.Header.Del(dcz.Available) }, want: "none none"},
		"no Content-Encoding":     {spoil: func(h http.Header, b []byte) []byte { h.Del("Content-Encoding"); return b }, want: "none 0"},
		"no Use-As-Dictionary":    {spoil: func(h http.Header, b []byte) []byte { h.Del(dcz.Use); return b }, want: "none 0"},
		"gzip on top": {spoil: func(h http.Header, b []byte) []byte {
			h.Set("Content-Encoding", "dcz, gzip")
			h.Del("Repr-Digest")
			return gzipped(b)
		}, want: "none 0 plainno-cache"},
		"gzip instead": {spoil: func(h http.Header, b []byte) []byte {
			h.Set("Content-Encoding", "gzip")
			h.Del("Repr-Digest")
			return gzipped(b)
		}, want: "none 0 plainno-cache"},
		"gzip, decoded before": {spoil: func(h http.Header, _ []byte) []byte {
			h.Set("Content-Encoding", "gzip")
			h.Del("Repr-Digest")
			return gzipped(edition(1))
		}, want: "none 0"},
		"another Available-Dictionary": {request: func(r *http.Request) {
			r.Header.Add(dcz.Available, dcz.Sum([]byte("x")).Field())
		}, want: "none 0"},
		"decoded, with its header": {spoil: func(http.Header, []byte) []byte { return edition(1) }, want: "none 0 plainno-cache"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &dczServer{match: `match="/"`, spoil: c.spoil}
			d := newDCZ(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.request != nil {
					c.request(r)
				}
				s.ServeHTTP(w, r)
			}))
			d.expect("/", edition(0))
			s.publish(1)
			d.expect("/", edition(1))
			if got := s.take(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A cache that ignores Vary sends the response for one client to another.
func TestDictionaryCache(t *testing.T) {
	t.Parallel()
	s := &dczServer{match: `match="/"`}
	var mu sync.Mutex
	var cached *httptest.ResponseRecorder
	d := newDCZ(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		from := cached
		if from == nil || r.Header.Get("Cache-Control") != "" {
			from = httptest.NewRecorder()
			s.ServeHTTP(from, r)
		}
		for k, v := range from.Header() {
			w.Header()[k] = v
		}
		_, _ = w.Write(from.Body.Bytes())
	}))
	id := dcz.Sum(edition(0))
	coded, err := new(dcz.Encoder).Encode(edition(0), id, edition(1))
	if err != nil {
		t.Fatal(err)
	}
	s.publish(1)
	fill := func() {
		mu.Lock()
		defer mu.Unlock()
		cached = httptest.NewRecorder()
		cached.Header().Set("Content-Encoding", dcz.Name)
		cached.Body.Write(coded)
	}
	fill()
	d.expect("/", edition(1)) // the client had no dictionary
	d.expect("/", edition(1), "Authorization", "Bearer x")
	if got := s.take(); got != "plainno-cache plainno-cache" {
		t.Error(got)
	}
	if d.held.index().Refused.IsZero() {
		t.Error("the coding is still offered after a response of a cache")
	}
	d.held = new(heldDictionaries)
	d.restart()
	mu.Lock()
	cached = nil
	mu.Unlock()
	d.expect("/", edition(1))
	fill() // coded against another dictionary than edition 1
	d.expect("/", edition(1))
	plain := New(&Options{AllowPrivate: true, IgnoreRobots: true})
	t.Cleanup(plain.CloseIdleConnections)
	d.client = plain
	d.expect("/", edition(1))
	if got := s.take(); got != "none plainno-cache plainno-cache" {
		t.Error(got)
	}
	// A POST is not repeated, because no cache can have caused its response.
	resp, err := plain.HTTP().Post(d.url, "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadBody(resp, 0); millrace.ErrorCode(err) != "coding" {
		t.Error(err)
	}
}

// If the store has deleted a dictionary, one more request is sent, and the coding is still offered
// to the origin. Two editions between a request and its response have no effect.
func TestDictionaryGone(t *testing.T) {
	t.Parallel()
	s := &dczServer{match: `match="/"`}
	c := newDCZ(t, s)
	c.expect("/", edition(0))
	s.publish(3)
	c.held.bodies = map[string][]byte{"/": []byte("another")}
	c.expect("/", edition(3))
	if ix := c.held.index(); !ix.Refused.IsZero() || len(ix.Dictionaries) != 0 {
		t.Errorf("%+v", ix)
	}
	c.expect("/", edition(3))
	c.expect("/", edition(3))
	if got := s.take(); got != "none 0 plainno-cache none 3" {
		t.Error(got)
	}
}
