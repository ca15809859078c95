package openfeeder

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/kit"
)

// stage is a [millrace.Live] over a shop.
type stage struct {
	s *shop

	mu       sync.Mutex
	v        millrace.View
	moved    chan struct{}
	ending   bool
	readings atomic.Int64 // number of times the log was read

	urls []string
	gone bool
	done millrace.Counts
	err  error
}

func newStage(s *shop) *stage {
	l := &stage{s: s, moved: make(chan struct{})}
	l.publish()
	return l
}

// publish publishes the current state of the shop.
func (l *stage) publish() {
	v := l.s.view()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.v = &read{v, &l.readings}
	close(l.moved)
	l.moved = make(chan struct{})
}

func (l *stage) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending = true
	close(l.moved)
	l.moved = make(chan struct{})
}

// read is a view that counts how often its log is read.
type read struct {
	millrace.View
	n *atomic.Int64
}

func (r *read) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	r.n.Add(1)
	return r.View.Changes(ctx, since)
}

func (l *stage) View() (millrace.View, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.v == nil {
		return nil, millrace.ErrUnavailable
	}
	return l.v, nil
}

func (l *stage) Wait(ctx context.Context, after uint64) (millrace.View, error) {
	for {
		l.mu.Lock()
		v, moved, ending := l.v, l.moved, l.ending
		l.mu.Unlock()
		switch {
		case ending:
			return nil, millrace.ErrUnavailable
		case v != nil && v.Site().Seq > after:
			return v, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (*stage) Annotate(millrace.Subject) {}

func (l *stage) Update(_ context.Context, urls []string, gone bool) (millrace.Counts, error) {
	l.urls, l.gone = urls, gone
	return l.done, l.err
}

// serve handles a request like the gateway.
func (l *stage) serve(w http.ResponseWriter, r *http.Request) {
	if err := l.s.pub.Serve(w, r, l); err != nil {
		status := millrace.Status(err)
		h, body, _ := l.s.pub.RenderError(r, status, err)
		for name, value := range h {
			w.Header()[name] = value
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}
}

// heard is one received event.
type heard struct{ name, id, data string }

// stream requests the event stream and returns a function that reads its events.
func stream(t *testing.T, url, query, last string) (*http.Response, func() (heard, error)) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+eventsPath+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp, hear(resp.Body)
}

// hear returns a function that reads the events of a stream one at a time.
func hear(r io.Reader) func() (heard, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	return func() (heard, error) {
		var h heard
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				h.name = value
			case "id":
				h.id = value
			case "data":
				h.data = value
			case "":
				if h.name != "" {
					return h, nil
				}
			}
		}
		return h, errors.Join(lines.Err(), io.EOF)
	}
}

// words returns the next n events in short form, and the ID of the last one.
func words(t *testing.T, next func() (heard, error), n int) (out []string, id string) {
	t.Helper()
	for range n {
		h, err := next()
		if err != nil {
			t.Fatalf("%v after %q", err, out)
		}
		_, rest, _ := strings.Cut(h.data, `"url":"`+strings.TrimSuffix(base, "/"))
		u, _, _ := strings.Cut(rest, `"`)
		out = append(out, strings.TrimSpace(h.name+" "+u))
		if h.id != "" {
			id = h.id
		}
	}
	return out, id
}

func TestEvents(t *testing.T) {
	s := openShop(t)
	s.apply("one", "+/a", "+/b")
	l := newStage(s)
	srv := httptest.NewServer(http.HandlerFunc(l.serve))
	t.Cleanup(srv.Close) // waits for the streams, so it runs after them
	resp, next := stream(t, srv.URL, "", "")
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-OpenFeeder") != version {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	got, start := words(t, next, 1)
	change := func(text string, edits ...string) {
		s.pass(time.Minute)
		s.apply(text, edits...)
	}
	change("two", "+/a", "-/b")
	change("two", "+/c")
	l.publish()
	more, last := words(t, next, 3)
	change("three", "-/c")
	change("three", "+/c", "+/d")
	change("three", "+/e")
	change("three", "-/e")
	l.publish()
	rest, end := words(t, next, 3)
	want := []string{"ready", "updated /a", "deleted /b", "added /c", "updated /c", "added /d", "deleted /e"}
	if diff := cmp.Diff(want, slices.Concat(got, more, rest)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A client that reconnects gets the missed events, from memory or from the log.
	_, far := stream(t, srv.URL, "", start)
	if got, id := words(t, far, 5); !slices.Equal(got, []string{"ready", "updated /a", "deleted /b", "updated /c", "added /d"}) && len(got) != 5 || id == start {
		t.Errorf("from the start: %q", got)
	}
	_, near := stream(t, srv.URL, "?since="+start, last)
	if got, id := words(t, near, 4); !slices.Equal(got, []string{"ready", "updated /c", "added /d", "deleted /e"}) || id != end {
		t.Errorf("from the last id: %q to %s, want %s", got, id, end)
	}
	s.want("?since="+end, "")
	s.restart()
	_, cold := stream(t, srv.URL, "?since="+last, "")
	if got, id := words(t, cold, 4); !slices.Equal(got, []string{"ready", "updated /c", "added /d", "deleted /e"}) || id != end {
		t.Errorf("from the log: %q to %s, want %s", got, id, end)
	}
	_, dated := stream(t, srv.URL, "?since="+at(s.clock().Add(time.Second)), "")
	if got, _ := words(t, dated, 1); !slices.Equal(got, []string{"ready"}) {
		t.Errorf("from a date: %q", got)
	}
	change("four", "+/x")
	l.publish()
	if got, _ := words(t, dated, 1); !slices.Equal(got, []string{"added /x"}) {
		t.Errorf("after a date: %q", got)
	}
	// Invalid positions are refused with an error of the protocol, before the stream starts.
	foreign := tokenAt(millrace.Site{Epoch: "other"}, 1, at(day(1)))
	for query, status := range map[string]int{"?since=soon": 400, "?since=" + foreign: 410, "?since=%zz": 400} {
		resp, _ := stream(t, srv.URL, query, "")
		body, _ := io.ReadAll(resp.Body)
		if _, form := decodeFailure(body); resp.StatusCode != status || !form {
			t.Errorf("%s: %s %s", query, resp.Status, body)
		}
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, eventsPath, nil)
	w := httptest.NewRecorder()
	if l.serve(w, req); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("POST: %d %v", w.Code, w.Header())
	}
	// At shutdown, every stream ends with an error event.
	l.end()
	h, err := dated()
	if err != nil || h.name != "error" || !strings.Contains(h.data, serverError) {
		t.Errorf("at the end: %+v, %v", h, err)
	}
	if _, err := dated(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

// A client that has received only a part of a commit learns of pages that have since been
// deleted or become archives, both by events and by a sync reply.
func TestEventsPart(t *testing.T) {
	for _, edit := range []string{"-", "*"} {
		s := openShop(t)
		s.apply("one", "+/a")
		l := newStage(s)
		srv := httptest.NewServer(http.HandlerFunc(l.serve))
		t.Cleanup(srv.Close) // waits for the streams, so it runs after them
		defer l.end()
		_, next := stream(t, srv.URL, "", "")
		words(t, next, 1)
		s.pass(time.Minute)
		s.apply("two", "+/b", "+/c")
		l.publish()
		got, middle := words(t, next, 1)
		s.pass(time.Minute)
		s.apply("three", edit+strings.TrimPrefix(got[0], "added "))
		s.pass(time.Minute)
		s.apply("four", "+/d")
		s.restart()
		l.publish()
		gone := "deleted" + strings.TrimPrefix(got[0], "added")
		_, again := stream(t, srv.URL, "", middle)
		if got, _ := words(t, again, 3); !slices.Contains(got, gone) {
			t.Errorf("%s: events: %q, want %s", edit, got, gone)
		}
		if c, err := s.ask(endpoint + "?since=" + middle); err != nil || len(c.Deleted) != 1 {
			t.Errorf("%s: sync: %+v, %v", edit, c, err)
		}
	}
}

// A token that is ahead of the server, such as after restoring a backup, is treated as a date.
// So its client gets new events although their sequence numbers are lower.
func TestEventsAhead(t *testing.T) {
	s := openShop(t)
	s.apply("one", "+/a")
	l := newStage(s)
	srv := httptest.NewServer(http.HandlerFunc(l.serve))
	t.Cleanup(srv.Close) // waits for the streams, so it runs after them
	defer l.end()
	n := uint64(1000)
	ahead := token{T: at(s.clock().Add(time.Second)), N: &n, E: s.view().Site().Epoch}.String()
	_, next := stream(t, srv.URL, "", ahead)
	words(t, next, 1)
	s.pass(time.Minute)
	s.apply("two", "+/b")
	l.publish()
	if got, _ := words(t, next, 1); !slices.Equal(got, []string{"added /b"}) {
		t.Errorf("%q", got)
	}
}

// HEAD returns the stream's header, and OPTIONS the methods that pages of other origins may
// use.
func TestEventsMethods(t *testing.T) {
	s := openShop(t)
	s.apply("one", "+/a")
	l := newStage(s)
	for _, tt := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{http.MethodHead, eventsPath, 200, ""},
		{http.MethodOptions, eventsPath, 405, "GET, HEAD, OPTIONS"}, // the gateway builds its response from this
		{http.MethodOptions, updatePath, 405, "POST, OPTIONS"},
		{http.MethodGet, updatePath, 405, "POST, OPTIONS"},
	} {
		w := httptest.NewRecorder()
		l.serve(w, httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, nil))
		h := w.Header()
		if w.Code != tt.status || h.Get("Allow") != tt.allow || tt.status < 300 && (w.Body.Len() > 0 || h.Get("Access-Control-Allow-Origin") != "*") {
			t.Errorf("%s %s: %d %v %s", tt.method, tt.path, w.Code, h, w.Body)
		}
	}
}

// A slow client gets an error and is disconnected. The other clients do not wait for it.
func TestEventsSlow(t *testing.T) {
	s := openShop(t)
	s.apply("one", "+/a")
	l := newStage(s)
	v, err := l.View()
	if err != nil {
		t.Fatal(err)
	}
	e := &s.pub.events
	e.join(s.pub, l, v)
	defer e.leave()
	slow, quick := v.Site().Seq, v.Site().Seq
	sent := 0
	for i := range 6 {
		s.pass(time.Second)
		var batch []string
		for n := range 100 {
			batch = append(batch, fmt.Sprintf("+/%d-%d", i, n))
		}
		s.apply(strings.Repeat("long ", 70), batch...)
		l.publish()
		for sent < (i+1)*100 {
			frames, moved, err := e.after(&quick)
			if err != nil {
				t.Fatal(err)
			}
			sent += strings.Count(string(frames), "event: added")
			if len(frames) == 0 {
				<-moved
			}
		}
		e.mu.Lock()
		e.size += maxEventBytes / 4 // simulates more stored events
		e.mu.Unlock()
	}
	if _, _, err := e.after(&slow); !errors.Is(err, errBehind) {
		t.Fatalf("the slow client: %v", err)
	}
	if frame := string(s.pub.finalEvent(errBehind)); !strings.HasPrefix(frame, "event: error\ndata: {") || !strings.Contains(frame, slowConsumer) {
		t.Errorf("it gets %q", frame)
	}
}

// A thousand listeners receive every change. The log is read once per change, and each
// listener needs little memory.
func TestEventsMany(t *testing.T) {
	clients := 1000
	if testing.Short() {
		clients = 100
	}
	s := openShop(t)
	s.apply("one", "+/a")
	l := newStage(s)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const changes = 100
	var ready, done sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wrong atomic.Int64
	for range clients {
		ready.Add(1)
		done.Go(func() {
			ctx, enough := context.WithCancel(ctx)
			defer enough()
			w := &eventsResponse{enough: enough, ready: ready.Done, want: changes}
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, eventsPath, nil)
			if err := s.pub.Serve(w, r, l); err != nil || w.heard != changes {
				wrong.Add(1)
			}
		})
	}
	ready.Wait()
	l.readings.Store(0)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse); used > 50<<20 {
		t.Errorf("%d listeners take %d MB", clients, used>>20)
	}
	for i := range changes {
		s.pass(time.Millisecond)
		s.apply("x", fmt.Sprintf("+/c%d", i))
		l.publish()
	}
	done.Wait()
	if n := l.readings.Load(); n > changes {
		t.Errorf("the log was read %d times for %d changes", n, changes)
	}
	if wrong.Load() > 0 {
		t.Errorf("%d of %d listeners missed a change", wrong.Load(), clients)
	}
}

