package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestJunction(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.WriteHeader(http.StatusOK)
		for range 3 { // in chunks, whose framing is no body
			_, _ = io.WriteString(w, strings.Repeat("x", 100))
			w.(http.Flusher).Flush()
		}
	}))
	defer srv.Close()
	j, err := newJunction(t.Context())
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
		t.Errorf("%d bytes are no bodies, want %d", c.headers, want)
	}
}

func TestManualSite(t *testing.T) {
	manual, folder := t.TempDir(), filepath.Join(t.TempDir(), "site")
	const n = 500
	for i := range n {
		prose := strings.Repeat(fmt.Sprintf("<p>Paragraph of page %d. %s</p>\n", i, strings.Repeat("It says something about tables and their rows. ", 3)), 5)
		html := fmt.Sprintf(`<html><head><title>Page %d</title></head><body id="x"><div class="titlepage"><div><div><h2 class="title">Page %d</h2></div></div></div>%s<div class="navfooter"></div></body></html>`, i, i, prose)
		if err := os.WriteFile(filepath.Join(manual, fmt.Sprintf("page-%d.html", i)), []byte(html), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := newManualSite(manual, folder)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := s.write(at); err != nil {
		t.Fatal(err)
	}
	d, err := s.next(false)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.write(at.AddDate(0, 0, 1)); err != nil {
		t.Fatal(err)
	}
	if len(d.edited) != 5 || len(d.added) != 1 || len(d.removed) != 0 {
		t.Fatalf("the day has brought %+v", d)
	}
	changed := 0
	for name := range s.pages {
		info, err := os.Stat(filepath.Join(folder, name))
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
	if !strings.Contains(s.shown[d.edited[0]], d.added[0]) {
		t.Error("nothing leads to the page that was added")
	}
	if d, err = s.next(true); err != nil {
		t.Fatal(err)
	}
	if err := s.write(at.AddDate(0, 0, 2)); err != nil {
		t.Fatal(err)
	}
	if len(d.removed) != 1 || s.shown[d.removed[0]] != "" {
		t.Errorf("the second day has removed %q", d.removed)
	}
	for name, html := range s.shown {
		if !strings.Contains(html, `id="sitebar"`) {
			t.Fatalf("%s has the template of yesterday", name)
		}
	}
}
