package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/outbox"
	"github.com/millrace/millrace/internal/testkit"
)

// watch starts `millrace watch`.
func watch(t *testing.T, args ...string) *served {
	t.Helper()
	return watchAs(t, map[string]string{"HOME": t.TempDir()}, args...)
}

func watchAs(t *testing.T, env map[string]string, args ...string) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &served{out: &buffer{}, stdout: &buffer{}}
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"watch", "--allow-private"}, args...), environment(env), strings.NewReader(""), s.stdout, s.out)
	}()
	code, once := 0, sync.Once{}
	s.stop = func() int {
		once.Do(func() { cancel(); code = <-done })
		return code
	}
	t.Cleanup(func() { s.stop() })
	eventually(t, "it watches", func() bool {
		select {
		case code := <-done:
			done <- code
			t.Fatalf("watch ended with %d:\n%s", code, s.out)
		default:
		}
		return strings.Contains(s.out.String(), " worker=")
	})
	return s
}

// lines returns the printed changes.
func lines(t *testing.T, text string) (out []outbox.Event) {
	t.Helper()
	sc := bufio.NewScanner(strings.NewReader(text))
	sc.Buffer(nil, 10<<20)
	for sc.Scan() {
		var e outbox.Event
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil || e.Site == "" || e.Time.IsZero() {
			t.Fatalf("%v: %q", err, sc.Text())
		}
		out = append(out, e)
	}
	return out
}

// edit changes a page of the handbook.
func edit(t *testing.T, dir, old, now string) {
	t.Helper()
	name := filepath.Join(dir, "about", "index.html")
	html, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(html), old) {
		t.Fatalf("the page does not contain %q", old)
	}
	write(t, name, strings.Replace(string(html), old, now, 1))
}

// On a site with events, an edit is printed as a line at once. A restart neither pulls nor repeats
// changes.
func TestWatch(t *testing.T) {
	t.Parallel()
	dir, mirror := copySite(t, "handbook"), filepath.Join(t.TempDir(), "mirror.db")
	conf := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, conf, "policy:\n  terms: https://example.com/terms\n  requirements:\n    attribution: true\n")
	s := serve(t, dir, "--config", conf)
	w := watch(t, s.url, "--store", mirror, "--content", "text", "--log-level", "debug")
	eventually(t, "all pages are reported", func() bool { return len(lines(t, w.stdout.String())) >= 14 })
	// The pull after the opening of the stream stores its position. After that, only an edit
	// causes another pull.
	eventually(t, "a pull after the stream was opened", func() bool {
		_, after, opened := strings.Cut(w.out.String(), "/openfeeder/events status=200")
		return opened && strings.Contains(after, " next_pull=")
	})
	for _, e := range lines(t, w.stdout.String()) {
		if e.Change != "added" || e.Site != s.url || e.Title == "" || e.Revision == "" || e.Content == "" ||
			!strings.Contains(string(e.Terms), `"terms":"https://example.com/terms"`) {
			t.Fatalf("%+v", e)
		}
	}
	printed := len(w.stdout.String())
	began := time.Now()
	edit(t, dir, "Alderford is a mill", "Alderford was a mill")
	eventually(t, "the edit is reported", func() bool { return len(w.stdout.String()) > printed })
	if e := lines(t, w.stdout.String()[printed:]); len(e) != 1 || e[0].Change != "updated" || e[0].URL != s.url+"about/" || !strings.Contains(e[0].Content, "was a mill") {
		t.Errorf("%+v", e)
	}
	t.Logf("the edit was reported after %s", time.Since(began))
	eventually(t, "the pull has ended", func() bool { return strings.Contains(w.out.String(), "updated=1") })
	if code := w.stop(); code != 0 {
		t.Errorf("exit %d:\n%s", code, w.out)
	}

	again := watch(t, s.url, "--store", mirror, "--log-level", "debug")
	time.Sleep(time.Second)
	if again.stop() != 0 || again.stdout.String() != "" || strings.Contains(again.out.String(), " next_pull=") {
		t.Errorf("a restart:\n%s\n%s", again.stdout, again.out)
	}
}

// hook is a webhook receiver.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	status int // of responses; 0 = 204
	asked  int
	got    []outbox.Event
	header http.Header
	posted [][2]string // IDs and bodies of accepted messages
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.asked, h.header = h.asked+1, r.Header.Clone()
		if h.status != 0 {
			w.WriteHeader(h.status)
			return
		}
		var m struct {
			Type      string
			Timestamp time.Time
			Data      struct {
				Site    string
				Changes []outbox.Event
			}
		}
		if err := json.Unmarshal(body, &m); err != nil || m.Type != "site.changed" || m.Timestamp.IsZero() || len(m.Data.Changes) == 0 {
			t.Errorf("%v: %s", err, body)
		}
		h.got = append(h.got, m.Data.Changes...)
		h.posted = append(h.posted, [2]string{r.Header.Get("Webhook-Id"), string(body)})
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) state() (asked int, got []outbox.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked, slices.Clone(h.got)
}

