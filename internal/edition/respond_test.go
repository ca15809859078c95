package edition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

var body = strings.Repeat("All work and no play makes Jack a dull boy. ", 20)

// sample returns a document that fails the test if it must not be written.
func sample(t *testing.T, sharedETag, mayWrite bool) *millrace.Document {
	return &millrace.Document{
		Path: "/a.json", ETag: "x", SharedETag: sharedETag,
		Header: http.Header{
			"Content-Type": {"application/json"}, "Cache-Control": {"max-age=0"}, "Link": {`<https://x.test/a>; rel="canonical"`},
			"Last-Modified": {"Fri, 02 Jan 2026 03:04:05 GMT"}, "Content-Location": {"/a.json"}, "X-OpenFeeder": {"1.0"},
		},
		Write: func(_ context.Context, w io.Writer) error {
			if !mayWrite {
				t.Error("Write was called")
			}
			_, err := io.WriteString(w, body)
			return err
		},
	}
}

func send(t *testing.T, d *millrace.Document, method string, fields ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "/a.json", nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	refused(t, w, Respond(w, r, d))
	return w
}

// refused writes the status of a RequestError, like callers of the package. Other errors
// fail the test.
func refused(t testing.TB, w *httptest.ResponseRecorder, err error) {
	t.Helper()
	if reqErr := requestError(err); reqErr != nil {
		w.Code = reqErr.Status
	} else if err != nil {
		t.Fatal(err)
	}
}

func TestConditions(t *testing.T) {
	const (
		before = "Fri, 02 Jan 2026 03:04:04 GMT"
		at     = "Fri, 02 Jan 2026 03:04:05 GMT"
	)
	for _, c := range []struct {
		name   string
		fields []string
		status int
		etag   string // with coded validators
	}{
		{"none", nil, 200, `"x"`},
		{"same", []string{"If-None-Match", `"x"`}, 304, `"x"`},
		{"weak", []string{"If-None-Match", `W/"x"`}, 304, `"x"`},
		{"star", []string{"If-None-Match", `*`}, 304, `"x"`},
		{"list", []string{"If-None-Match", `"a", W/"b" ,"x"`}, 304, `"x"`},
		{"two fields", []string{"If-None-Match", `"a"`, "If-None-Match", `"x"`}, 304, `"x"`},
		{"other", []string{"If-None-Match", `"y"`}, 200, `"x"`},
		{"prefix", []string{"If-None-Match", `"x-"`}, 200, `"x"`},
		{"unquoted", []string{"If-None-Match", `x`}, 200, `"x"`},
		{"unclosed", []string{"If-None-Match", `"x`}, 200, `"x"`},
		{"comma in a tag", []string{"If-None-Match", `"a,b", "x"`}, 304, `"x"`},
		{"suffix", []string{"If-None-Match", `"x-gzip"`}, 304, `"x-gzip"`},
		{"suffix, coded", []string{"If-None-Match", `"x-gzip"`, "Accept-Encoding", "gzip"}, 304, `"x-gzip"`},
		{"client has identity, requests gzip", []string{"If-None-Match", `"x"`, "Accept-Encoding", "gzip"}, 304, `"x"`},
		{"both held", []string{"If-None-Match", `"x", "x-gzip"`, "Accept-Encoding", "gzip"}, 304, `"x-gzip"`},
		{"star, coded", []string{"If-None-Match", `*`, "Accept-Encoding", "br"}, 304, `"x-br2"`},
		{"unknown suffix", []string{"If-None-Match", `"x-lzma"`}, 200, `"x"`},
		{"date", []string{"If-Modified-Since", at}, 304, `"x"`},
		{"earlier date", []string{"If-Modified-Since", before}, 200, `"x"`},
		{"no date", []string{"If-Modified-Since", "yesterday"}, 200, `"x"`},
		{"the tag takes precedence over the date", []string{"If-None-Match", `"y"`, "If-Modified-Since", at}, 200, `"x"`},
		{"an empty tag takes precedence over the date", []string{"If-None-Match", ``, "If-Modified-Since", at}, 200, `"x"`},
		{"match", []string{"If-Match", `"x"`}, 200, `"x"`},
		{"match is strong", []string{"If-Match", `W/"x"`}, 412, ""},
		{"no match", []string{"If-Match", `"y"`, "If-None-Match", `"x"`}, 412, ""},
		{"If-Match, then If-None-Match", []string{"If-Match", `"x"`, "If-None-Match", `"x"`}, 304, `"x"`},
		{"unmodified", []string{"If-Unmodified-Since", at}, 200, `"x"`},
		{"modified", []string{"If-Unmodified-Since", before}, 412, ""},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			for _, sharedETag := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%t", c.name, method, sharedETag), func(t *testing.T) {
					w := send(t, sample(t, sharedETag, method == "GET" && c.status == 200), method, c.fields...)
					etag := c.etag
					if sharedETag && etag != "" {
						etag = `"x"`
					}
					if w.Code != c.status || w.Header().Get("ETag") != etag {
						t.Fatalf("%d %s, want %d %s", w.Code, w.Header().Get("ETag"), c.status, etag)
					}
					if (method == "HEAD" || c.status != 200) && w.Body.Len() > 0 {
						t.Errorf("a body of %d bytes", w.Body.Len())
					}
				})
			}
		}
	}
}

