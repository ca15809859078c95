package fetch

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
)

// A download may exceed the size and time limits of a document, up to its own limits. The
// request for robots.txt may not.
func TestDownload(t *testing.T) {
	const size = 256 << 10
	slow := raw(t, func(conn net.Conn, r *http.Request) {
		if r.URL.Path == robotsPath {
			say(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
			return
		}
		say(conn, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size))
		if r.URL.Path == "/stalls" {
			for range 100 {
				if _, err := conn.Write([]byte("x")); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}
		for range 4 {
			time.Sleep(20 * time.Second)
			say(conn, string(noise(size/4)))
		}
	})
	for name, c := range map[string]struct {
		limit   int64 // 0: no download
		timeout time.Duration
		kind    error
		text    string
	}{
		"no download":                   {kind: millrace.ErrTooLarge, text: "body-size"},
		"exactly as large as the limit": {limit: size, timeout: 2 * time.Minute},
		"too large":                     {limit: size - 1, timeout: 2 * time.Minute, kind: millrace.ErrTooLarge, text: "body-size"},
		"stalls":                        {limit: size, timeout: time.Hour, kind: millrace.ErrUnavailable, text: "timeout-rate"},
		"too slow":                      {limit: size, timeout: time.Second, kind: millrace.ErrUnavailable, text: "timeout-total"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cl := obedient(t, Options{MaxBody: 1 << 10, Dial: slow})
				ctx := t.Context()
				if c.limit > 0 {
					ctx = Download(ctx, c.limit, c.timeout)
				}
				resp, err := Do(ctx, cl.HTTP(), get(t, "http://site.example/"+name))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				n, err := io.Copy(io.Discard, resp.Body)
				if c.kind != nil {
					wantErr(t, err, c.kind, c.text)
				} else if n != size || err != nil {
					t.Errorf("%d bytes, %v", n, err)
				}
				_ = resp.Body.Close()
				time.Sleep(2 * time.Minute) // so that the servers end
			})
		})
	}
}

// TestDownloadFromElsewhere verifies that a download limits a response of another transport.
func TestDownloadFromElsewhere(t *testing.T) {
	body := strings.Repeat(prose, 100)
	req := get(t, "http://site.example/file")
	for limit, kind := range map[int64]error{int64(len(body)): nil, 1 << 10: millrace.ErrTooLarge} {
		resp := response(body)
		resp.Request = req.WithContext(Download(t.Context(), limit, 0))
		got, err := ReadBody(resp, 0)
		if kind == nil && (err != nil || string(got) != body) {
			t.Errorf("%d bytes: %v", limit, err)
		} else if kind != nil {
			wantErr(t, err, kind, "body-size")
		}
	}
}