func (h *hook) answer(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status = status
}

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// A webhook receives the same changes as standard output, including those that it missed, and each
// only once.
func TestWatchWebhook(t *testing.T) {
	t.Parallel()
	dir, mirror := copySite(t, "handbook"), filepath.Join(t.TempDir(), "mirror.db")
	s, h := serve(t, dir), newHook(t)
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, hookSecret+"\n")
	args := []string{s.url, "--store", mirror, "--webhook", h.URL + "/in?token=hunter2", "--webhook-secret-file", secret}
	h.answer(http.StatusBadGateway)
	w := watch(t, args...)
	eventually(t, "the webhook is called", func() bool { return strings.Contains(w.out.String(), " code=http-502") })
	if w.stop() != 0 || w.stdout.String() != "" || strings.Contains(w.out.String(), "hunter2") {
		t.Fatalf("while it is down:\n%s\n%s", w.stdout, w.out)
	}
	edit(t, dir, "Alderford is a mill", "Alderford was a mill")
	h.answer(0)
	w = watch(t, args...)
	defer func() {
		if t.Failed() {
			_, got := h.state()
			t.Logf("%s\n%+v", w.out, got)
		}
	}()
	eventually(t, "all pages and the edit are reported", func() bool {
		_, got := h.state()
		return slices.ContainsFunc(got, func(e outbox.Event) bool { return e.URL == s.url+"about/" && e.Change == "updated" })
	})
	w.stop()
	_, got := h.state()
	urls := map[string]bool{}
	for _, e := range got {
		urls[e.URL] = true
	}
	if len(urls) != 14 || len(got) != 15 || h.header.Get("webhook-id") == "" || h.header.Get("webhook-signature") == "" {
		t.Errorf("%d changes of %d pages: %+v\n%v", len(got), len(urls), got, h.header)
	}

	// After 410, watch stops calling the webhook and keeps the mirror up to date.
	h.answer(http.StatusGone)
	env := map[string]string{"HOME": t.TempDir(), "MILLRACE_WEBHOOK_SECRET": hookSecret}
	other := strings.Replace(args[4], "/in", "/other", 1)
	w = watchAs(t, env, s.url, "--store", mirror, "--webhook", other, "--min-interval", "1s", "--max-interval", "1s", "--log-level", "debug")
	eventually(t, "the end of the delivery is logged", func() bool { return strings.Contains(w.out.String(), " code=not-found") })
	before, _ := h.state()
	pulls := strings.Count(w.out.String(), " next_pull=")
	eventually(t, "the mirror is still updated", func() bool { return strings.Count(w.out.String(), " next_pull=") > pulls })
	if after, _ := h.state(); after != before || w.stop() != 0 {
		t.Errorf("%d posts, then %d", before, after)
	}
}

// watch rejects wrong usage.
func TestWatchUsage(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "hunter2hunter2\n")
	for _, tt := range []struct {
		env  map[string]string
		args []string
		code string
	}{
		{nil, []string{"example.com"}, "bad-url"},
		{nil, []string{"https://example.com/", "--webhook", "https://hooks.example/"}, "usage/webhook"},
		{nil, []string{"https://example.com/", "--webhook", "https://hooks.example/", "--webhook-secret-file", secret}, "usage/webhook-secret-file"},
		{nil, []string{"https://example.com/", "--webhook", "https://hooks.example/", "--webhook-secret-file", secret + "x"}, "usage/webhook-secret-file"},
		{map[string]string{"MILLRACE_WEBHOOK_SECRET": hookSecret}, []string{"https://example.com/", "--webhook", "hooks.example"}, "usage/webhook"},
		{nil, []string{"https://example.com/", "--webhook-secret-file", secret}, "usage/webhook-secret-file"},
		{nil, []string{"https://example.com/", "--min-interval", "0s"}, "usage/min-interval"},
		{nil, []string{"https://example.com/", "--min-interval", "48h"}, "usage/max-interval"},
		{nil, []string{"https://example.com/", "--max-interval", "20000h"}, "usage/max-interval"},
		{nil, []string{"https://example.com/", "--via", "tct-02"}, "usage"},
	} {
		env := map[string]string{"HOME": t.TempDir()}
		maps.Copy(env, tt.env)
		exit, code, out := failure(t, env, append([]string{"watch"}, tt.args...)...)
		if exit != exitUsage || code != tt.code || strings.Contains(out, "hunter2") {
			t.Errorf("%v: exit %d %s, want %s:\n%s", tt.args, exit, code, tt.code, out)
		}
	}
	// watch rejects a webhook on this machine, unless a flag allows it.
	s, h := serve(t, copySite(t, "jekyll")), newHook(t)
	file := filepath.Join(t.TempDir(), "m.db")
	pull(t, s.url, file)
	exit, code, out := failure(t, map[string]string{"MILLRACE_WEBHOOK_SECRET": hookSecret}, "watch", s.url, "--store", file, "--webhook", h.URL)
	if asked, _ := h.state(); exit != 1 || code != "address-loopback" || asked != 0 {
		t.Errorf("exit %d %s, %d posts:\n%s", exit, code, asked, out)
	}
}

