package push

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

const base = "https://example.com/blog/"

// opened is a published site, with the State of its store.
type opened struct {
	store.Site
	pub   store.Publication
	state store.State
}

// Head updates the publication and returns its view.
func (o *opened) Head(ctx context.Context) (millrace.View, error) {
	if _, err := o.pub.Refresh(ctx, store.Lease{}, 0, nil); err != nil {
		return nil, err
	}
	return o.pub.Head(ctx)
}

// open returns a site of a new store.
func open(t *testing.T) *opened {
	t.Helper()
	st := memory.New(nil)
	site, err := st.Site(t.Context(), base, base)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := site.Publication(t.Context(), store.Config{Base: base, Visibility: millrace.Visibility{Exclude: []string{"/hidden"}}})
	if err != nil {
		t.Fatal(err)
	}
	return &opened{site, pub, st.State()}
}

// apply adds pages, or deletes those with a leading dash.
func apply(t *testing.T, site store.Site, text string, urls ...string) {
	t.Helper()
	var batch []millrace.Change
	for _, u := range urls {
		if gone, ok := strings.CutPrefix(u, "-"); ok {
			batch = append(batch, millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: gone}})
			continue
		}
		batch = append(batch, millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: u, Version: text}, Page: &millrace.Page{
			URL: u, Title: u, Blocks: millrace.TextBlocks(text), Detail: millrace.DetailText, Known: millrace.FieldTitle | millrace.FieldContent,
		}})
	}
	if _, err := site.Apply(t.Context(), "test", batch); err != nil {
		t.Fatal(err)
	}
}

// listener is a server that receives notifications.
type listener struct {
	*httptest.Server
	status int // of responses; 0 = 202
	got    []string
}

func listen(t *testing.T) *listener {
	t.Helper()
	l := &listener{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			t.Errorf("%s: %v", r.Method, err)
		}
		l.got = append(l.got, r.Header.Get("Content-Type")+" "+string(body))
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/", http.StatusPermanentRedirect)
			return
		}
		if l.status == 0 {
			l.status = http.StatusAccepted
		}
		w.WriteHeader(l.status)
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *listener) want(t *testing.T, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, l.got); d != "" {
		t.Errorf("notifications (-want +got):\n%s", d)
	}
	l.got = nil
}

func newPusher(site *opened) *Pusher {
	return &Pusher{
		Site: site, State: site.state, Name: base, Logger: slog.New(slog.DiscardHandler),
		Client: fetch.New(&fetch.Options{AllowPrivate: true, IgnoreRobots: true}).HTTP(),
		Topics: func() []string { return []string{"https://example.com/feed.atom", "https://example.com/feed.json"} },
	}
}

// A hub is pinged once for each topic of each edition. That includes editions published while
// the hub was down, or before the process started.
func TestHub(t *testing.T) {
	site, l := open(t), listen(t)
	atom := formType + " hub.mode=publish&hub.url=https%3A%2F%2Fexample.com%2Ffeed.atom"
	jsonFeed := strings.ReplaceAll(atom, "atom", "json")
	h := &hub{pusher: newPusher(site), url: l.URL + "/"}
	flush := func(ok bool) {
		t.Helper()
		if _, err := h.flush(t.Context()); (err == nil) != ok {
			t.Fatal(err)
		}
	}
	apply(t, site, "1", "/a")
	flush(true)
	l.want(t, atom, jsonFeed)
	flush(true)
	l.want(t)

	apply(t, site, "2", "/a")
	l.status = http.StatusBadRequest
	flush(false)
	l.want(t, atom)
	l.status = 0
	h = &hub{pusher: newPusher(site), url: l.URL + "/"} // another process
	flush(true)
	l.want(t, atom, jsonFeed)

	h.url = l.URL + "/moved" // another hub, which redirects
	flush(true)
	l.want(t, atom, atom, jsonFeed, jsonFeed)
}

// behind is a site as another process still sees it.
type behind struct{ view millrace.View }

func (b behind) Head(context.Context) (millrace.View, error) { return b.view, nil }

// A process sends nothing if its edition is older than the one that another process has announced.
func TestHubBehind(t *testing.T) {
	site, l := open(t), listen(t)
	apply(t, site, "1", "/a")
	old, err := site.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	apply(t, site, "2", "/a")
	h, late := &hub{pusher: newPusher(site), url: l.URL + "/"}, &hub{pusher: newPusher(site), url: l.URL + "/"}
	late.pusher.Site = behind{old}
	for i, h := range []*hub{h, late, h} {
		if sent, err := h.flush(t.Context()); err != nil || sent != (i == 0) {
			t.Errorf("%d: sent %t, %v", i, sent, err)
		}
	}
}

