package fetch

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/millrace/millrace"
)

// encode applies the codings in order.
func encode(t testing.TB, s string, codings ...string) string {
	t.Helper()
	for _, coding := range codings {
		var buf bytes.Buffer
		var w io.WriteCloser
		switch coding {
		case "gzip":
			w = gzip.NewWriter(&buf)
		case "br":
			w = brotli.NewWriterLevel(&buf, 4)
		case "zstd":
			w, _ = zstd.NewWriter(&buf, zstd.WithEncoderConcurrency(1))
		}
		_, err := io.WriteString(w, s)
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		s = buf.String()
	}
	return s
}

func sha256Digest(body string) string {
	sum := sha256.Sum256([]byte(body))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

func sha512Digest(body string) string {
	sum := sha512.Sum512([]byte(body))
	return "sha-512=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// response returns a response that no Client fetched. header is a list of name and value
// pairs.
func response(body string, header ...string) *http.Response {
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: -1, Body: io.NopCloser(strings.NewReader(body))}
	for i := 0; i < len(header); i += 2 {
		resp.Header.Add(header[i], header[i+1])
	}
	return resp
}

const prose = "Water turns the wheel, and the wheel turns the stone.\n"

func TestReadBody(t *testing.T) {
	long := strings.Repeat(prose+"<p>ünï</p>", 5000)
	gz, br, zs := encode(t, long, "gzip"), encode(t, long, "br"), encode(t, long, "zstd")
	latin1 := "caf\xe9 " + prose
	const ce, cd = "Content-Encoding", "Content-Digest"
	for name, c := range map[string]struct {
		resp *http.Response
		want string
		kind error
		text string // of the error
	}{
		"identity":                 {resp: response(long), want: long},
		"identity, labeled":        {resp: response(prose, ce, "identity"), want: prose},
		"empty":                    {resp: response("", ce, "gzip"), want: ""},
		"gzip":                     {resp: response(gz, ce, "gzip"), want: long},
		"x-gzip in capitals":       {resp: response(gz, ce, "X-GZip"), want: long},
		"two gzip members":         {resp: response(gz+gz, ce, "gzip"), want: long + long},
		"br":                       {resp: response(br, ce, "br"), want: long},
		"zstd":                     {resp: response(zs, ce, "zstd"), want: long},
		"zstd, skippable frame":    {resp: response("\x50\x2a\x4d\x18\x01\x00\x00\x00x"+zs, ce, "zstd"), want: long},
		"two zstd frames":          {resp: response(zs+zs, ce, "zstd"), want: long + long},
		"stacked":                  {resp: response(encode(t, long, "gzip", "zstd"), ce, "gzip, zstd"), want: long},
		"stacked, two lines":       {resp: response(encode(t, long, "br", "gzip"), ce, "br", ce, "gzip"), want: long},
		"labeled twice":            {resp: response(gz, ce, "gzip, gzip"), want: long},
		"unlabeled gzip stays":     {resp: response(gz), want: gz},
		"gzip of gzip, one name":   {resp: response(encode(t, gz, "gzip"), ce, "gzip"), want: gz},
		"plain, not gzip":          {resp: response(prose, ce, "gzip"), want: prose},
		"plain, not br":            {resp: response(long, ce, "br"), want: long},
		"short plain text, not br": {resp: response("[1,2]", ce, "br"), want: "[1,2]"},
		"plain, not zstd":          {resp: response(latin1, ce, "zstd"), want: latin1},
		"short br":                 {resp: response(encode(t, "x", "br"), ce, "br"), want: "x"},

		"a charset as the coding": {resp: response(prose, ce, "UTF-8"), want: prose},
		"three codings":           {resp: response(gz, ce, "gzip, br, gzip"), kind: millrace.ErrInvalid, text: "coding"},
		"unknown coding":          {resp: response(gz, ce, "lzma"), kind: millrace.ErrInvalid, text: "coding"},
		"binary, not gzip":        {resp: response(zs, ce, "gzip"), kind: millrace.ErrInvalid, text: "coding"},
		"binary, not zstd":        {resp: response(gz, ce, "zstd"), kind: millrace.ErrInvalid, text: "coding"},
		"binary, not br":          {resp: response("\x00\xff\x00\xff\x01", ce, "br"), kind: millrace.ErrInvalid, text: "coding-truncated"},
		"one byte of gzip":        {resp: response("\x1f", ce, "gzip"), kind: millrace.ErrInvalid, text: "coding"},
		"truncated header":        {resp: response(gz[:5], ce, "gzip"), kind: millrace.ErrInvalid, text: "coding-truncated"},
		"truncated gzip":          {resp: response(gz[:len(gz)/2], ce, "gzip"), kind: millrace.ErrInvalid, text: "coding-truncated"},
		"truncated trailer":       {resp: response(gz[:len(gz)-1], ce, "gzip"), kind: millrace.ErrInvalid, text: "coding-truncated"},
		"truncated br":            {resp: response(br[:len(br)-1], ce, "br"), kind: millrace.ErrInvalid, text: "coding-truncated"},
		"truncated zstd":          {resp: response(zs[:len(zs)-1], ce, "zstd"), kind: millrace.ErrInvalid, text: "coding-truncated"},
		"wrong gzip checksum":     {resp: response(gz[:len(gz)-8]+"xxxx"+gz[len(gz)-4:], ce, "gzip"), kind: millrace.ErrInvalid, text: "coding-broken"},
		"rest after gzip":         {resp: response(gz+"rest of it", ce, "gzip"), kind: millrace.ErrInvalid, text: "coding-broken"},
		"rest after br":           {resp: response(br+"rest", ce, "br"), kind: millrace.ErrInvalid, text: "coding-broken"},
		"rest after zstd":         {resp: response(zs+"rest", ce, "zstd"), kind: millrace.ErrInvalid, text: "coding-broken"},

		"digest":                           {resp: response(prose, cd, sha256Digest(prose)), want: prose},
		"Repr-Digest":                      {resp: response(prose, "Repr-Digest", sha256Digest(prose)), want: prose},
		"another Repr-Digest":              {resp: response(prose, "Repr-Digest", sha256Digest("x")), kind: millrace.ErrInvalid, text: "digest"},
		"Content-Digest is first":          {resp: response(prose, "Repr-Digest", sha256Digest("x"), cd, sha256Digest(prose)), want: prose},
		"digest of coded bytes":            {resp: response(gz, ce, "gzip", cd, sha256Digest(gz)), want: long},
		"both digests":                     {resp: response(br, ce, "br", cd, sha256Digest(br)+", "+sha512Digest(br)), want: long},
		"unknown algorithm":                {resp: response(prose, cd, "md5=:AAAA:, "+sha256Digest(prose)), want: prose},
		"digest with parameter":            {resp: response(prose, cd, sha512Digest(prose)+";a=1"), want: prose},
		"digest without padding":           {resp: response(prose, cd, strings.Replace(sha256Digest(prose), "=:", ":", 1)), want: prose},
		"the last digest of a name counts": {resp: response(prose, cd, sha256Digest("x"), cd, sha256Digest(prose)), want: prose},
		"malformed digest":                 {resp: response(prose, cd, "sha-256=AAAA"), want: prose},
		"digest of wrong length":           {resp: response(prose, cd, "sha-256=:AAAA:"), want: prose},
		"wrong sha-256":                    {resp: response(prose, cd, sha256Digest("x")), kind: millrace.ErrInvalid, text: "digest"},
		"wrong sha-512":                    {resp: response(prose, cd, sha256Digest(prose)+","+sha512Digest("x")), kind: millrace.ErrInvalid, text: "digest"},
		"digest of decoded bytes":          {resp: response(gz, ce, "gzip", cd, sha256Digest(long)), want: long},
		"digest without bytes":             {resp: response(gz, ce, "gzip", cd, sha256Digest("")), kind: millrace.ErrInvalid, text: "digest"},
		"nothing, uncoded":                 {resp: response(prose, cd, sha256Digest("")), kind: millrace.ErrInvalid, text: "digest"},
		"digest, br":                       {resp: response(br, ce, "br", cd, sha256Digest("x")), kind: millrace.ErrInvalid, text: "digest"},
		"digest, zstd":                     {resp: response(zs, ce, "zstd", cd, sha256Digest("x")), kind: millrace.ErrInvalid, text: "digest"},
		"digest of empty":                  {resp: response("", cd, sha256Digest("x")), kind: millrace.ErrInvalid, text: "digest"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadBody(c.resp, 0)
			if c.kind != nil {
				wantErr(t, err, c.kind, c.text)
				if _, ok := errors.AsType[*BodyError](err); !ok || got != nil {
					t.Errorf("%d bytes, %T", len(got), err)
				}
			} else if err != nil || string(got) != c.want {
				t.Errorf("%d bytes, want %d: %v", len(got), len(c.want), err)
			}
		})
	}
}