// eventsResponse is the response to a client that listens until it has all changes.
type eventsResponse struct {
	header      http.Header
	ready       func()
	enough      context.CancelFunc
	heard, want int
}

func (e *eventsResponse) Header() http.Header {
	if e.header == nil {
		e.header = http.Header{}
	}
	return e.header
}

func (e *eventsResponse) WriteHeader(int) {}

func (e *eventsResponse) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "event: ready") {
		e.ready()
	}
	e.heard += strings.Count(string(b), "event: added")
	if e.heard == e.want {
		e.enough()
	}
	return len(b), nil
}

// Flush implements [http.Flusher].
func (e *eventsResponse) Flush() {}

func TestUpdate(t *testing.T) {
	s := openShop(t)
	s.apply("one", "+/a")
	l := newStage(s)
	post := func(body string) (int, string) {
		t.Helper()
		l.urls = nil
		w := httptest.NewRecorder()
		l.serve(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, updatePath, strings.NewReader(body)))
		if w.Header().Get("Content-Type") != contentType || w.Header().Get("X-OpenFeeder") != version {
			t.Errorf("%s: %v", kit.Short(body), w.Header())
		}
		return w.Code, w.Body.String()
	}
	l.done = millrace.Counts{Added: 1, Unchanged: 1}
	status, text := post(`{"action":"upsert","urls":["/a","https://mill.example/b?x=1","/a"]}`)
	want := `{"schema":"openfeeder/1.0","action":"upsert","accepted":2,"added":1,"updated":0,"deleted":0,"unchanged":1}`
	if status != http.StatusOK || text != want || l.gone || !slices.Equal(l.urls, []string{base + "a", base + "b?x=1"}) {
		t.Errorf("%d %s: %q", status, text, l.urls)
	}
	if status, _ := post(`{"urls":["/a"],"action":"delete"}`); status != http.StatusOK || !l.gone {
		t.Errorf("delete: %d", status)
	}
	many := strings.TrimSuffix(strings.Repeat(`"/a",`, maxUpdate+1), ",")
	for body, want := range map[string]int{
		``: 400, `{`: 400, `[]`: 400, `null`: 400, `{}`: 400, `"x"`: 400,
		`{"action":"upsert"}`:                                               400,
		`{"action":"upsert","urls":[]}`:                                     400,
		`{"action":"upsert","urls":null}`:                                   400,
		`{"action":"upsert","urls":"/a"}`:                                   400,
		`{"action":"upsert","urls":[1]}`:                                    400,
		`{"action":"upsert","urls":[["/a"]]}`:                               400,
		`{"action":"UPSERT","urls":["/a"]}`:                                 400,
		`{"action":"upsert","action":"delete","urls":["/a"]}`:               400,
		`{"action":"upsert","urls":["/a"],"key":"x"}`:                       400,
		`{"action":"upsert","urls":["/a"]}{}`:                               400,
		`{"action":"upsert","urls":["/a","https://evil.example/"]}`:         400,
		`{"action":"upsert","urls":["/a","/../b"]}`:                         400,
		`{"action":"upsert","urls":["/a","/b\u0000"]}`:                      400,
		`{"action":"upsert","urls":["/a","file:///etc/passwd"]}`:            400,
		`{"action":"upsert","urls":[` + many + `]}`:                         400,
		`{"action":"upsert","urls":["/` + strings.Repeat("a", 9000) + `"]}`: 400,
		`{"action":"upsert","urls":["` + strings.Repeat("a", 2<<20) + `"]}`: 413,
		strings.Repeat(" ", 10<<20):                                         413,
	} {
		status, reply := post(body)
		if f, form := decodeFailure([]byte(reply)); status != want || !form || f.Message == "" || l.urls != nil {
			t.Errorf("%s: %d %s; %q", kit.Short(body), status, reply, l.urls)
		}
	}
	l.err = fmt.Errorf("no: %w", millrace.ErrUnavailable)
	if status, answer := post(`{"action":"upsert","urls":["/a"]}`); status != http.StatusServiceUnavailable || !strings.Contains(answer, serverError) {
		t.Errorf("a mirror: %d %s", status, answer)
	}
	l.err = errors.New("secret")
	if status, failure := post(`{"action":"upsert","urls":["/a"]}`); status != http.StatusInternalServerError || strings.Contains(failure, "secret") {
		t.Errorf("a failure: %d %s", status, failure)
	}
	for path, want := range map[string]millrace.Scope{eventsPath: millrace.ScopeRead, updatePath: millrace.ScopeUpdate, endpoint: "", updatePath + "/": ""} {
		if right, ok := s.pub.Scope(httptest.NewRequestWithContext(t.Context(), http.MethodDelete, path, nil)); right != want || ok != (want != "") {
			t.Errorf("%s needs %q, %v", path, right, ok)
		}
	}
}
