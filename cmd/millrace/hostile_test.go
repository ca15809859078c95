package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/testkit"
)

// manual is the site that hostile servers imitate.
const manual = "http://handbook.example/"

// manualSite serves the handbook by every protocol, and returns a mirror of it for each
// way.
func manualSite(t *testing.T) (good http.Handler, mirrors map[string]string) {
	t.Helper()
	s := serve(t, copySite(t, "handbook"), "--base-url", manual)
	eventually(t, "the site is published", func() bool {
		code, _, _ := get(t, address(s)+"llm-pages.json")
		return code == http.StatusOK
	})
	good, mirrors = onward(address(s)), map[string]string{}
	for _, via := range vias {
		file := filepath.Join(t.TempDir(), "good.db")
		mirrors[via] = file
		bubble(t, 0, func(t *testing.T, n *internet) {
			log := newTurning(1<<30, good, nil)
			n.put("handbook.example:80", &place{handler: log})
			got := n.pull(t, file, append(by(via), manual)...)
			if got.code != 0 || got.report.Added == 0 {
				t.Fatalf("%q: exit %d: %s%s", via, got.code, got.text, got.stderr)
			}
		})
	}
	return good, mirrors
}

// fault is a kind of hostile behavior.
type fault struct {
	name string
	bad  func(good http.Handler) http.Handler
	raw  func(net.Conn) // replaces bad
	want string         // codes of the errors, separated by |; "" = the pull succeeds
	// warnUnverified: a crawl cannot detect that the pages are wrong.
	warnUnverified bool
}

func status(code int, header ...string) func(http.Handler) http.Handler {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	return func(http.Handler) http.Handler { return always(code, h, http.StatusText(code)) }
}

// bomb sends a small body that decodes to a very large one.
func bomb(coding string) func(http.Handler) http.Handler {
	made := sync.OnceValue(func() []byte { return packed(coding) })
	return func(good http.Handler) http.Handler {
		return spoiled(good, func(_ *http.Request, a *recorder) {
			a.header.Set("Content-Encoding", coding)
			a.header.Del("Content-Digest")
			a.body.Reset()
			a.body.Write(made())
		})
	}
}

// packed returns 64 MiB of coded white space.
func packed(coding string) []byte {
	const size = 64 << 20
	var b bytes.Buffer
	switch coding {
	case "gzip":
		spaces(size, gzip.NewWriter(&b))
	case "br":
		// Output of a Brotli encoder.
		all, err := hex.DecodeString("cbffff3f002440e2b14072effff8ffff078004401c1680eefd1fffffff00900088c302d0bdffe3ffff1f001200715800baf77ffcffff03400" +
			"2200e0b40f7fe8fffff7f004800c46101e8defff1ffff0f000980382c00ddfb3ffeffff012001108705a07bff37")
		if err != nil {
			panic(err)
		}
		b.Write(all)
	case "zstd":
		// A frame (RFC 8878, section 3.1.1) with a window of 2 MiB and blocks of
		// 128 KiB that are one byte repeated.
		b.WriteString("\x28\xb5\x2f\xfd\x00\x58")
		b.WriteString(strings.Repeat("\x02\x00\x10 ", size/(128<<10)-1))
		b.WriteString("\x03\x00\x10 ")
	case "gzip, gzip":
		w := gzip.NewWriter(&b)
		spaces(size, gzip.NewWriter(w))
		_ = w.Close()
	default:
		b.WriteString("hello")
	}
	return b.Bytes()
}

// spaces writes n bytes of white space, which every format allows.
func spaces(n int, w io.WriteCloser) {
	some := bytes.Repeat([]byte(" "), 64<<10)
	for ; n > 0; n -= len(some) {
		_, _ = w.Write(some)
	}
	_ = w.Close()
}

// redirect redirects every request.
func redirect(location string) func(http.Handler) http.Handler {
	return status(302, "Location", location)
}

// wrongDocument lists the codes for a wrong response in place of a document.
const wrongDocument = "not-found|no-html|json-syntax|json-truncated|json-type"