// Two watches of one mirror share the work: one of them prints each change, even after the other
// has ended.
func TestWatchTwice(t *testing.T) {
	t.Parallel()
	dir, mirror := copySite(t, "handbook"), filepath.Join(t.TempDir(), "mirror.db")
	s := serve(t, dir)
	pull(t, s.url, mirror)
	var both [2]*served
	for i := range both {
		both[i] = watch(t, s.url, "--store", mirror, "--from", "now", "--min-interval", "1s", "--max-interval", "1s", "--json")
	}
	printed := func() []outbox.Event {
		all := both[0].stdout.String() + both[1].stdout.String()
		return lines(t, all[:strings.LastIndexByte(all, '\n')+1])
	}
	text := []string{"is", "was", "will be", "may be"}
	for i := range text[1:] {
		edit(t, dir, "Alderford "+text[i]+" a mill", "Alderford "+text[i+1]+" a mill")
		eventually(t, "the change is printed", func() bool { return len(printed()) > i })
		if i == 1 {
			both[0].stop()
		}
	}
	if got := printed(); len(got) != 3 || slices.ContainsFunc(got, func(e outbox.Event) bool { return e.Change != outbox.Updated }) {
		t.Errorf("%+v", got)
	}
}

// With --from-now, the pages of the first pull are not changes; later changes are.
func TestWatchFromNow(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	s := serve(t, dir)
	w := watch(t, s.url, "--store", filepath.Join(t.TempDir(), "m.db"), "--from", "now", "--min-interval", "1s", "--max-interval", "1s")
	eventually(t, "the first pull has ended", func() bool { return strings.Contains(w.out.String(), " next_pull=") })
	edit(t, dir, "Alderford is a mill", "Alderford was a mill")
	eventually(t, "the edit is sent", func() bool { return w.stdout.String() != "" })
	if e := lines(t, w.stdout.String()); len(e) != 1 || e[0].Change != outbox.Updated || e[0].URL != s.url+"about/" {
		t.Errorf("%+v", e)
	}
}

// The log names the pages that a pull skips.
func TestWatchSkips(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	edit(t, dir, "Alderford is a mill", `<a href="/gone/">Alderford</a> is a mill`)
	w := watch(t, serve(t, dir).url, "--store", filepath.Join(t.TempDir(), "m.db"), "--via", "crawl")
	eventually(t, "the deleted page is logged", func() bool { return strings.Contains(w.out.String(), "code=http-404") })
}

// A site that is down blocks no other site and does not end the watch.
func TestWatchDown(t *testing.T) {
	t.Parallel()
	s := serve(t, copySite(t, "handbook"))
	stuck := make(chan struct{})
	dead := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-stuck:
		case <-r.Context().Done():
		}
	}))
	defer dead.Close()
	defer close(stuck)
	refused := httptest.NewServer(nil)
	refused.Close()
	// The same server with another name is another host.
	w := watch(t, strings.Replace(dead.URL, "127.0.0.1", "localhost", 1), strings.Replace(refused.URL, "127.0.0.1", "127.0.0.2", 1), s.url,
		"--store", filepath.Join(t.TempDir(), "m.db"))
	eventually(t, "the other site is reported", func() bool { return len(lines(t, w.stdout.String())) >= 14 })
	eventually(t, "the log names the site that is down", func() bool { return strings.Contains(w.out.String(), " code=connection-refused") })
	began := time.Now()
	if code := w.stop(); code != 0 || time.Since(began) > time.Minute {
		t.Errorf("exit %d after %s:\n%s", code, time.Since(began), w.out)
	}
}