func TestNotModifiedHeader(t *testing.T) {
	w := send(t, sample(t, false, false), "GET", "If-None-Match", `"x-gzip"`, "Accept-Encoding", "gzip")
	want := http.Header{
		"Etag": {`"x-gzip"`}, "Cache-Control": {"max-age=0"}, "Link": {`<https://x.test/a>; rel="canonical"`},
		"Last-Modified": {"Fri, 02 Jan 2026 03:04:05 GMT"}, "Content-Location": {"/a.json"}, "Vary": {"Accept-Encoding"},
		"X-Openfeeder": {"1.0"}, "Access-Control-Allow-Origin": {"*"}, "Access-Control-Expose-Headers": {"ETag, Link, X-Openfeeder"},
	}
	if diff := cmp.Diff(want, w.Header()); diff != "" {
		t.Error(diff)
	}
}

// A 304 has the same fields as the 200. A HEAD has the same fields as the GET, except
// the name of the digest.
func TestHeadersAgree(t *testing.T) {
	for _, accept := range []string{"", "gzip", "br", "zstd"} {
		for _, sharedETag := range []bool{false, true} {
			site := newMemSite(3)
			s := newTestServer(t, site, &memProtocol{sharedETag: sharedETag, pad: 400}, nil)
			publish(t, s)
			for _, target := range []string{"/1.txt", "/odd.txt"} {
				get := ask(t, s, "GET", target, "Accept-Encoding", accept).Header()
				head := ask(t, s, "HEAD", target, "Accept-Encoding", accept).Header()
				not := ask(t, s, "GET", target, "Accept-Encoding", accept, "If-None-Match", get.Get("ETag")).Header()
				for name, value := range not {
					if diff := cmp.Diff(get[name], value); diff != "" {
						t.Errorf("%s %s: 304 differs in %s: %s", target, accept, name, diff)
					}
				}
				for name := range validating {
					if get[name] != nil && not[name] == nil {
						t.Errorf("%s %s: 304 lacks %s", target, accept, name)
					}
				}
				head["Content-Digest"] = head["Repr-Digest"]
				delete(head, "Repr-Digest")
				if diff := cmp.Diff(get, head); diff != "" {
					t.Errorf("%s %s: HEAD differs: %s", target, accept, diff)
				}
			}
		}
	}
}

func TestColdHead(t *testing.T) {
	for _, sharedETag := range []bool{false, true} {
		h := send(t, sample(t, sharedETag, false), "HEAD", "Accept-Encoding", "gzip").Header()
		for _, name := range []string{"Content-Length", "Content-Digest", "Repr-Digest"} {
			if h[name] != nil {
				t.Errorf("%s of a body that was not rendered", name)
			}
		}
		if h.Get("Content-Type") != "application/json" {
			t.Error("no Content-Type")
		}
		if want := map[bool]string{false: `"x-gzip" gzip`, true: `"x" `}[sharedETag]; h.Get("ETag")+" "+h.Get("Content-Encoding") != want {
			t.Errorf("%s %s, want %s", h.Get("ETag"), h.Get("Content-Encoding"), want)
		}
	}
}

