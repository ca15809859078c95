package openfeeder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/pipenet"
	"github.com/millrace/millrace/protocol"
)

// eventSite is a site with events on an in-memory network.
type eventSite struct {
	about  string // discovery document
	listen func(w http.ResponseWriter, r *http.Request, n int)

	mu    sync.Mutex
	asked []string // Last-Event-ID of each connection
	at    []time.Duration
	began time.Time
}

const eventsAbout = `{"version":"1.0","site":{"name":"x","url":"http://site.example/","language":"en"},"feed":{"endpoint":"/openfeeder","type":"paginated"},"capabilities":[],"events":{"endpoint":"/events","type":"text/event-stream"}}`

func (s *eventSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/openfeeder.json":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, s.about)
	case "/events":
		s.mu.Lock()
		s.asked, s.at = append(s.asked, r.Header.Get("Last-Event-ID")), append(s.at, time.Since(s.began))
		n := len(s.asked)
		s.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		s.listen(w, r, n)
	default:
		http.NotFound(w, r)
	}
}

// wake listens to a site for a while. It returns the positions with which the caller was
// notified, and the error.
func (s *eventSite) wake(t *testing.T, position string, long time.Duration) (notified []string, err error) {
	t.Helper()
	srv := &http.Server{Handler: s}
	client := fetch.New(&fetch.Options{AllowPrivate: true, Delay: -1, Dial: pipenet.Serve(srv).Dial, Rand: func() float64 { return 0 }})
	s.began = time.Now()
	if s.about == "" {
		s.about = eventsAbout
	}
	r := NewReader(client.HTTP(), "http://site.example/", &ReaderOptions{ReaderOptions: protocol.ReaderOptions{}})
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	err = r.(*reader).Notify(ctx, position, func(position string) { notified = append(notified, position) })
	client.CloseIdleConnections()
	_ = srv.Close()
	synctest.Wait() // waits for connections that are still being opened
	return notified, err
}

func sendEvent(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

// Changes notify the caller with their IDs; events about the stream do not. If a connection
// breaks, the next one resumes at the last ID.
func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &eventSite{listen: func(w http.ResponseWriter, r *http.Request, n int) {
			switch n {
			case 1:
				sendEvent(w, "\ufeffretry: 5000\nevent: ready\nid: 1\ndata: {}\n\n")
				time.Sleep(14 * time.Second)
				sendEvent(w, ":\n\n")
				time.Sleep(14 * time.Second)
				sendEvent(w, "event: added\r\nid: 2\r\ndata: {}\r\n\r\nevent: updated\rid: 3\rdata: a\rdata: b\r\r")
			case 2:
				sendEvent(w, "id\nid: 4\nunknown: x\ndata\n\nid: 5\ndata: not finished\n")
			default:
				<-r.Context().Done()
			}
		}}
		notified, err := s.wake(t, "", time.Minute)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if d := cmp.Diff([]string{"1", "2", "3", "4"}, notified); d != "" {
			t.Errorf("woken by:\n%s", d)
		}
		if d := cmp.Diff([]string{"", "3", "5"}, s.asked); d != "" {
			t.Errorf("connected at:\n%s", d)
		}
		if wait := s.at[1] - s.at[0]; wait < 30*time.Second || wait > 34*time.Second {
			t.Errorf("the second connection came after %s", wait)
		}
	})
}

// The first connection resumes at the listener's position. The caller is only notified of later
// changes.
func TestWakeFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &eventSite{listen: func(w http.ResponseWriter, r *http.Request, _ int) {
			sendEvent(w, "event: ready\nid: 7\ndata: {}\n\n:\n\n")
			time.Sleep(10 * time.Second)
			sendEvent(w, "id: 8\nevent: deleted\ndata: {}\n\n")
			<-r.Context().Done()
		}}
		notified, _ := s.wake(t, "7", 20*time.Second)
		if d := cmp.Diff([]string{"8"}, notified); d != "" || s.asked[0] != "7" {
			t.Errorf("connected at %q, woken by:\n%s", s.asked, d)
		}
	})
}

// If the log does not reach back to the position, the listener drops it and notifies the caller.
func TestWakeResync(t *testing.T) {
	for name, refuse := range map[string]func(w http.ResponseWriter){
		"refused": func(w http.ResponseWriter) { w.WriteHeader(http.StatusGone) },
		"told":    func(w http.ResponseWriter) { sendEvent(w, string(stop(resyncRequired, "read the index"))) },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &eventSite{listen: func(w http.ResponseWriter, r *http.Request, n int) {
				if n == 1 {
					refuse(w)
					return
				}
				sendEvent(w, "event: ready\nid: 9\ndata: {}\n\n")
				<-r.Context().Done()
			}}
			notified, _ := s.wake(t, "old", 20*time.Second)
			if d := cmp.Diff([]string{"9"}, notified); d != "" || !slices.Equal(s.asked, []string{"old", ""}) {
				t.Errorf("%s: connected at %q, woken by:\n%s", name, s.asked, d)
			}
		})
	}
}