var faults = []fault{
	{name: "loop", want: "redirect-loop", bad: func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.RequestURI(), http.StatusFound)
		})
	}},
	{name: "endless redirects", want: "redirect-limit|no-page", bad: func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		})
	}},
	{name: "never answers", want: "timeout-response", bad: func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	}},
	{name: "a byte a second", want: "timeout-rate|timeout-total|not-found", bad: func(good http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", answered(good, r).header.Get("Content-Type"))
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Second)
			}
		})
	}},
	{name: "breaks off", want: "connection-closed", bad: func(good http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a := answered(good, r)
			maps.Copy(w.Header(), a.header)
			w.Header().Set("Content-Length", fmt.Sprint(a.body.Len()+2))
			w.WriteHeader(a.code)
			_, _ = w.Write(a.body.Bytes()[:a.body.Len()/2])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
	}},
	{name: "a page for every path", want: wrongDocument + "|same-page", bad: func(http.Handler) http.Handler {
		return always(200, http.Header{"Content-Type": {"text/html; charset=utf-8"}},
			"<!DOCTYPE html><title>Welcome</title><main><h1>Welcome to the guest network</h1><p>Accept the terms of use to go on to where you wanted to go, and have a nice day.</p></main>")
	}},
	{name: "HTML for JSON", want: wrongDocument + "|same-page", bad: func(good http.Handler) http.Handler {
		return spoiled(good, func(_ *http.Request, a *recorder) {
			a.code = 200
			a.header.Del("Content-Encoding")
			a.header.Del("Content-Digest")
			a.body.Reset()
			a.body.WriteString("<!DOCTYPE html><title>Oops</title><p>Something went wrong, and somebody is looking at it now")
		})
	}},
	{name: "another type", want: "", bad: func(good http.Handler) http.Handler {
		return spoiled(good, func(_ *http.Request, a *recorder) { a.header.Set("Content-Type", "image/png") })
	}},
	{name: "nothing", want: wrongDocument, bad: func(http.Handler) http.Handler { return always(200, nil, "") }},
	{name: "[]", want: wrongDocument, bad: func(http.Handler) http.Handler {
		return always(200, http.Header{"Content-Type": {"application/json"}}, "[]")
	}},
	{name: "{}", want: wrongDocument + "|openfeeder/2.1", bad: func(http.Handler) http.Handler {
		return always(200, http.Header{"Content-Type": {"application/json"}}, "{}")
	}},
	{name: "half of the body", want: "coding-truncated", warnUnverified: true, bad: func(good http.Handler) http.Handler {
		return spoiled(good, func(_ *http.Request, a *recorder) {
			a.header.Del("Content-Digest")
			a.header.Del("ETag")
			a.header.Del("Last-Modified")
			a.body.Truncate(a.body.Len() / 2)
		})
	}},
	{name: "gzip bomb", want: tooMuch, bad: bomb("gzip")},
	{name: "br bomb", want: tooMuch, bad: bomb("br")},
	{name: "zstd bomb", want: tooMuch, bad: bomb("zstd")},
	{name: "bomb in a bomb", want: tooMuch, bad: bomb("gzip, gzip")},
	{name: "four codings", want: "coding", bad: bomb("gzip, gzip, gzip, br")},
	{name: "1 MB header", want: "header-size", bad: func(http.Handler) http.Handler {
		return always(200, http.Header{"Content-Type": {"text/html"}, "X-Long": {strings.Repeat("x", 1<<20)}}, "hello")
	}},
	{name: "20,000 fields", want: "header-size", bad: func(http.Handler) http.Handler {
		h := http.Header{"Content-Type": {"text/html"}}
		for i := range 20000 {
			h.Set(fmt.Sprint("X-", i), "a value of some length")
		}
		return always(200, h, "hello")
	}},
	{name: "cookies", want: "", bad: func(good http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Add("Set-Cookie", "session=topsecret; Path=/; Max-Age=999999")
			w.Header().Add("Set-Cookie", "other=topsecret; Domain=handbook.example")
			good.ServeHTTP(w, r)
		})
	}},
	{name: "private address", want: "address-private|site-moved", bad: redirect("http://10.0.0.1/")},
	{name: "loopback address", want: "address-loopback|site-moved", bad: redirect("http://127.0.0.1:8080/")},
	{name: "metadata of a cloud", want: "address-metadata|site-moved", bad: redirect("http://169.254.169.254/latest/")},
	{name: "name of a private address", want: "address-private|site-moved", bad: redirect("http://inside.example/")},
	{name: "credentials", want: "redirect-target|redirect-loop", bad: redirect("http://somebody:topsecret@handbook.example/")},
	{name: "credentials in an invalid URL", want: "redirect-target", bad: redirect("http://somebody:topsecret@[::1/")},
	{name: "file", want: "redirect-target", bad: redirect("file:///etc/passwd")},
	{name: "401", want: "http-401|not-found", bad: status(401, "WWW-Authenticate", "Basic")},
	{name: "404", want: "http-404|no-root|not-found", bad: status(404)},
	{name: "410", want: "http-410|no-root|not-found", bad: status(410)},
	{name: "429", want: "http-429|retry-after", bad: status(429, "Retry-After", "999999")},
	{name: "500", want: "http-500", bad: status(500)},
	{name: "503", want: "http-503|host-paused", bad: status(503, "Retry-After", "99999999999999999999")},
	{name: "101", want: "http-101", bad: status(101, "Upgrade", "x")},
	{name: "999", want: "http-999", bad: status(999)},
	{name: "no HTTP", want: "no-http|connection-closed|host-paused", raw: func(c net.Conn) {
		_, _ = c.Write([]byte("SSH-2.0-OpenSSH_9.9\r\n"))
		_ = c.Close()
	}},
	{name: "hangs up", want: "connection-closed|host-paused", raw: func(c net.Conn) { _ = c.Close() }},
}

