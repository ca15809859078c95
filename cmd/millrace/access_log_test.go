package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/report"
)

// loggingSite is a server that writes an access log, serves the pages itself, and passes requests for
// documents on to millrace.
func loggingSite(t *testing.T, log string, to *url.URL, pages http.Handler) *httptest.Server {
	t.Helper()
	documents := httputil.NewSingleHostReverseProxy(to)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &recordingWriter{ResponseWriter: w, status: http.StatusOK}
		if strings.HasSuffix(r.URL.Path, "llm.json") || r.URL.Path == "/llms.txt" || strings.Contains(r.Header.Get("Accept"), "text/markdown") {
			documents.ServeHTTP(rec, r)
		} else {
			pages.ServeHTTP(rec, r)
		}
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = fmt.Fprintf(f, "127.0.0.1 - - [%s] \"%s %s %s\" %d %d \"-\" \"%s\"\n", time.Now().Format("02/Jan/2006:15:04:05 -0700"),
			r.Method, r.URL.RequestURI(), r.Proto, rec.status, rec.bytes, r.UserAgent())
		_ = f.Close()
	}))
	t.Cleanup(s.Close)
	return s
}

type recordingWriter struct {
	http.ResponseWriter
	status, bytes int
}

func (w *recordingWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *recordingWriter) Write(b []byte) (int, error) {
	w.bytes += len(b)
	return w.ResponseWriter.Write(b)
}

// The site's access log and millrace's own records together count each request once, even with a
// rotation and restarts.
func TestServeAccessLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, file := filepath.Join(dir, "access.log"), filepath.Join(dir, "site.db")
	write(t, log, "an old line\n")
	folder := copySite(t, "handbook")
	args := []string{folder, "--store", file, "--access-log", log, "--place", "alongside"}
	s := serve(t, args...)
	to, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	pages := http.FileServer(http.Dir(folder))
	site := loggingSite(t, log, to, pages)
	const agent = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"
	requests := 0
	request := func(path string, header ...string) {
		t.Helper()
		requests++
		get(t, site.URL+path, append([]string{"User-Agent", agent}, header...)...)
	}
	all := func() {
		t.Helper()
		for _, path := range []string{"/", "/llms.txt", "/llm.json", "/no-such-page", "/"} {
			request(path)
		}
		request("/", "Accept", "text/markdown")
	}
	got := func() (int64, string) { return servedCounts(t, file) }

	counted := func() {
		t.Helper()
		eventually(t, fmt.Sprintf("%d requests are counted", requests), func() bool { n, _ := got(); return n >= int64(requests) })
	}
	eventually(t, "the log is followed", func() bool {
		request("/")
		n, _ := got()
		return n > 0
	})
	for n := int64(-1); n != int64(requests); time.Sleep(2 * time.Second) { // until all requests that are followed are counted
		n = int64(requests)
		now, _ := got()
		requests = int(now) // without the requests before millrace followed the log
	}
	all()
	counted()
	if err := os.Rename(log, log+".1"); err != nil {
		t.Fatal(err)
	}
	all()
	counted()
	if code := s.stop(); code != exitGood {
		t.Fatal(code)
	}
	request("/") // while millrace is not running
	s = serve(t, args...)
	if to, err = url.Parse(s.url); err != nil {
		t.Fatal(err)
	}
	site = loggingSite(t, log, to, pages)
	all()
	counted()
	time.Sleep(2500 * time.Millisecond) // no further request may be counted
	if n, text := got(); n != int64(requests) {
		t.Errorf("%d requests, want %d: %s", n, requests, text)
	}
}

func TestServeAccessLogErrors(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	for _, c := range [][]string{
		{"--events 0", "--access-log", "a.log", "--events", "0"},
		{"--origin", "--access-log", "a.log", "--origin", "https://example.com/"},
		{"not a regular file", "--access-log", dir, "--store", filepath.Join(t.TempDir(), "a.db")},
	} {
		if code, _, errs := command(t, nil, append([]string{"serve", dir, "--listen", "127.0.0.1:0"}, c[1:]...)...); code == exitGood || !strings.Contains(errs, c[0]) {
			t.Errorf("%v: exit %d, %s", c[1:], code, errs)
		}
	}
}

// servedCounts returns the requests that the report of a store counts: in total, and by protocol
// as text.
func servedCounts(t *testing.T, file string) (n int64, protocols string) {
	t.Helper()
	var r report.Report
	_, out, errs := command(t, nil, "report", "--store", file, "--json")
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err, errs)
	}
	for _, served := range r.Served {
		n += served.Total.Requests
		for _, p := range served.Protocols {
			protocols += fmt.Sprintf("%s %d ", p.Protocol, p.Requests)
		}
	}
	return n, protocols
}
