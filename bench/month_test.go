package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/testkit"
)

func TestJunction(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.WriteHeader(http.StatusOK)
		for range 3 { // chunked, whose framing does not count as body
			_, _ = io.WriteString(w, strings.Repeat("x", 100))
			w.(http.Flusher).Flush()
		}
	}))
	defer srv.Close()
	j, err := newRelay(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.listener.Close() }()
	c, err := j.during(strings.TrimPrefix(srv.URL, "http://"), func() error {
		client := &http.Client{Transport: new(http.Transport)}
		defer client.CloseIdleConnections()
		for _, tag := range []string{"", `"a"`} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+j.listener.Addr().String()+"/dir/all-0123.scp.zst?since=1", nil)
			if err != nil {
				return err
			}
			req.Header["User-Agent"] = nil
			if tag != "" {
				req.Header.Set("If-None-Match", tag)
			}
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.requests != 2 || c.bodies != 300 {
		t.Errorf("%d requests, %d bytes of bodies, want 2 and 300", c.requests, c.bodies)
	}
	p := c.parts["/dir/all-*.scp.zst?since"]
	if p == nil || p.requests != 2 || p.unmodified != 1 || p.bodies != 300 || p.headers != c.headers {
		t.Errorf("of the parts %+v, %d bytes of headers in all", p, c.headers)
	}
	date := time.Now().UTC().Format(http.TimeFormat)
	sent := fmt.Sprintf("GET /dir/all-0123.scp.zst?since=1 HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: gzip\r\n\r\n", j.listener.Addr())
	again := strings.TrimSuffix(sent, "Accept-Encoding: gzip\r\n\r\n") + "If-None-Match: \"a\"\r\nAccept-Encoding: gzip\r\n\r\n"
	first := "HTTP/1.1 200 OK\r\nDate: " + date + "\r\nContent-Type: text/plain; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("64\r\n\r\n", 3) + "0\r\n\r\n"
	second := "HTTP/1.1 304 Not Modified\r\nDate: " + date + "\r\n\r\n"
	if want := int64(len(sent) + len(again) + len(first) + len(second)); c.headers != want {
		t.Errorf("%d bytes besides bodies, want %d", c.headers, want)
	}
}