func decode(t *testing.T, coding string, b []byte) []byte {
	t.Helper()
	var r io.Reader = bytes.NewReader(b)
	var err error
	switch coding {
	case "gzip":
		r, err = gzip.NewReader(r)
	case "br":
		r = brotli.NewReader(r)
	case "zstd":
		r, err = zstd.NewReader(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCodings(t *testing.T) {
	for _, sharedETag := range []bool{false, true} {
		for _, coding := range []string{"", "gzip", "br", "zstd"} {
			w := send(t, sample(t, sharedETag, true), "GET", "Accept-Encoding", coding)
			h := w.Header()
			suffix := ""
			if coding != "" && !sharedETag {
				c, _ := codingOf(coding)
				suffix = codingTable[c].suffix
			}
			if h.Get("Content-Encoding") != coding || h.Get("ETag") != `"x`+suffix+`"` {
				t.Errorf("%s %s, want %s", h.Get("Content-Encoding"), h.Get("ETag"), coding)
			}
			if got := decode(t, coding, w.Body.Bytes()); string(got) != body {
				t.Errorf("%s: a different body of %d bytes", coding, len(got))
			}
			if h.Get("Content-Digest") != canon.Digest(w.Body.Bytes()) {
				t.Errorf("%s: digest %s", coding, h.Get("Content-Digest"))
			}
			if h.Get("Content-Length") != fmt.Sprint(w.Body.Len()) || h.Get("Vary") != "Accept-Encoding" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %v", coding, h)
			}
		}
	}
}

// The suffix of a coding identifies the bytes of its encoder. If this test fails after an
// upgrade, change the suffix in codingTable, then the sum here.
func TestEncodersKeepTheirBytes(t *testing.T) {
	got := map[coding]string{}
	for c := identity; c < codings; c++ {
		one, err := new(encoders).encode(c, []byte(strings.Repeat(body, 50)))
		if err != nil {
			t.Fatal(err)
		}
		var many bytes.Buffer
		enc := new(encoders)
		for _, text := range []string{strings.Repeat("an earlier "+body, 1000), body} { // an encoder that was used before
			many.Reset()
			err := enc.stream(c, &many, func(w io.Writer) (err error) {
				for range 50 {
					_, e := io.WriteString(w, text)
					err = errors.Join(err, e)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		got[c] = codingTable[c].suffix + " " + canon.SHA256Hex(one)[:16] + " " + canon.SHA256Hex(many.Bytes())[:16]
	}
	want := map[coding]string{
		identity:     " 2f34e38c8dc8e6cd 2f34e38c8dc8e6cd",
		brotliCoding: "-br2 d0ab3d9e8e4fb6a6 cc6789aea08fe50c",
		zstdCoding:   "-zstd 5d0f6a85b4bdefcc 5d0f6a85b4bdefcc",
		gzipCoding:   "-gzip 1f2b43df771e07bf 1f2b43df771e07bf",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSmallBodies(t *testing.T) {
	d := sample(t, true, true)
	d.Write = func(_ context.Context, w io.Writer) error { _, err := io.WriteString(w, "tiny"); return err }
	if w := send(t, d, "GET", "Accept-Encoding", "gzip"); w.Header().Get("Content-Encoding") != "" || w.Body.String() != "tiny" {
		t.Errorf("coded: %v", w.Header())
	}
	d.SharedETag = false
	if w := send(t, d, "GET", "Accept-Encoding", "gzip"); w.Header().Get("ETag") != `"x-gzip"` || w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("validator and coding differ: %v", w.Header())
	}
}

func TestNegotiate(t *testing.T) {
	for _, c := range []struct {
		accept string
		want   coding
	}{
		{"", identity},
		{"gzip", gzipCoding},
		{"x-gzip", gzipCoding},
		{"GZIP", gzipCoding},
		{"gzip, deflate", gzipCoding},
		{"gzip, deflate, br, zstd", brotliCoding},
		{"gzip, zstd", zstdCoding},
		{"zstd;q=0.5, gzip;q=0.8", gzipCoding},
		{"gzip;q=0", identity},
		{"gzip;q=0.0", identity},
		{"gzip;q=0.001", gzipCoding},
		{"gzip;q=1.000", gzipCoding},
		{"br;q=0, *", zstdCoding},
		{"*", brotliCoding},
		{"*;q=0", identity},
		{"identity;q=0", identity},
		{"identity;q=0, gzip;q=0.1", gzipCoding},
		{"identity, gzip;q=0.5", identity},
		{"identity;q=0.5, gzip;q=0.5", gzipCoding},
		{"gzip;q=0.5", gzipCoding},
		{"deflate", identity},
		{"gzip;q=2", identity},
		{"gzip;q=x", identity},
		{"gzip;q=0.1234", identity},
		{"gzip ; q=0.5 , br ; q=0.4", gzipCoding},
		{"gzip;Q=0.5", gzipCoding},
		{",,gzip,,", gzipCoding},
		{";q=1", identity},
		{"gzip;q=", identity},
		{"*;q=0, gzip", gzipCoding},
		{"gzip, *;q=0", gzipCoding},
		{"gzip;q=0, gzip;q=1", gzipCoding},
	} {
		fields := []string{c.accept}
		if got := negotiate(fields, allCodings); got != c.want {
			t.Errorf("%q: %s, want %s", c.accept, codingTable[got].name, codingTable[c.want].name)
		}
	}
	if got := negotiate([]string{"br;q=0.5", "gzip"}, allCodings); got != gzipCoding {
		t.Errorf("two fields: %s", codingTable[got].name)
	}
	if got := negotiate([]string{"br, gzip;q=0.1"}, 1<<identity|1<<gzipCoding); got != gzipCoding {
		t.Errorf("not offered: %s", codingTable[got].name)
	}
}

func FuzzNegotiate(f *testing.F) {
	for _, s := range []string{"gzip;q=0.5, *;q=0", ";;;,", "br;q=1.", "*;q=0.001,identity;q=0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if c := negotiate([]string{s}, 1<<identity|1<<gzipCoding); c != identity && c != gzipCoding {
			t.Errorf("%q: %d", s, c)
		}
	})
}

func FuzzConditions(f *testing.F) {
	f.Add(`"x", W/"x-gzip"`, "bytes=1-2")
	f.Add(`W/`, "bytes=-0")
	f.Add(`"`, "bytes=9-")
	f.Fuzz(func(t *testing.T, tags, rng string) {
		e, err := prepare(sample(t, false, true), false, 0, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		e.condition(http.Header{"If-None-Match": {tags}, "If-Match": {tags}}, gzipCoding)
		if from, n, status := byteRange([]string{rng}, 10); from < 0 || n < 0 || from+n > 10 || status == 206 && n == 0 {
			t.Errorf("%q: %d+%d %d", rng, from, n, status)
		}
	})
}

func TestRanges(t *testing.T) {
	n := len(body)
	for _, c := range []struct {
		rng, ifRange string
		status       int
		from, to     int // half open
	}{
		{"bytes=0-0", "", 206, 0, 1},
		{"bytes=5-9", "", 206, 5, 10},
		{"bytes=5-", "", 206, 5, n},
		{"bytes=-5", "", 206, n - 5, n},
		{"bytes=-99999", "", 206, 0, n},
		{"bytes=0-99999", "", 206, 0, n},
		{"bytes=5-9", `"x"`, 206, 5, 10},
		{"bytes=5-9", `"y"`, 200, 0, n},
		{"bytes=5-9", `W/"x"`, 200, 0, n},
		{"bytes=5-9", "Fri, 02 Jan 2026 03:04:05 GMT", 200, 0, n},
		{"bytes=0-1,3-4", "", 200, 0, n},
		{"lines=1-2", "", 200, 0, n},
		{"bytes=9-5", "", 200, 0, n},
		{"bytes=a-b", "", 200, 0, n},
		{"bytes=-", "", 200, 0, n},
		{"bytes=+1-2", "", 200, 0, n},
		{"bytes=99999-", "", 416, 0, 0},
		{"bytes=-0", "", 416, 0, 0},
		{"bytes=99999999999999999999-", "", 200, 0, n},
	} {
		fields := []string{"Range", c.rng}
		if c.ifRange != "" {
			fields = append(fields, "If-Range", c.ifRange)
		}
		w := send(t, sample(t, false, true), "GET", fields...)
		h := w.Header()
		if w.Code != c.status || w.Body.String() != body[c.from:c.to] {
			t.Errorf("%s %s: %d with %d bytes, want %d", c.rng, c.ifRange, w.Code, w.Body.Len(), c.status)
			continue
		}
		switch c.status {
		case 206:
			if h.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", c.from, c.to-1, n) || h.Get("Content-Length") != fmt.Sprint(c.to-c.from) ||
				h.Get("Repr-Digest") != canon.Digest([]byte(body)) || h["Content-Digest"] != nil {
				t.Errorf("%s: %v", c.rng, h)
			}
		case 416:
			if h.Get("Content-Range") != fmt.Sprintf("bytes */%d", n) || h["Content-Type"] != nil {
				t.Errorf("%s: %v", c.rng, h)
			}
		}
	}
	w := send(t, sample(t, true, true), "GET", "Range", "bytes=0-0")
	if w.Code != 200 || w.Header().Get("Accept-Ranges") != "none" {
		t.Errorf("a document with one validator returned a range: %d %v", w.Code, w.Header())
	}
	coded := send(t, sample(t, false, true), "GET", "Accept-Encoding", "gzip").Body.Bytes()
	w = send(t, sample(t, false, true), "GET", "Accept-Encoding", "gzip", "Range", "bytes=3-6", "If-Range", `"x-gzip"`)
	if w.Code != 206 || !bytes.Equal(w.Body.Bytes(), coded[3:7]) {
		t.Errorf("range of the coded bytes: %d %q", w.Code, w.Body.Bytes())
	}
}

func TestMethods(t *testing.T) {
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "TRACE", "FOO"} {
		w := send(t, sample(t, true, false), method)
		if w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("%s: %d %v", method, w.Code, w.Header())
		}
	}
	w := send(t, sample(t, true, false), "OPTIONS", "Access-Control-Request-Method", "GET")
	if diff := cmp.Diff(http.Header{"Allow": {allow}}, w.Header()); w.Code != 204 || diff != "" {
		t.Errorf("OPTIONS without Origin: %d %s", w.Code, diff)
	}
	w = send(t, sample(t, true, false), "OPTIONS", "Origin", "https://other.test", "Access-Control-Request-Method", "GET")
	want := http.Header{
		"Allow": {allow}, "Access-Control-Allow-Origin": {"*"}, "Access-Control-Allow-Methods": {allow},
		"Access-Control-Allow-Headers": {"If-None-Match, Authorization, Last-Event-ID"}, "Access-Control-Max-Age": {"86400"},
	}
	if diff := cmp.Diff(want, w.Header()); w.Code != 204 || diff != "" {
		t.Errorf("OPTIONS: %d %s", w.Code, diff)
	}
	d := sample(t, true, true)
	d.Header.Set("Cache-Control", "private, max-age=0")
	for _, method := range []string{"GET", "OPTIONS"} {
		if h := send(t, d, method, "Origin", "https://other.test").Header(); h["Access-Control-Allow-Origin"] != nil {
			t.Errorf("%s: CORS on a private document", method)
		}
	}
}

func TestCodedByTheProtocol(t *testing.T) {
	d := sample(t, false, true)
	d.Header.Set("Content-Encoding", "zstd")
	w := send(t, d, "GET", "Accept-Encoding", "gzip", "Range", "bytes=0-3")
	h := w.Header()
	if w.Code != 206 || w.Body.String() != body[:4] || h.Get("ETag") != `"x"` || h.Get("Content-Encoding") != "zstd" || h["Vary"] != nil {
		t.Errorf("%d %q %v", w.Code, w.Body, h)
	}
}

func TestVaryIsPreserved(t *testing.T) {
	d := sample(t, false, true)
	d.Header["Vary"] = []string{"Accept"}
	if got := send(t, d, "GET").Header().Get("Vary"); got != "Accept, Accept-Encoding" {
		t.Error(got)
	}
	d.Header["Vary"] = []string{"accept-encoding", "Accept"}
	if got := send(t, d, "GET").Header()["Vary"]; len(got) != 2 {
		t.Error(got)
	}
}

func TestFutureDate(t *testing.T) {
	d := sample(t, true, true)
	d.Header.Set("Last-Modified", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
	if h := send(t, d, "GET").Header(); h["Last-Modified"] != nil {
		t.Errorf("Last-Modified after Date: %v", h)
	}
}

func TestBadDocuments(t *testing.T) {
	boom := errors.New("boom")
	failing := sample(t, true, true)
	failing.Write = func(context.Context, io.Writer) error { return boom }
	for name, d := range map[string]*millrace.Document{"no validator": {}, "quote": {ETag: `a"b`}, "space": {ETag: "a b"}, "failing": failing} {
		w := httptest.NewRecorder()
		if err := Respond(w, httptest.NewRequest(http.MethodGet, "/", nil), d); err == nil {
			t.Errorf("%s: no error", name)
		} else if name == "failing" && !errors.Is(err, boom) {
			t.Error(err)
		}
		if len(w.Header()) > 0 || w.Body.Len() > 0 {
			t.Errorf("%s: a partial response: %v", name, w.Header())
		}
	}
}
