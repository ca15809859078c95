package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
)

func TestDo(t *testing.T) {
	const ok, busy, slow = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 429 x\r\nContent-Length: 0\r\nRetry-After: %s\r\n\r\n"
	date := func(d time.Duration) string { // fake time always starts at the same moment
		return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(d).Format(http.TimeFormat)
	}
	for name, c := range map[string]struct {
		method   string
		body     string
		deadline time.Duration
		answers  []string // "" breaks the connection; the last one repeats
		asked    int
		took     time.Duration
		text     string // of the error
		after    time.Duration
	}{
		"at once":             {answers: []string{ok}, asked: 1},
		"once busy":           {answers: []string{busy, ok}, asked: 2, took: time.Second},
		"thrice busy":         {answers: []string{busy, busy, busy, ok}, asked: 4, took: 7 * time.Second},
		"always busy":         {answers: []string{busy}, asked: 4, took: 7 * time.Second, text: "http-503"},
		"502, 504":            {answers: []string{strings.Replace(busy, "503", "502", 1), strings.Replace(busy, "503", "504", 1), ok}, asked: 3, took: 3 * time.Second},
		"500 is final":        {answers: []string{strings.Replace(busy, "503", "500", 1), ok}, asked: 1, text: "http-500"},
		"broken":              {answers: []string{"", ok}, asked: 2, took: time.Second},
		"broken in header":    {answers: []string{"HTTP/1.1 200 OK\r\n", ok}, asked: 2, took: time.Second},
		"always broken":       {answers: []string{""}, asked: 4, took: 7 * time.Second, text: "connection-closed"},
		"HEAD":                {method: "HEAD", answers: []string{busy, ok}, asked: 2, took: time.Second},
		"POST":                {method: "POST", body: "x", answers: []string{busy, ok}, asked: 1, text: "http-503"},
		"Retry-After":         {answers: []string{fmt.Sprintf(slow, "20"), ok}, asked: 2, took: 20 * time.Second},
		"Retry-After, date":   {answers: []string{fmt.Sprintf(slow, date(25*time.Second)), ok}, asked: 2, took: 25 * time.Second},
		"Retry-After, past":   {answers: []string{fmt.Sprintf(slow, date(-time.Hour)), ok}, asked: 2, took: time.Second},
		"Retry-After, none":   {answers: []string{fmt.Sprintf(slow, "soon"), ok}, asked: 2, took: time.Second},
		"Retry-After, minus":  {answers: []string{fmt.Sprintf(slow, "-5"), ok}, asked: 2, took: time.Second},
		"Retry-After, long":   {answers: []string{fmt.Sprintf(slow, "120"), ok}, asked: 1, text: "http-429", after: 2 * time.Minute},
		"Retry-After, absurd": {answers: []string{fmt.Sprintf(slow, "99999999999999999999"), ok}, asked: 2, took: time.Second},
		"deadline":            {deadline: 2500 * time.Millisecond, answers: []string{busy}, asked: 2, took: time.Second, text: "http-503"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				cl := newClient(t, Options{
					Rand: func() float64 { return 0 },
					Dial: raw(t, func(conn net.Conn, r *http.Request) {
						answer := c.answers[min(asked, len(c.answers)-1)]
						asked++
						say(conn, strings.Replace(answer, "\r\n", "\r\nConnection: close\r\n", 1))
					}),
				})
				ctx := t.Context()
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				req, err := http.NewRequestWithContext(ctx, c.method, "http://site.example/x", nil)
				if err != nil {
					t.Fatal(err)
				}
				if c.body != "" {
					req, _ = http.NewRequestWithContext(ctx, c.method, "http://site.example/x", strings.NewReader(c.body))
				}
				began := time.Now()
				resp, err := Do(ctx, cl.HTTP(), req)
				if err == nil {
					err = CheckStatus(resp)
					_ = resp.Body.Close()
				}
				if took := time.Since(began); took != c.took || asked != c.asked {
					t.Errorf("%d requests in %s, want %d in %s", asked, took, c.asked, c.took)
				}
				if s := cl.Stats(); s.Retries != int64(c.asked-1) || s.Requests != int64(c.asked) {
					t.Errorf("stats %+v", s)
				}
				if c.text == "" {
					if err != nil {
						t.Error(err)
					}
					return
				}
				wantErr(t, err, millrace.ErrUnavailable, c.text)
				if status, ok := errors.AsType[*StatusError](err); c.after > 0 && (!ok || status.RetryAfter != c.after) {
					t.Errorf("%#v", err)
				}
			})
		})
	}
}

func TestDoCanceledWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Options{Dial: raw(t, func(conn net.Conn, _ *http.Request) { say(conn, "HTTP/1.1 503 x\r\n\r\n") })})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		began := time.Now()
		_, err := Do(ctx, c.HTTP(), get(t, "http://site.example/"))
		wantErr(t, err, context.Canceled, "")
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("took %s", took)
		}
	})
}

// TestDoAfterReset uses a TCP reset of a real connection.
func TestDoAfterReset(t *testing.T) {
	var asked atomic.Int64
	c, url := loopback(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			conn, _, _ := http.NewResponseController(w).Hijack()
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	})
	c.rand = func() float64 { return 1 }
	_, err := fetchBody(t, c, url)
	if s := c.Stats(); err != nil || s.Requests != 2 || s.Retries != 1 || s.Failed != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// A refused connection is not retried, since it is not a temporary failure.
func TestDoGivesUpAtOnce(t *testing.T) {
	c := newClient(t, Options{AllowPrivate: true})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	_, err = Do(t.Context(), c.HTTP(), get(t, "http://"+l.Addr().String()))
	wantErr(t, err, millrace.ErrUnavailable, "connection-refused")
	if s := c.Stats(); s.Requests != 1 {
		t.Errorf("stats %+v", s)
	}
}

func TestBackoff(t *testing.T) {
	for attempt, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		seen := make(map[time.Duration]bool)
		for range 100 {
			d := backoff(attempt, nil)
			if d < wait/2 || d > wait {
				t.Errorf("attempt %d waits %s", attempt, d)
			}
			seen[d] = true
		}
		if len(seen) < 50 {
			t.Errorf("attempt %d: %d different waits of 100", attempt, len(seen))
		}
	}
}

func TestCheckStatus(t *testing.T) {
	for code, want := range map[int]error{
		200: nil, 204: nil, 206: nil,
		304: millrace.ErrUnmodified,
		404: millrace.ErrNotFound, 410: millrace.ErrNotFound,
		401: millrace.ErrForbidden, 403: millrace.ErrForbidden,
		429: millrace.ErrUnavailable, 500: millrace.ErrUnavailable, 503: millrace.ErrUnavailable,
		301: millrace.ErrInvalid, 400: millrace.ErrInvalid, 418: millrace.ErrInvalid,
	} {
		resp := response("", "Retry-After", "7")
		resp.StatusCode = code
		resp.Request = get(t, "http://site.example/page")
		err := CheckStatus(resp)
		if want == nil {
			if err != nil {
				t.Errorf("%d: %v", code, err)
			}
			continue
		}
		wantErr(t, err, want, fmt.Sprint("http-", code))
		if e, ok := errors.AsType[*StatusError](err); !ok || e.URL != "http://site.example/page" || e.RetryAfter != 7*time.Second {
			t.Errorf("%d: %+v", code, e)
		}
	}
}