func TestManualSite(t *testing.T) {
	manual := t.TempDir()
	const n = 500
	for i := range n {
		prose := strings.Repeat(fmt.Sprintf("<p>Paragraph of page %d. %s</p>\n", i, strings.Repeat("It says something about tables and their rows. ", 3)), 5)
		html := fmt.Sprintf(`<html><head><title>Page %d</title></head><body id="x"><div class="titlepage"><div><div><h2 class="title">Page %d</h2></div></div></div>%s<div class="navfooter"></div></body></html>`, i, i, prose)
		if err := os.WriteFile(filepath.Join(manual, fmt.Sprintf("page-%d.html", i)), []byte(html), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := newManualSite(manual, []int{2})
	if err != nil {
		t.Fatal(err)
	}
	m := &month{folder: filepath.Join(t.TempDir(), "site")}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	write := func(day int) siteState {
		t.Helper()
		now, err := s.state()
		if err == nil {
			_, err = m.write(now.files, at.AddDate(0, 0, day))
		}
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	write(0)
	d, err := s.next(1)
	if err != nil {
		t.Fatal(err)
	}
	now := write(1)
	if len(d.edited) != 5 || len(d.added) != 1 || len(d.removed) != 0 {
		t.Fatalf("changes of the day: %+v", d)
	}
	changed := 0
	for name := range s.pages {
		info, err := os.Stat(filepath.Join(m.folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.ModTime().After(at) {
			changed++
		}
	}
	if changed != len(d.changed()) {
		t.Errorf("%d files have changed, want %d", changed, len(d.changed()))
	}
	if !strings.Contains(now.html[d.edited[0]], d.added[0]) {
		t.Error("no link to the added page")
	}
	if d, err = s.next(2); err != nil {
		t.Fatal(err)
	}
	now = write(2)
	if len(d.removed) != 1 || now.html[d.removed[0]] != "" {
		t.Fatalf("removed on the second day: %q", d.removed)
	}
	if _, err := os.Stat(filepath.Join(m.folder, d.removed[0])); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of the removed page: %v", err)
	}
	for name, html := range now.html {
		if !strings.Contains(html, `id="sitebar"`) {
			t.Fatalf("%s has the template of yesterday", name)
		}
	}
}

func TestSitemapCrawler(t *testing.T) {
	pages := map[string]string{"index.html": "home", "a.html": "first", "b.html": "second"}
	shown := func(template string) map[string]string {
		s := map[string]string{}
		for name, words := range pages {
			s[name] = "<html>" + template + words + "</html>"
		}
		return s
	}
	site := new(pageServer)
	asked := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path]++
		site.ServeHTTP(w, r)
	}))
	defer srv.Close()
	site.base = srv.URL + "/"
	c := &pageCrawler{base: site.base, conditional: true, sitemap: true}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for day, d := range []struct {
		change   func()
		template string
		pages    int // requested
	}{
		{func() {}, "", 3},
		{func() {}, "", 0},
		{func() { pages["a.html"] = "changed" }, "", 1},
		{func() {}, "bar", 0}, // a new template is not a change
		{func() { delete(pages, "b.html") }, "bar", 0},
		{func() { pages["c.html"] = "third" }, "bar", 1},
	} {
		d.change()
		if err := site.take(shown(d.template), pages, at.AddDate(0, 0, day)); err != nil {
			t.Fatal(err)
		}
		clear(asked)
		if err := c.round(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for path, times := range asked {
			if path != sitemapPath {
				n += times
			}
		}
		if n != d.pages || asked[sitemapPath] != 1 {
			t.Errorf("day %d: asked for %v", day, asked)
		}
		if wrong, left := c.compare(site); wrong > 0 || len(left) > 0 {
			t.Errorf("day %d: %d wrong pages, left %q", day, wrong, left)
		}
	}
}

func TestPlainTableInC(t *testing.T) {
	if _, err := exec.LookPath("sqlite3"); err != nil {
		testkit.Missing(t, "sqlite3")
	}
	p, err := newPlain(t.Context(), filepath.Join(t.TempDir(), "plain.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.db.Close() }()
	for i := range 100 {
		if _, err := p.db.ExecContext(t.Context(), "INSERT INTO t VALUES (?, '', 'the wheel turns')", fmt.Sprint("page ", i)); err != nil {
			t.Fatal(err)
		}
	}
	spent, err := p.inC(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	took, err := p.askInC(t.Context(), []string{"wheel", "page 7"})
	if err != nil {
		t.Fatal(err)
	}
	if spent <= 0 || len(took) != 2 {
		t.Errorf("filling took %v s, questions %v ms", spent, took)
	}
}

func TestDuel(t *testing.T) {
	turn := func(units float64, passed, spent time.Duration) side {
		return func(context.Context) (work, error) { return work{units, passed, spent}, nil }
	}
	s, err := duel(t.Context(), 5, turn(100, time.Second, 200*time.Millisecond), turn(300, 2*time.Second, 300*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if s.Peer != (figures{100, 0.002}) || s.Ours != (figures{150, 0.001}) || s.Rate != 1.5 || s.Cost != 2 {
		t.Errorf("%+v", s)
	}
	if _, err := duel(t.Context(), 1, turn(100, time.Second, 1), turn(0, time.Second, 1)); err == nil {
		t.Error("a turn that did nothing counts")
	}
}

func TestProcessorOf(t *testing.T) {
	before, err := processorOf(0)
	if err != nil {
		t.Fatal(err)
	}
	w, err := during(1, func() error {
		for end := processorTime() + 0.05; processorTime() < end; {
			continue
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	after, err := processorOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if w.spent < 50*time.Millisecond || after-before < w.spent {
		t.Errorf("%v of processor time, %v by the call", after-before, w.spent)
	}
}