// TestTruncated verifies that no prefix of a coded body is accepted as the whole.
func TestTruncated(t *testing.T) {
	text := strings.Repeat(prose, 3) + string(noise(100)) + strings.Repeat("x", 300)
	for _, coding := range []string{"gzip", "br", "zstd"} {
		body := encode(t, text, coding)
		for n := 1; n < len(body); n++ {
			got, err := ReadBody(response(body[:n], "Content-Encoding", coding), 0)
			if !errors.Is(err, millrace.ErrInvalid) {
				t.Errorf("%s, %d of %d bytes: %q, %v", coding, n, len(body), got, err)
			}
		}
	}
}

// TestReadBodyWithout verifies that headers about a body are ignored if there is no body.
func TestReadBodyWithout(t *testing.T) {
	for name, change := range map[string]func(*http.Response){
		"HEAD":    func(r *http.Response) { r.Request = &http.Request{Method: http.MethodHead} },
		"304":     func(r *http.Response) { r.StatusCode = http.StatusNotModified },
		"no Body": func(r *http.Response) { r.Body, r.StatusCode = nil, http.StatusNoContent },
	} {
		resp := response("", "Content-Encoding", "unheard-of", "Content-Digest", sha256Digest("x"))
		resp.ContentLength = 100
		change(resp)
		if b, err := ReadBody(resp, 0); err != nil || len(b) != 0 {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	resp := response("decoded by a transport", "Content-Digest", sha256Digest("coded"))
	resp.Uncompressed = true
	if _, err := ReadBody(resp, 0); err != nil {
		t.Error(err)
	}
	resp = response("short")
	resp.ContentLength = 6
	_, err := ReadBody(resp, 0)
	wantErr(t, err, millrace.ErrUnavailable, "body-truncated")
}

func TestBodyLimits(t *testing.T) {
	zeros := strings.Repeat("\x00", 3<<20)
	nothing := strings.Repeat(encode(t, "", "gzip"), 1<<18)
	c, url := loopback(t, func(w http.ResponseWriter, r *http.Request) {
		coding := r.URL.Query().Get("coding")
		body := map[string]string{
			"/zeros": zeros, "/kilo": strings.Repeat("a", 1000), "/noise": string(noise(2 << 20)), "/mega": zeros[:1<<20],
		}[r.URL.Path]
		switch coding {
		case "":
		case "nothing": // the intermediate coding expands to an empty body
			body, coding = encode(t, nothing, "gzip"), "gzip, gzip"
		case "gzip, zstd":
			body = encode(t, body, "gzip", "zstd")
		default:
			body = encode(t, body, coding)
		}
		w.Header().Set("Content-Encoding", coding)
		if r.URL.Query().Has("length") {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		}
		_, _ = io.WriteString(w, body)
	})
	c.limits.body = 4 << 20
	for path, want := range map[string]struct {
		limit int64
		n     int
		text  string
	}{
		"/kilo":                    {limit: 1000, n: 1000},
		"/kilo?length":             {limit: 0, n: 1000},
		"/kilo?coding=br":          {limit: 1000, n: 1000},
		"/kilo?":                   {limit: 999, text: "body-size"},
		"/kilo?coding=zstd":        {limit: 999, text: "body-size"},
		"/mega?coding=gzip":        {n: 1 << 20}, // below ratioFloor
		"/noise":                   {n: 2 << 20},
		"/noise?coding=gzip":       {n: 2 << 20},
		"/noise?limit":             {limit: 1 << 40, n: 2 << 20},
		"/zeros":                   {n: 3 << 20},
		"/zeros?coding=gzip":       {text: "coding-ratio"},
		"/zeros?coding=br":         {text: "coding-ratio"},
		"/zeros?coding=zstd":       {text: "coding-ratio"},
		"/zeros?coding=gzip,+zstd": {text: "coding-ratio"},
		"/?coding=nothing":         {text: "coding-ratio"},
	} {
		resp, err := Do(t.Context(), c.HTTP(), get(t, url+path))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadBody(resp, want.limit)
		if want.text != "" {
			wantErr(t, err, millrace.ErrTooLarge, want.text)
			if e, ok := errors.AsType[*BodyError](err); !ok || !strings.HasPrefix(e.URL, url) {
				t.Errorf("%s: %v", path, err)
			}
		} else if err != nil || len(got) != want.n {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
	}

	// The client's limit also applies to coded bytes and to raw readers.
	c.limits.body = 1 << 20
	for path, text := range map[string]string{"/zeros": "body-size", "/zeros?length": "body-size"} {
		resp, err := Do(t.Context(), c.HTTP(), get(t, url+path))
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		wantErr(t, err, millrace.ErrTooLarge, text)
		if n > 1<<20 {
			t.Errorf("%s: read %d bytes", path, n)
		}
	}
}

// noise returns n incompressible bytes.
func noise(n int) []byte {
	b := make([]byte, 0, n+sha256.Size)
	sum := sha256.Sum256(nil)
	for len(b) < n {
		b = append(b, sum[:]...)
		sum = sha256.Sum256(sum[:])
	}
	return b[:n]
}

func TestZstdWindow(t *testing.T) {
	var buf bytes.Buffer
	w, _ := zstd.NewWriter(&buf, zstd.WithWindowSize(16<<20), zstd.WithEncoderConcurrency(1))
	for range 3 {
		_, _ = w.Write(noise(8 << 20))
	}
	_ = w.Close()
	_, err := ReadBody(response(buf.String(), "Content-Encoding", "zstd"), 0)
	wantErr(t, err, millrace.ErrInvalid, "coding-broken")
}

func TestDecodeStreams(t *testing.T) {
	content := noise(300 << 10)
	c, url := loopback(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "zstd")
		body := encode(t, string(content), "zstd")
		w.Header().Set("Content-Digest", sha512Digest(body))
		_, _ = io.WriteString(w, body)
	})
	resp, err := Do(t.Context(), c.HTTP(), get(t, url))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Decode(resp)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("after the end: %d, %v", n, err)
	}
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Error(err)
	}
	if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("after Close: %d, %v", n, err)
	}
}

// TestLyingLength reads bodies that a connection cuts short or extends.
func TestLyingLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fake time: each failure delays the host
		c := newClient(t, Options{Dial: raw(t, func(conn net.Conn, r *http.Request) {
			switch r.URL.Path {
			case "/short":
				say(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfive.")
			case "/chunked":
				say(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfive.\r\n")
			case "/coded":
				say(conn, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n", encode(t, prose, "gzip")[:30])
			case "/long":
				say(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nfive. and more")
			}
		})})
		for path, text := range map[string]string{
			"/short":   "connection-closed",
			"/chunked": "connection-closed",
			"/coded":   "connection-closed",
		} {
			_, err := fetchBody(t, c, "http://site.example"+path)
			wantErr(t, err, millrace.ErrUnavailable, text)
			if _, ok := errors.AsType[*BodyError](err); !ok || errors.Is(err, millrace.ErrInvalid) {
				t.Errorf("%s: %T", path, err)
			}
		}
		if body, err := fetchBody(t, c, "http://site.example/long"); err != nil || body != "five." {
			t.Errorf("%q, %v", body, err)
		}
	})
}
