package openfeeder

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

// A stream requested before the first edition starts when the edition is published. An invalid
// start position is reported only then.
func TestEventsEarly(t *testing.T) {
	s := openShop(t)
	l := &stage{s: s, moved: make(chan struct{})}
	srv := httptest.NewServer(http.HandlerFunc(l.serve))
	t.Cleanup(srv.Close) // waits for the streams, so it runs after them
	resp, next := stream(t, srv.URL, "", "")
	_, wrong := stream(t, srv.URL, "", token{T: "2020-01-01T00:00:00Z", N: new(uint64), E: "another"}.String())
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-OpenFeeder") != version {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	s.apply("one", "+/a")
	l.publish()
	if got, id := words(t, next, 1); got[0] != "ready" || id == "" {
		t.Errorf("%q %s", got, id)
	}
	s.apply("two", "+/b")
	l.publish()
	if got, _ := words(t, next, 1); got[0] != "added /b" {
		t.Errorf("%q", got)
	}
	if h, err := wrong(); err != nil || h.name != "error" || !strings.Contains(h.data, resyncRequired) {
		t.Errorf("%+v %v", h, err)
	}
	if h, err := wrong(); !errors.Is(err, io.EOF) {
		t.Errorf("after the error: %+v %v", h, err)
	}
	early := &stage{s: s, moved: make(chan struct{})}
	w := httptest.NewRecorder()
	early.serve(w, httptest.NewRequest(http.MethodHead, eventsPath, nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("HEAD: %d", w.Code)
	}
	early.end()
	w = httptest.NewRecorder()
	early.serve(w, httptest.NewRequest(http.MethodGet, eventsPath, nil))
	if !strings.HasSuffix(w.Body.String(), string(s.pub.finalEvent(millrace.ErrUnavailable))) {
		t.Errorf("at the end: %s", w.Body)
	}
}

// If the log cannot be read, the streams end, but not the process. The gateway gets the error
// once.
func TestEventsBroken(t *testing.T) {
	s := openShop(t)
	s.apply("one", "+/a")
	l := newStage(s)
	faults := make(chan error, 2)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { faults <- s.pub.Serve(w, r, l) }))
	t.Cleanup(srv.Close)
	_, one := stream(t, srv.URL, "", "")
	_, two := stream(t, srv.URL, "", "")
	words(t, one, 1)
	words(t, two, 1)
	s.pass(time.Second)
	s.apply("two", "+/b")
	v := s.view()
	l.mu.Lock()
	l.v = &read{broken{v}, &l.readings}
	close(l.moved)
	l.moved = make(chan struct{})
	l.mu.Unlock()
	for _, next := range []func() (heard, error){one, two} {
		if h, err := next(); err != nil || h.name != "error" || !strings.Contains(h.data, serverError) || strings.Contains(h.data, "secret") {
			t.Errorf("%+v %v", h, err)
		}
	}
	first, second := <-faults, <-faults
	if (first == nil) == (second == nil) || !strings.Contains(fmt.Sprint(first, second), "secret") {
		t.Errorf("the gateway received %v and %v", first, second)
	}
}

// broken is a view whose log panics.
type broken struct{ millrace.View }

func (broken) Changes(context.Context, millrace.Cursor) iter.Seq2[millrace.Change, error] {
	panic("secret")
}

// A client whose key is revoked gets the reason before the stream ends.
func TestEventsRevoked(t *testing.T) {
	s := openShop(t)
	l := newStage(s)
	revoke := make(chan context.CancelCauseFunc, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		revoke <- cancel
		l.serve(w, r.WithContext(ctx))
	}))
	defer srv.Close()
	defer l.end()
	_, next := stream(t, srv.URL, "", "")
	words(t, next, 1)
	(<-revoke)(fmt.Errorf("%w: revoked", millrace.ErrForbidden))
	if h, err := next(); err != nil || h.name != "error" || !strings.Contains(h.data, authRequired) {
		t.Errorf("%+v %v", h, err)
	}
	if h, err := next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %+v %v", h, err)
	}
}

// pipes is a listener of connections that buffer nothing.
type pipes struct {
	net.Listener
	conns chan net.Conn
}

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

// A client that stops reading gets a SLOW_CONSUMER error. When it reconnects, it gets all
// missed events.
func TestEventsSlowClient(t *testing.T) {
	s := openShop(t)
	l := newStage(s)
	conns := make(chan net.Conn)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(l.serve))
	tcp := srv.Listener
	defer tcp.Close()
	srv.Listener = pipes{tcp, conns}
	srv.Start()
	defer srv.Close()
	defer close(conns)
	defer l.end()
	conn, far := net.Pipe()
	defer conn.Close()
	conns <- far
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, eventsPath, nil)
	if err := r.Write(conn); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	next := hear(resp.Body)
	words(t, next, 1) // the ready event

	const many = 100
	e, number := &s.pub.events, 0
	publish := func(n int) {
		t.Helper()
		s.pass(time.Second)
		var batch []string
		for range n {
			number++
			batch = append(batch, fmt.Sprintf("+/%d", number))
		}
		s.apply(strings.Repeat("long ", 70), batch...)
		l.publish()
		seq := s.view().Site().Seq
		for at := uint64(0); at < seq; time.Sleep(time.Millisecond) {
			e.mu.Lock()
			at = e.at
			e.mu.Unlock()
		}
	}
	publish(many)
	_, id := words(t, next, 1) // the other events have been sent, but are not read yet
	for range 2 {
		publish(1)
		e.mu.Lock()
		e.size += maxEventBytes // simulates more stored events
		e.mu.Unlock()
	}
	publish(1)
	received := 1
	for {
		h, err := next()
		if err != nil {
			t.Fatalf("%v after %d events", err, received)
		}
		if h.name == "error" {
			if !strings.Contains(h.data, `"`+slowConsumer+`"`) || !strings.Contains(h.data, "Last-Event-ID") {
				t.Errorf("it gets %s", h.data)
			}
			break
		}
		id = h.id
		received++
	}
	if received != many {
		t.Errorf("%d of %d events were received", received, many)
	}
	if h, err := next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v %v", h, err)
	}
	again := httptest.NewServer(http.HandlerFunc(l.serve))
	defer again.Close()
	defer l.end()
	_, next = stream(t, again.URL, "", id)
	if got, _ := words(t, next, 4); got[1] != fmt.Sprintf("added /%d", many+1) || got[3] != fmt.Sprintf("added /%d", many+3) {
		t.Errorf("again: %q", got)
	}
}

// After a page is deleted, a client that starts at an earlier position does not get the page's
// events. A client that has received them gets the deletion.
func TestEventsGone(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.apply("one", "+/a")
	l := newStage(s)
	srv := httptest.NewServer(http.HandlerFunc(l.serve))
	t.Cleanup(srv.Close) // waits for the streams, so it runs after them
	defer l.end()
	_, all := stream(t, srv.URL, "", "")
	_, start := words(t, all, 1)
	for i, edit := range []string{"+/secret", "+/b", "-/secret", "+/c"} {
		s.pass(time.Minute)
		s.apply(fmt.Sprint("then ", i), edit)
		l.publish()
		kind := map[byte]string{'+': "added ", '-': "deleted "}[edit[0]]
		if got, _ := words(t, all, 1); got[0] != kind+edit[1:] {
			t.Errorf("%s: %q", edit, got)
		}
	}
	_, again := stream(t, srv.URL, "", start)
	if got, _ := words(t, again, 4); !slices.Equal(got, []string{"ready", "added /b", "deleted /secret", "added /c"}) {
		t.Errorf("again: %q", got)
	}
}