// submitted decodes a submission.
func submitted(t *testing.T, got string) (s submission) {
	t.Helper()
	body, ok := strings.CutPrefix(got, "application/json; charset=utf-8 ")
	if err := json.Unmarshal([]byte(body), &s); !ok || err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	return s
}

// Pages that change after the first call are submitted in parts of limited size. Hidden pages
// and pages of other sites are not submitted.
func TestIndexNow(t *testing.T) {
	site, l := open(t), listen(t)
	apply(t, site, "1", "/old", "/gone", "/hidden/a")
	n, err := NewIndexNow(l.URL+"/", "0123456789abcdef", base)
	if err != nil {
		t.Fatal(err)
	}
	n.most = 2
	e := &engine{pusher: newPusher(site), IndexNow: n}
	flush := func(ok bool) {
		t.Helper()
		if _, err := e.flush(t.Context()); (err == nil) != ok {
			t.Fatal(err)
		}
	}
	flush(true)
	l.want(t)

	apply(t, site, "2", "/a", "/b", "/old", "-/gone", "/hidden/b", "https://elsewhere.example/blog/")
	l.status = http.StatusForbidden // the key file is missing
	flush(false)
	l.got, l.status = nil, http.StatusOK
	e = &engine{pusher: newPusher(site), IndexNow: n}
	flush(true)
	var urls []string
	for _, got := range l.got {
		s := submitted(t, got)
		if s.Host != "example.com" || s.Key != "0123456789abcdef" || s.KeyLocation != "https://example.com/blog/0123456789abcdef.txt" || len(s.URLList) > 2 {
			t.Errorf("%+v", s)
		}
		urls = append(urls, s.URLList...)
	}
	slices.Sort(urls)
	if d := cmp.Diff([]string{base + "a", base + "b", base + "gone", base + "old"}, urls); d != "" {
		t.Error(d)
	}

	// A permanently rejected page does not block later pages.
	for _, status := range []int{http.StatusUnprocessableEntity, http.StatusBadRequest} {
		l.got, l.status = nil, status
		apply(t, site, fmt.Sprint(status), "/a")
		flush(true)
		l.status = http.StatusOK
		apply(t, site, fmt.Sprint(status), "/b")
		flush(true)
		if len(l.got) != 2 || submitted(t, l.got[1]).URLList[0] != base+"b" {
			t.Errorf("after %d: %q", status, l.got)
		}
	}
}

// If one process takes over from another, each change is submitted exactly once.
func TestIndexNowTakenOver(t *testing.T) {
	site, l := open(t), listen(t)
	n, err := NewIndexNow(l.URL+"/", "0123456789abcdef", base)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, site, "1", "/first")
	for i := range 4 {
		e := &engine{pusher: newPusher(site), IndexNow: n}
		if _, err := e.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		apply(t, site, "1", fmt.Sprintf("/%d", i))
	}
	notified := map[string]int{}
	for _, got := range l.got {
		for _, u := range submitted(t, got).URLList {
			notified[u]++
		}
	}
	if want := map[string]int{base + "0": 1, base + "1": 1, base + "2": 1}; !maps.Equal(notified, want) {
		t.Errorf("notified: %v, want %v", notified, want)
	}
}

// The first change is sent at once, and changes within the gap together. A failure delays the
// next attempt.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex // guards the variables below
		moved := make(chan struct{})
		var at []time.Duration
		var fail error
		idle := 0 // number of the call that has nothing to send
		set := func(change func()) {
			mu.Lock()
			defer mu.Unlock()
			change()
		}
		p := newPusher(&opened{})
		p.Moved = func() <-chan struct{} {
			mu.Lock()
			defer mu.Unlock()
			return moved
		}
		move := func() {
			set(func() {
				close(moved)
				moved = make(chan struct{})
			})
			synctest.Wait()
		}
		start := time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			p.follow(ctx, receiver{"", "test", time.Minute, func(context.Context) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				at = append(at, time.Since(start))
				return len(at) != idle, fail
			}})
		}()
		want := func(text string, want ...time.Duration) {
			t.Helper()
			synctest.Wait()
			set(func() {
				if d := cmp.Diff(want, at); d != "" {
					t.Errorf("%s (-want +got):\n%s", text, d)
				}
				at = nil
			})
		}
		want("at the start", 0)
		time.Sleep(2 * time.Minute)
		move()
		want("a change", 2*time.Minute)
		time.Sleep(time.Second)
		move()
		move()
		want("two changes soon after")
		time.Sleep(time.Minute)
		want("they are sent together", 3*time.Minute)
		set(func() { idle = 1 })
		time.Sleep(time.Hour)
		move()
		move()
		want("no wait without changes", 63*time.Minute+time.Second, 63*time.Minute+time.Second)
		set(func() {
			start = start.Add(time.Hour)
			fail = &fetch.StatusError{Code: http.StatusServiceUnavailable, RetryAfter: 90 * time.Second}
		})
		move()
		time.Sleep(5 * time.Minute)
		want("a hub that sends a Retry-After", 4*time.Minute+time.Second, 5*time.Minute+31*time.Second, 7*time.Minute+time.Second)
		cancel()
		<-ended
	})
}

