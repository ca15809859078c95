package fetch

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
)

// A stream may last longer than any other response. It ends after idle without a byte, or at
// its limit.
func TestStream(t *testing.T) {
	for _, tt := range []struct {
		name string
		gap  time.Duration // between two parts of 10 bytes
		idle time.Duration
		want error
		n    int
		code string
	}{
		{"goes on", 50 * time.Second, time.Minute, millrace.ErrTooLarge, 1000, "body-size"},
		{"falls silent", 61 * time.Second, time.Minute, millrace.ErrUnavailable, 10, "timeout-idle"},
		{"without Stream", 31 * time.Second, 0, millrace.ErrUnavailable, 10, "timeout-idle"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, Options{AllowPrivate: true, Dial: raw(t, func(conn net.Conn, _ *http.Request) {
				say(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
				for range 200 {
					if _, err := conn.Write([]byte(strings.Repeat("x", 10))); err != nil {
						return
					}
					time.Sleep(tt.gap)
				}
			})})
			resp, err := Do(Stream(t.Context(), 1000, tt.idle), c.HTTP(), get(t, "http://site.example/"))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if !errors.Is(err, tt.want) || millrace.ErrorCode(err) != tt.code || len(b) > 1000 || len(b) < tt.n-10 {
				t.Errorf("%s: %d bytes, %v, code %q, want %q", tt.name, len(b), err, millrace.ErrorCode(err), tt.code)
			}
			time.Sleep(3 * time.Hour) // so that the server ends
		})
	}
}
