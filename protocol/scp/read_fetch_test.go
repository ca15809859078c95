package scp

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/fetch"
)

// A truncated download is continued with range requests for the same state, as often as
// needed. If the file has changed or the server does not support ranges, the download
// restarts.
func TestReadCutDownload(t *testing.T) {
	h := newHost(t)
	element := h.collection("all.scp", day(5, 0), time.Time{}, "/a", "/b", "/c")
	old := h.files["/all.scp"].body
	changed := coded("all.scp", collectionOf("all.scp", day(6, 0), time.Time{}, h.lines([]string{"/a", "/c", "/d"})...))
	at := len(old) / 2
	const resume = "200 /all.scp\n206 /all.scp bytes=%d-"
	for name, c := range map[string]struct {
		header []string
		answer func(n int, w http.ResponseWriter, r *http.Request) bool // returns false to send the file unchanged
		want   string                                                   // URLs of the pages read
		asked  string
		rules  []string
	}{
		"goes on": {
			answer: func(n int, w http.ResponseWriter, _ *http.Request) bool { return n == 0 && cutAt(w, old, at) },
			want:   "/a /b /c", asked: fmt.Sprintf(resume, at),
		},
		"cut at the end": { // Content-Length is too large, and the server closes the connection
			answer: func(n int, w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Length", fmt.Sprint(len(old)+10))
				return n == 0 && cutAt(w, old, len(old))
			},
			want: "/a /b /c", asked: "200 /all.scp\n416 /all.scp bytes=" + fmt.Sprint(len(old)) + "-", rules: []string{"http/content-length"},
		},
		"changes between ranges": {
			answer: func(n int, w http.ResponseWriter, _ *http.Request) bool {
				if n == 0 {
					return cutAt(w, old, at)
				}
				h.put("/all.scp", changed)
				return false
			},
			want: "/a /c /d", asked: fmt.Sprintf("200 /all.scp\n200 /all.scp bytes=%d-", at), rules: []string{noteChanged, "sitemap/generated"},
		},
		"another state in a range": { // the server ignores If-Range
			answer: func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 0 {
					return cutAt(w, old, at)
				}
				h.put("/all.scp", changed)
				r.Header.Del("If-Range")
				return false
			},
			want: "/a /c /d", asked: fmt.Sprintf("200 /all.scp\n206 /all.scp bytes=%d-\n200 /all.scp", at), rules: []string{"sitemap/generated"},
		},
		"the wrong range": {
			answer: func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 1 {
					r.Header.Set("Range", "bytes=3-")
				}
				return n == 0 && cutAt(w, old, at)
			},
			want: "/a /b /c", asked: "200 /all.scp\n206 /all.scp bytes=3-\n200 /all.scp",
		},
		"less than the range": {
			answer: func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 1 {
					r.Header.Set("Range", r.Header.Get("Range")+fmt.Sprint(at+9))
				}
				return n == 0 && cutAt(w, old, at)
			},
			want: "/a /b /c", asked: fmt.Sprintf("200 /all.scp\n206 /all.scp bytes=%d-%d\n206 /all.scp bytes=%d-", at, at+9, at+10),
		},
		"no ranges": {
			answer: func(n int, w http.ResponseWriter, r *http.Request) bool {
				r.Header.Del("Range")
				return n == 0 && cutAt(w, old, at)
			},
			want: "/a /b /c", asked: "200 /all.scp\n200 /all.scp", rules: []string{noteChanged},
		},
		"a weak tag": {
			header: []string{"ETag", `W/"x"`},
			answer: func(n int, w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("ETag", `W/"x"`)
				return n == 0 && cutAt(w, old, at)
			},
			want: "/a /b /c", asked: "200 /all.scp\n200 /all.scp",
		},
		"a wrong digest": {
			answer: func(n int, w http.ResponseWriter, _ *http.Request) bool {
				if n == 0 {
					w.Header().Set("Content-Digest", "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:")
				}
				return false
			},
			want: "/a /b /c", asked: "200 /all.scp\n200 /all.scp",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h.put("/all.scp", old, c.header...)
			h.offers(element)
			n := -1
			h.before = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/all.scp" {
					return false
				}
				n++
				return c.answer(n, w, r)
			}
			f := follow(h)
			got, asked := f.read(t)
			var want []string
			for p := range strings.FieldsSeq(c.want) {
				want = append(want, "put "+p)
			}
			if got != strings.Join(want, "\n")+"\nmark whole" {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if asked := strings.Join(asked[1:], "\n"); asked != c.asked {
				t.Errorf("%s\nwant %s", asked, c.asked)
			}
			f.expectNotes(t, c.rules...)
			if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
				t.Errorf("temporary files: %v, %v", left, err)
			}
		})
	}
}

// cutAt sends the first n bytes of a body and closes the connection.
func cutAt(w http.ResponseWriter, body []byte, n int) bool {
	if w.Header().Get("ETag") == "" {
		w.Header().Set("ETag", tagOf(body))
	}
	w.Header().Set("Content-Type", contentType)
	if w.Header().Get("Content-Length") == "" {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	}
	_, _ = w.Write(body[:n])
	_ = http.NewResponseController(w).Flush()
	return true
}