// A watch reports every change, no matter how often it is killed, and repeats at most one change
// for each kill.
func TestKillWatch(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("testing.Short: kills child processes")
	}
	dir, mirror := copySite(t, "handbook"), filepath.Join(t.TempDir(), "mirror.db")
	s := serve(t, dir, "--log-level", "error")
	start := func(out *os.File, args ...string) *exec.Cmd {
		t.Helper()
		c := asProcess(t.Context(), t, append([]string{
			"watch", s.url, "--store", mirror, "--allow-private", "--content", "text", "--min-interval", "1s", "--max-interval", "1s", "--quiet",
		}, args...)...)
		c.Env = append(c.Env, "MILLRACE_WEBHOOK_SECRET="+hookSecret)
		c.Stdout = out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	// verify fails unless all pages were reported, with the text of the last edit.
	verify := func(events []outbox.Event, says string, twice int) {
		t.Helper()
		pages, times := map[string]string{}, map[string]int{}
		for _, e := range events {
			pages[e.URL] = e.Content
			times[e.URL+" "+e.Revision]++
		}
		if len(pages) != 14 || !strings.Contains(pages[s.url+"about/"], says) {
			t.Errorf("%d pages are reported; /about/ says\n%s", len(pages), pages[s.url+"about/"])
		}
		again := len(events) - len(times)
		if t.Logf("%d changes reported, %d of them repeated", len(events), again); again > twice {
			t.Errorf("%d changes are repeated: %v", again, times)
		}
	}

	kills := testkit.Size(0, 3, 6)
	says := "Alderford is a mill"
	var reported []outbox.Event
	for i := range kills + 1 {
		now := "Alderford is a mill number " + strings.Repeat("I", i+1) + "."
		edit(t, dir, says, now)
		says = now
		name := filepath.Join(t.TempDir(), "out")
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		c := start(f)
		read := func() string {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		if i < kills {
			time.Sleep(time.Duration(50+80*i) * time.Millisecond)
		} else {
			eventually(t, "the last edit is reported", func() bool { return strings.Contains(read(), says) })
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		_ = f.Close()
		reported = append(reported, lines(t, read())...)
	}
	verify(reported, says, kills*14)

	// The receiver gets a message, and the sender is killed before it gets the response.
	h := newHook(t)
	var child atomic.Pointer[exec.Cmd]
	killer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.Config.Handler.ServeHTTP(w, r)
		if asked, _ := h.state(); asked <= 1 {
			_ = child.Load().Process.Kill()
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}
	}))
	defer killer.Close()
	c := start(nil, "--webhook", killer.URL)
	child.Store(c)
	if err := c.Wait(); err == nil {
		t.Fatal("the watch has ended by itself")
	}
	if _, got := h.state(); len(got) != 14 {
		t.Errorf("the killed process posted %d changes", len(got))
	}
	c = start(nil, "--webhook", killer.URL)
	eventually(t, "all changes are acknowledged", func() bool { asked, _ := h.state(); return asked == 2 })
	time.Sleep(200 * time.Millisecond)
	_ = c.Process.Kill()
	_ = c.Wait()
	_, got := h.state()
	verify(got, says, 14)
}

// If the reader of standard output closes the pipe, watch ends with an error.
func TestWatchPipe(t *testing.T) {
	t.Parallel()
	s := serve(t, copySite(t, "handbook"))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	var errs bytes.Buffer
	c := asProcess(t.Context(), t, "watch", s.url, "--store", filepath.Join(t.TempDir(), "m.db"), "--allow-private")
	c.Stdout, c.Stderr = w, &errs
	if err := c.Run(); err == nil || c.ProcessState.ExitCode() != 1 || !strings.Contains(errs.String(), syscall.EPIPE.Error()) {
		t.Errorf("%v:\n%s", err, errs.String())
	}
	_ = w.Close()
}

// watch obeys Retry-After, even after a restart.
func TestWatchRetryAfter(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "7200")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer site.Close()
	file := filepath.Join(t.TempDir(), "m.db")
	for i := range 2 {
		w := watch(t, site.URL, "--store", file, "--min-interval", "1s", "--max-interval", "1s")
		if i == 0 {
			eventually(t, "the pull has failed", func() bool { return strings.Contains(w.out.String(), " code=") })
			if !strings.Contains(w.out.String(), "next_pull=2h0m") {
				t.Errorf("the site is requested again too early:\n%s", w.out)
			}
		}
		before := asked.Load()
		time.Sleep(1500 * time.Millisecond)
		if w.stop(); asked.Load() != before {
			t.Errorf("run %d: %d more requests:\n%s", i, asked.Load()-before, w.out)
		}
	}
}