const tooMuch = "coding-ratio|not-found"

// Whatever a site does, a pull ends soon, reports the problem and its place in one line, and keeps
// the mirror. The next pull continues.
func TestHostile(t *testing.T) {
	t.Parallel()
	good, mirrors := manualSite(t)
	for i, f := range faults {
		for j, via := range vias {
			if !testkit.Soaking() && (i+j)%len(vias) > 0 || testing.Short() && (f.name == "gzip bomb" || f.name == "bomb in a bomb") {
				continue // except in soak tests, one way for each fault; with -short, no slow bombs
			}
			t.Run(f.name+"/"+cmp.Or(via, "best"), func(t *testing.T) {
				// The fault begins at the first request or in the middle of a good
				// pull.
				f.test(t, good, mirrors[via], via, 1+2*((i+j)%2))
			})
		}
	}
}

func (f *fault) test(t *testing.T, good http.Handler, mirror, via string, after int) {
	file := copyStore(t, mirror)
	before := texts(t, file, manual)
	var got, next pulled
	var asked, cookies []string
	bubble(t, 48*time.Hour, func(t *testing.T, n *internet) {
		log := newTurning(after, good, nil)
		site := &place{handler: log, raw: f.raw}
		if f.raw == nil {
			log.bad = f.bad(good)
		}
		n.put("handbook.example:80", site)
		n.put("inside.example:80", &place{handler: log, addr: func() *net.TCPAddr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 80} }})
		got = n.pull(t, file, append(by(via), manual)...)
		log.mu.Lock() // the server may not have noticed yet that the client closed the connection
		asked, cookies = slices.Clone(log.paths), slices.Clone(log.cookies)
		log.mu.Unlock()
		if f.want != "" && !(f.warnUnverified && got.code == 0) {
			unchanged(t, before, file, manual)
		}
		time.Sleep(48 * time.Hour)
		n.put("handbook.example:80", &place{handler: good})
		next = n.pull(t, file, append(by(via), manual)...)
	})
	t.Logf("%s, %d requests\n%s%s", got.took, len(asked), got.text, got.stderr)
	if f.want == "" && !(via == webCrawl && f.name == "another type") {
		if got.code != 0 || got.report.Error != "" {
			t.Errorf("exit %d: %s", got.code, got.report.Error)
		}
	} else if !(f.warnUnverified && got.code == 0 && (via == webCrawl || got.report.Via == webCrawl)) {
		f.checkTrouble(t, via, got)
	}
	if got.took > 5*time.Minute || len(asked) > 100 && f.name != "endless redirects" || len(asked) > 1000 {
		t.Errorf("%s, %d requests", got.took, len(asked))
	}
	if len(cookies) > 0 {
		t.Errorf("cookies were sent: %q", cookies)
	}
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{got.text, got.stderr, fmt.Sprint(got.report), string(stored)} {
		if strings.Contains(s, "topsecret") {
			t.Errorf("output has a secret: %.300s", s)
		}
	}
	if next.code != 0 {
		t.Errorf("the next pull: exit %d: %s", next.code, next.text)
	}
	unchanged(t, before, file, manual)
}

// checkTrouble fails unless a pull reported the problem in one line.
func (f *fault) checkTrouble(t *testing.T, via string, got pulled) {
	t.Helper()
	lines, codes := got.trouble()
	most := 1
	if via == "" {
		most = 2 // one for each way that was tried
	}
	if got.code != exitFailure || got.report.Error == "" || len(lines) == 0 || len(lines) > most {
		t.Errorf("exit %d, %q: %q", got.code, got.report.Error, lines)
	}
	for _, code := range codes {
		if f.want != "" && !slices.Contains(strings.Split(f.want, "|"), code) {
			t.Errorf("%q is %s, want %s", lines, code, f.want)
		}
	}
	for _, line := range lines {
		if len(line) > 350 || regexp.MustCompile(`%!|EOF|net/http|mirror http|(tct-0[01]|scp|arc|openfeeder|crawl): (tct-0[01]|scp|arc|openfeeder|crawl)`).MatchString(line) {
			t.Errorf("unexpected line: %s", line)
		}
	}
}