// The reader gives up a download that never completes.
func TestReadHopelessDownload(t *testing.T) {
	h := newHost(t)
	element := h.collection("all.scp", day(5, 0), time.Time{}, "/a", "/b", "/c")
	body := h.files["/all.scp"].body
	for name, c := range map[string]struct {
		answer func(n int, w http.ResponseWriter, r *http.Request) bool
		want   string
		asked  int
	}{
		"a byte at a time": {func(n int, w http.ResponseWriter, r *http.Request) bool {
			if n == 0 {
				return cutAt(w, body, 1)
			}
			w.Header().Set("ETag", tagOf(body))
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", n, len(body)-1, len(body)))
			w.Header().Set("Content-Length", fmt.Sprint(len(body)-n))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(body[n : n+1])
			return http.NewResponseController(w).Flush() == nil
		}, "unavailable", maxTries + 1},
		"never the same": {func(n int, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("ETag", fmt.Sprintf(`"%d"`, n))
			return cutAt(w, body, 10)
		}, "unavailable", maxRestarts + 2},
		"never modified": {func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusNotModified)
			return true
		}, "invalid", 1},
		"forbidden": {func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusForbidden)
			return true
		}, "http-403", 1},
		"an odd status": {func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusAccepted)
			return true
		}, "invalid", 1},
		"a wrong digest": {func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Digest", "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:")
			return false
		}, "digest", maxTries + 1},
	} {
		t.Run(name, func(t *testing.T) {
			h.offers(element)
			n := -1
			h.before = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/all.scp" {
					return false
				}
				n++
				return c.answer(n, w, r)
			}
			f := follow(h)
			got, asked := f.read(t)
			if got != "error: "+c.want || len(asked) != c.asked+1 {
				t.Errorf("%s\n%s", got, strings.Join(asked, "\n"))
			}
			if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
				t.Errorf("temporary files: %v, %v", left, err)
			}
		})
	}
}

// Files may be on other hosts, which one note reports. The Hosts option limits them, also for
// redirects.
func TestReadOtherHosts(t *testing.T) {
	h, bucket, third := newHost(t), newHost(t), newHost(t)
	e := h.collection("all.scp.gz", day(5, 0), time.Time{}, "/a")
	h.offers(strings.Replace(e, `url="/`, `url="`+bucket.url, 1))
	bucket.put("/all.scp.gz", h.files["/all.scp.gz"].body)
	f := follow(h)
	f.expect(t, "put /a\nmark whole", "200 /sitemap.xml")
	f.expectNotes(t, noteHost)

	f.cursor = ""
	f.o.Hosts = []string{hostOf(bucket.url)}
	f.expect(t, "put /a\nmark whole", "200 /sitemap.xml")
	bucket.put("/all.scp.gz", nil).answer = http.RedirectHandler(third.url+"x", http.StatusFound).ServeHTTP
	third.put("/x", h.files["/all.scp.gz"].body)
	f.cursor = ""
	f.expect(t, "error: other-host", "200 /sitemap.xml")

	f.o.Hosts = []string{}
	f.expect(t, "error: other-host /sitemap.xml", "200 /sitemap.xml")
}

// A site with https is never read over http.
func TestReadDowngrade(t *testing.T) {
	plain := newHost(t)
	plain.collection("all.scp", day(5, 0), time.Time{}, "/a")
	srv := httptest.NewTLSServer(nil)
	t.Cleanup(srv.Close)
	h := &host{t: t, url: srv.URL + "/", files: map[string]*served{}}
	srv.Config.Handler = h
	e := h.collection("all.scp", day(5, 0), time.Time{}, "/a")
	f := follow(h)
	f.client = srv.Client()
	h.offers(strings.Replace(e, `url="/`, `url="`+plain.url, 1))
	f.expect(t, "error: scp/security/https /sitemap.xml", "200 /sitemap.xml")
	h.put("/robots.txt", []byte("Sitemap: "+plain.url+"sitemap.xml\n"))
	delete(h.files, "/sitemap.xml")
	plain.offers(e)
	if got, _ := f.read(t); got != "error: not-found" || len(plain.log) > 0 {
		t.Error(got, plain.log)
	}
	f.expectNotes(t, "security/sitemap-https")
	h.offers(e)
	f.expect(t, "put /a\nmark whole", "200 /sitemap.xml\n200 /all.scp")
}

// With the guarded client, the cases are: files over its body limit, responses with Retry-After,
// and robots.txt.
func TestReadGuardedClient(t *testing.T) {
	h := newHost(t)
	pages := make([]string, 400)
	for i := range pages {
		pages[i] = fmt.Sprintf("/page/%d", i)
	}
	e := h.collection("all.scp", day(5, 0), time.Time{}, pages...)
	h.offers(e)
	n := 0
	h.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/all.scp" {
			return false
		}
		if n++; n == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		return n == 1
	}
	c := fetch.New(&fetch.Options{AllowPrivate: true, MaxBody: 1 << 10})
	t.Cleanup(c.CloseIdleConnections)
	f := follow(h)
	f.client = c.HTTP()
	if got, asked := f.read(t); len(f.pages) != 400 || len(asked) != 3 {
		t.Error(got, asked)
	}
	if !bytes.HasSuffix([]byte(f.h.log[2]), []byte("200 /all.scp")) {
		t.Error(f.h.log)
	}
	h.put("/robots.txt", []byte("User-agent: *\nDisallow: /all.scp\n"))
	c2 := fetch.New(&fetch.Options{AllowPrivate: true})
	t.Cleanup(c2.CloseIdleConnections)
	f = follow(h)
	f.client = c2.HTTP()
	if got, _ := f.read(t); got != "error: robots-disallow" {
		t.Error(got)
	}
}
