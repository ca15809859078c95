package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/internal/outbox"
	"github.com/millrace/millrace/internal/testkit"
)

// compressor is a proxy that compresses every body and weakens its ETag, like nginx
// with gzip.
type compressor struct {
	*httptest.Server
	to       atomic.Pointer[url.URL]
	requests atomic.Int64
	// damage changes a document; nil = no change.
	damage atomic.Pointer[func(r *http.Request, body []byte) []byte]
}

func newCompressor(t *testing.T) *compressor {
	t.Helper()
	c := &compressor{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(c.to.Load())
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Accept-Encoding", "identity")
		},
		ModifyResponse: func(resp *http.Response) error {
			if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "" {
				return nil
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				return err
			}
			if damage := c.damage.Load(); damage != nil && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
				if cut := (*damage)(resp.Request, body); !bytes.Equal(cut, body) {
					body = cut
					resp.Header.Del("Content-Digest")
				}
			}
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write(body)
			if err := z.Close(); err != nil {
				return err
			}
			resp.Body, resp.ContentLength = io.NopCloser(&b), -1
			resp.Header.Del("Content-Length")
			resp.Header.Set("Content-Encoding", "gzip")
			if tag := resp.Header.Get("ETag"); strings.HasPrefix(tag, `"`) {
				resp.Header.Set("ETag", "W/"+tag)
			}
			return nil
		},
	}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

// before runs the proxy in front of a server that uses the address of the proxy as its base.
func (c *compressor) before(t *testing.T, source string) {
	t.Helper()
	listen := "127.0.0.1:" + testkit.FreePort(t)
	serve(t, source, "--base-url", c.URL+"/", "--listen", listen)
	c.to.Store(&url.URL{Scheme: "http", Host: listen})
}

// If a page does not match its hash, pull fetches it again, bypassing caches. If that fails too,
// pull stores it marked as unconfirmed, until a later fetch matches.
func TestUnconfirmed(t *testing.T) {
	t.Parallel()
	for via, document := range map[string]string{"tct-01": "/about/llm.json", "tct-00": "/about/llm/"} {
		c, dir, file := newCompressor(t), copySite(t, "handbook"), filepath.Join(t.TempDir(), "m.db")
		c.before(t, dir)
		var asked atomic.Int64
		spoil := func(always bool) {
			asked.Store(0)
			damage := func(r *http.Request, body []byte) []byte {
				if r.URL.Path != document {
					return body
				}
				asked.Add(1)
				if !always && r.Header.Get("Cache-Control") == "no-cache" {
					return body
				}
				return bytes.Replace(body, []byte(`"content":"`), []byte(`"content":"Spoilt. `), 1)
			}
			c.damage.Store(&damage)
		}
		marked := func() (n int) {
			for line := range strings.Lines(exported(t, "--store", file, "--format", "jsonl", "--quiet")) {
				var p struct {
					URL         string
					Text        string
					Unconfirmed bool
				}
				if err := json.Unmarshal([]byte(line), &p); err != nil {
					t.Fatal(err)
				}
				if p.Unconfirmed {
					n++
				}
				if is := strings.HasSuffix(p.URL, "/about/"); p.Unconfirmed != (is && strings.Contains(p.Text, "Spoilt.")) {
					t.Errorf("%s: %s is unconfirmed: %v", via, p.URL, p.Unconfirmed)
				}
			}
			return n
		}

		spoil(false)
		if r, code := tryPull(t, c.URL, file, "--via", via); code != 0 || r.Unconfirmed != 0 || asked.Load() != 2 {
			t.Errorf("%s: the second response is right: exit %d, %d unconfirmed after %d requests", via, code, r.Unconfirmed, asked.Load())
		}
		if n := marked(); n != 0 {
			t.Errorf("%s: %d pages are marked", via, n)
		}

		spoil(true)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if r, code := tryPull(t, c.URL, file, "--via", via); code != 0 || r.Unconfirmed != 1 || asked.Load() != 2 || r.SkippedN != 0 {
			t.Errorf("%s: damaged: exit %d, %d unconfirmed after %d requests", via, code, r.Unconfirmed, asked.Load())
		}
		if n := marked(); n != 1 {
			t.Errorf("%s: %d pages are marked", via, n)
		}
		if r, code := tryPull(t, c.URL, file, "--via", via); code != 0 || r.Unconfirmed != 0 || r.Requests != 1 {
			t.Errorf("%s: without changes: exit %d, %d unconfirmed, %d requests", via, code, r.Unconfirmed, r.Requests)
		}
		if n := marked(); n != 1 {
			t.Errorf("%s: %d pages are marked after a pull without changes", via, n)
		}
		w := watch(t, c.URL, "--store", file, "--via", via)
		eventually(t, "the page is reported", func() bool {
			return slices.ContainsFunc(lines(t, w.stdout.String()), func(e outbox.Event) bool { return e.Unconfirmed && strings.HasSuffix(e.URL, "/about/") })
		})
		w.stop()

		c.damage.Store(nil)
		edit(t, dir, "Alderford is a mill", "Alderford was a mill")
		eventually(t, "the change is pulled", func() bool {
			r, _ := tryPull(t, c.URL, file, "--via", via)
			return r.Updated == 1 && r.Unconfirmed == 0
		})
		if n := marked(); n != 0 {
			t.Errorf("%s: the page is confirmed, but %d pages are marked", via, n)
		}
	}
}