// A server cannot exhaust a listener's memory or processor, or make it reconnect without
// delay.
func TestWakeHostile(t *testing.T) {
	line := strings.Repeat("x", 32<<10)
	for name, listen := range map[string]func(w http.ResponseWriter, r *http.Request, n int){
		"closes at once": func(http.ResponseWriter, *http.Request, int) {},
		"endless line": func(w http.ResponseWriter, r *http.Request, _ int) {
			for r.Context().Err() == nil {
				sendEvent(w, line)
			}
		},
		"endless comments": func(w http.ResponseWriter, r *http.Request, _ int) {
			for r.Context().Err() == nil {
				sendEvent(w, ":"+line+"\n")
			}
		},
		"endless data": func(w http.ResponseWriter, r *http.Request, _ int) {
			for r.Context().Err() == nil {
				sendEvent(w, "data:"+line+"\n")
			}
		},
		"says nothing": func(w http.ResponseWriter, r *http.Request, _ int) {
			sendEvent(w, ":\n\n")
			<-r.Context().Done()
		},
		"overloaded":    func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusServiceUnavailable) },
		"retry at once": func(w http.ResponseWriter, _ *http.Request, _ int) { sendEvent(w, "retry: 0\n\n") },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &eventSite{listen: listen}
			_, err := s.wake(t, "1", 20*time.Minute)
			// Each attempt may send up to four requests.
			if n := len(s.asked); !errors.Is(err, context.DeadlineExceeded) || n < 2 || n > 44 {
				t.Errorf("%s: %d connections in 20 minutes: %v", name, n, err)
			}
		})
	}
}

// The listener reconnects to a server that was down for a day.
func TestWakeDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := time.Now().Add(24 * time.Hour)
		s := &eventSite{listen: func(w http.ResponseWriter, r *http.Request, n int) {
			if time.Now().Before(up) && n > 1 {
				w.Header().Set("Retry-After", "600")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			sendEvent(w, fmt.Sprintf("id: %d\ndata: {}\n\n", n))
			if time.Now().After(up) {
				<-r.Context().Done()
			}
		}}
		notified, _ := s.wake(t, "", 24*time.Hour+11*time.Minute)
		if len(notified) < 2 || len(s.asked) > 24*6*2+20 {
			t.Errorf("%d connections, notified of %q", len(s.asked), notified)
		}
	})
}

// Sites without events, or that refuse events to this client.
func TestWakeNowhere(t *testing.T) {
	none := func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusNotFound) }
	for _, tt := range []struct {
		name, about string
		listen      func(w http.ResponseWriter, r *http.Request, n int)
		want        error
	}{
		{"no events", strings.Replace(eventsAbout, `"events"`, `"others"`, 1), none, millrace.ErrNotFound},
		{"no document", "{", none, millrace.ErrInvalid},
		{"nothing there", eventsAbout, none, millrace.ErrNotFound},
		{"another site", strings.Replace(eventsAbout, `"/events"`, `"http://other.example/events"`, 1), none, millrace.ErrForbidden},
		{"no more", eventsAbout, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusNoContent) }, millrace.ErrNotFound},
		{"a page", eventsAbout, func(w http.ResponseWriter, _ *http.Request, _ int) { w.Header().Set("Content-Type", "text/html") }, millrace.ErrInvalid},
		{"a key", eventsAbout, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusUnauthorized) }, millrace.ErrForbidden},
		{"a key no more", eventsAbout, func(w http.ResponseWriter, _ *http.Request, _ int) { sendEvent(w, string(stop(authRequired, "no"))) }, millrace.ErrForbidden},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &eventSite{about: tt.about, listen: tt.listen}
			if _, err := s.wake(t, "1", time.Hour); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v", tt.name, err)
			}
		})
	}
}

// The result does not depend on how a stream is split into reads, and stays within its limits.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: added\nid: 1\ndata: {}\n\n:\n\nretry: 10\n\n"))
	f.Add([]byte("\xef\xbb\xbfid: 1\r\ndata\r\n\r\ndata: x\r\revent: error\ndata: {\"error\":{\"code\":\"SERVER_ERROR\",\"message\":\"x\"}}\n\n"))
	f.Add([]byte("id: a\x00b\ndata: \xff\n\n\xef\xbbid: 1\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		read := func(r io.Reader) (notified []string, l *eventReader, err error) {
			l = &eventReader{retry: firstRetry, fresh: true, notify: func(position string) { notified = append(notified, position) }}
			err = l.read(r)
			return notified, l, err
		}
		one, l, err := read(bytes.NewReader(stream))
		if err == nil || len(l.lastID) > maxID || l.retry < time.Second || l.retry > maxRetry || strings.ContainsAny(l.lastID, "\x00\r\n") {
			t.Errorf("position %q, retry %s: %v", l.lastID, l.retry, err)
		}
		other, m, _ := read(iotest.OneByteReader(bytes.NewReader(stream)))
		if !slices.Equal(one, other) || l.lastID != m.lastID || l.retry != m.retry {
			t.Errorf("in one read: %q at %q; byte by byte: %q at %q", one, l.lastID, other, m.lastID)
		}
		if len(one) > bytes.Count(stream, []byte("\n"))+bytes.Count(stream, []byte("\r")) {
			t.Errorf("woken by %q", one)
		}
	})
}
