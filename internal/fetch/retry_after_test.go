package fetch

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// RetryAfter returns the Retry-After of a page and of robots.txt.
func TestRetryAfter(t *testing.T) {
	for name, ignore := range map[string]bool{"a page": true, "robots.txt": false} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, Options{AllowPrivate: true, Dial: raw(t, func(conn net.Conn, _ *http.Request) {
				say(conn, "HTTP/1.1 503 Busy\r\nRetry-After: 7200\r\nContent-Length: 0\r\n\r\n")
			})})
			c.ignoreRobots = ignore
			resp, err := Do(t.Context(), c.HTTP(), get(t, "http://site.example/"))
			if err == nil {
				err = CheckStatus(resp)
			}
			if got := RetryAfter(fmt.Errorf("look: %w", err)); got != 2*time.Hour {
				t.Errorf("%s: %s of %v", name, got, err)
			}
		})
	}
	if got := RetryAfter(&PauseError{Wait: time.Minute}); got != time.Minute {
		t.Error(got)
	}
	if got := RetryAfter(errors.New("other")); got != 0 {
		t.Error(got)
	}
}