// The log has only the host of a URL that receives notifications.
func TestHidden(t *testing.T) {
	site, l := open(t), listen(t)
	apply(t, site, "1", "/a")
	l.status = http.StatusForbidden
	ctx, cancel := context.WithCancel(t.Context())
	var log bytes.Buffer
	p := newPusher(site)
	p.Moved = func() <-chan struct{} { return nil }
	p.Hubs = []string{l.URL + "/hub?key=secret"}
	p.Logger = slog.New(slog.NewTextHandler(writer(func(line []byte) {
		log.Write(line)
		cancel()
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	p.Run(ctx)
	if got := log.String(); strings.Contains(got, "secret") || strings.Count(got, l.URL) != 2 {
		t.Errorf("a ping that fails: %s", got)
	}

	log.Reset()
	l.status = 0
	if _, err := (&hub{pusher: p, url: p.Hubs[0]}).flush(t.Context()); err != nil || !strings.Contains(log.String(), l.URL) {
		t.Errorf("a ping: %v, %s", err, log.String())
	}
	n, err := NewIndexNow(l.URL+"/in?token=secret", "0123456789", base)
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{pusher: p, IndexNow: n}
	for _, l.status = range []int{http.StatusOK, http.StatusBadRequest} {
		if err := e.deliver(t.Context(), [][]byte{[]byte(`{"url":"` + base + `a"}`)}); err != nil {
			t.Error(err)
		}
	}
	if got := log.String(); strings.Contains(got, "secret") || strings.Count(got, l.URL) != 4 {
		t.Errorf("submissions: %s", got)
	}
}

// writer calls a function for each line of a log.
type writer func(line []byte)

func (w writer) Write(line []byte) (int, error) {
	w(line)
	return len(line), nil
}

// Each kind of failure has its own pause.
func TestWait(t *testing.T) {
	p := newPusher(&opened{})
	for _, tt := range []struct {
		err   error
		fails int
		want  time.Duration
	}{
		{errors.New("no route"), 0, time.Second},
		{errors.New("no route"), 3, 8 * time.Second},
		{errors.New("no route"), 99, time.Hour},
		{&fetch.StatusError{Code: 503}, 0, time.Second},
		{&fetch.StatusError{Code: 503, RetryAfter: time.Minute}, 0, time.Minute},
		{&fetch.StatusError{Code: 503, RetryAfter: 9999 * time.Hour}, 0, 24 * time.Hour},
		{&fetch.StatusError{Code: 429}, 0, time.Minute},
		{&fetch.StatusError{Code: 429, RetryAfter: 7 * time.Second}, 0, 7 * time.Second},
		{&fetch.StatusError{Code: 404}, 0, 10 * time.Minute},
		{&fetch.StatusError{Code: 408}, 0, time.Second},
	} {
		if got := p.wait(tt.err, tt.fails); got > tt.want || got < tt.want/2 {
			t.Errorf("%v after %d: %s, want %s", tt.err, tt.fails, got, tt.want)
		}
	}
}

// Invalid keys and URLs are refused.
func TestBad(t *testing.T) {
	for _, key := range []string{"", "1234567", strings.Repeat("a", 129), "abc/../defghij", "abcdefgh\n"} {
		if _, err := NewIndexNow("", key, base); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("key %q: %v", key, err)
		}
	}
	for _, u := range []string{"", "example.com", "ftp://example.com/?key=secret", "ftp://user:secret@example.com/", "user:secret@example.com", "https://user:secret@example.com/", "https://exa mple.com/", "https:///hub"} {
		_, err := CheckHub(u)
		if !errors.Is(err, millrace.ErrInvalid) || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("hub %q: %v", u, err)
		}
		if _, err := NewSubscriber(u, nil); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("callback %q: %v", u, err)
		}
	}
	if _, err := NewSubscriber("https://example.com/?a=secret", nil); !errors.Is(err, millrace.ErrInvalid) || strings.Contains(err.Error(), "secret") {
		t.Errorf("a callback with a query: %v", err)
	}
	key, err := NewKey(strings.NewReader("0123456789abcdef"))
	if err != nil || key != "30313233343536373839616263646566" || CheckKey(key) != nil {
		t.Errorf("%s, %v", key, err)
	}
	if u, err := url.Parse(DefaultIndexNow); err != nil || u.Scheme != "https" {
		t.Error(DefaultIndexNow)
	}
}
