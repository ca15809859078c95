package scp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// day returns a time in March 2026. The reader's tests run on the 20th, at noon.
func day(d, hour int) time.Time { return time.Date(2026, 3, d, hour, 0, 0, 0, time.UTC) }

// host is a server with files that the tests create. It supports conditional and range
// requests, like a file server.
type host struct {
	t     *testing.T
	url   string // ends with "/"
	mu    sync.Mutex
	files map[string]*served
	log   []string
	busy  sync.WaitGroup // requests that are not in the log yet

	conditions string                                               // conditional header fields of the last request
	before     func(http.ResponseWriter, *http.Request) (done bool) // may send the response, or change the request
}

// served is one file. If body is nil, the file does not exist.
type served struct {
	body   []byte
	header http.Header
	answer http.HandlerFunc // used instead of body
}

func newHost(t *testing.T) *host {
	h := &host{t: t, files: map[string]*served{}}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	h.url = srv.URL + "/"
	return h
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.busy.Add(1)
	defer h.busy.Done()
	out := &answered{ResponseWriter: w, code: http.StatusOK}
	done := h.before != nil && h.before(out, r)
	broken := done && (out.code == http.StatusOK || out.code == http.StatusPartialContent)
	h.mu.Lock()
	f := h.files[r.URL.Path]
	h.mu.Unlock()
	switch {
	case done:
	case f == nil:
		http.NotFound(out, r)
	case f.answer != nil:
		f.answer(out, r)
	default:
		w.Header().Set("ETag", tagOf(f.body))
		for k, v := range f.header {
			w.Header()[k] = v
		}
		if w.Header().Get("ETag") == "" {
			w.Header().Del("ETag")
		}
		http.ServeContent(out, r, "", time.Time{}, bytes.NewReader(f.body))
	}
	line := fmt.Sprintf("%d %s", out.code, r.URL.Path)
	if r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Modified-Since") != "" {
		line += " if new"
	}
	for _, name := range []string{"Range", "Cache-Control"} {
		if v := r.Header.Get(name); v != "" {
			line += " " + v
		}
	}
	if r.URL.Path == "/robots.txt" {
		return
	}
	h.mu.Lock()
	h.log = append(h.log, line)
	h.conditions = r.Header.Get("If-None-Match") + " " + r.Header.Get("If-Modified-Since") + " " + r.Header.Get("If-Range")
	h.mu.Unlock()
	if broken {
		panic(http.ErrAbortHandler)
	}
}

// tagOf returns the entity tag of a file on a host.
func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:4]) + `"`
}

type answered struct {
	http.ResponseWriter
	code int
}

func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answered) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

// put creates a file. header contains alternating names and values.
func (h *host) put(path string, body []byte, header ...string) *served {
	f := &served{body: body, header: http.Header{"Content-Type": {contentType}}}
	switch {
	case strings.HasSuffix(path, ".zst"):
		f.header.Set("Content-Encoding", "zstd")
	case strings.HasSuffix(path, ".gz"):
		f.header.Set("Content-Encoding", "gzip")
	case strings.HasSuffix(path, ".xml"):
		f.header.Set("Content-Type", "application/xml")
	}
	for i := 0; i < len(header); i += 2 {
		f.header.Set(header[i], header[i+1])
	}
	h.mu.Lock()
	h.files[path] = f
	h.mu.Unlock()
	return f
}

// offers writes the sitemap with these SCP elements.
func (h *host) offers(elements ...string) {
	h.put("/sitemap.xml", sitemapOf(elements...))
}

func sitemapOf(elements ...string) []byte {
	return []byte(`<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:scp="` + namespace + `">
<scp:version>0.1</scp:version><scp:compression>zstd,gzip</scp:compression>
` + strings.Join(elements, "\n") + `
<url><loc>https://example.com/</loc></url></urlset>`)
}

// collection creates a file and returns its sitemap element. The name defines the section, the
// type and the coding: "all.scp", "all-delta.scp.gz", "blog-delta-2.scp.zst".
func (h *host) collection(name string, generated, since time.Time, pages ...string) string {
	h.put("/"+name, coded(name, collectionOf(name, generated, since, h.lines(pages)...)))
	return h.element(name, generated, since, len(pages))
}

func isDelta(name string) bool { return strings.Contains(name, "-delta") }

func sectionName(name string) string {
	name, _, _ = strings.Cut(name, ".")
	name, _, _ = strings.Cut(name, "-")
	return name
}

// element returns the sitemap element of a file, which need not exist.
func (h *host) element(name string, generated, since time.Time, pages int) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	size := 0
	if f := h.files["/"+name]; f != nil {
		size = len(f.body)
	}
	common := fmt.Sprintf(`section="%s" url="/%s" generated="%s" expires="%s" pages="%d" size="%d"`,
		sectionName(name), name, stampOf(generated), stampOf(generated.AddDate(0, 1, 0)), pages, size)
	if isDelta(name) {
		return `<scp:delta period="x" since="` + stampOf(since) + `" ` + common + `/>`
	}
	return `<scp:collection type="snapshot" ` + common + `/>`
}

// lines returns the lines of pages, each given as "/path" or "/path title". If the title is a
// number, it is the day on which the page was modified.
func (h *host) lines(pages []string) (out []string) {
	for _, s := range pages {
		path, title, _ := strings.Cut(s, " ")
		d := 1
		_, _ = fmt.Sscan(title, &d)
		u := strings.TrimSuffix(h.url, "/") + path
		if strings.Contains(path, "://") {
			u = path
		}
		w := &page{URL: u, Title: "title " + title, Description: "d", Modified: day(d, 0), Language: "en", Content: []block{{Type: textBlock, Text: "text of " + s}}}
		out = append(out, strings.TrimSuffix(string(appendPage(nil, w)), "\n"))
	}
	return out
}

// collectionOf returns the bytes of an uncompressed file.
func collectionOf(name string, generated, since time.Time, lines ...string) []byte {
	m := Metadata{ID: strings.NewReplacer(".", "-").Replace(name), Section: sectionName(name), Type: "snapshot", Generated: generated, Version: version}
	if isDelta(name) {
		m.Type, m.Since = "delta", since
	}
	first, digits := m.line(false)
	rest := strings.Join(lines, "\n")
	sum := sha256.New()
	sum.Write(cutChecksum(first))
	_, _ = io.WriteString(sum, rest)
	copy(first[digits:], hex.EncodeToString(sum.Sum(nil)))
	return append(first, rest...)
}

// coded compresses b with the coding that the file name's suffix names.
func coded(name string, b []byte) []byte {
	switch {
	case strings.HasSuffix(name, ".zst"):
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err)
		}
		return w.EncodeAll(b, nil)
	case strings.HasSuffix(name, ".gz"):
		return zipped(b)
	}
	return b
}

// follower reads a host repeatedly, like a mirror.
type follower struct {
	h      *host
	o      ReaderOptions
	client *http.Client
	now    time.Time
	cursor millrace.Cursor
	pages  map[string]copied
	notes  []string
	mu     sync.Mutex
}

type copied struct {
	section, title string
	modified       time.Time
}

func follow(h *host) *follower {
	f := &follower{h: h, now: day(20, 12), pages: map[string]copied{}}
	f.o.Now = func() time.Time { return f.now }
	f.o.Note = func(n protocol.Note) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !known(n.Rule) {
			h.t.Errorf("%q is not a rule of the checker: %s", n.Rule, n.Text)
		}
		f.notes = append(f.notes, n.Rule)
	}
	return f
}

// known reports whether a note has the ID of a checker rule or is one of the reader's own
// notes.
func known(rule string) bool {
	switch strings.TrimPrefix(rule, Name+"/") {
	case noteRefused, noteReplay, noteHost, noteChanged, noteMissed, noteSection:
		return true
	}
	return slices.ContainsFunc(Rules(), func(r check.Rule) bool { return r.ID == rule })
}

// read reads the stream. It returns the changes in short form, and the requests.
func (f *follower) read(t *testing.T) (stream string, requests []string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	f.h.mu.Lock()
	f.h.log = nil
	f.h.mu.Unlock()
	f.notes = nil
	client := f.client
	if client == nil {
		client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	src := NewReader(client, f.h.url+"some/page", &f.o)
	var out []string
	named := map[string]bool{}
	var complete []millrace.Checkpoint
	var last millrace.Cursor
	failed := false
	local := func(u string) string { return strings.Replace(u, f.h.url, "/", 1) }
	for c, err := range src.Changes(t.Context(), f.cursor) {
		var skip *millrace.SkipError
		switch {
		case errors.As(err, &skip):
			named[skip.URL] = true
			out = append(out, "skip "+local(skip.URL))
		case err != nil:
			failed = true
			out = append(out, "error: "+strings.ReplaceAll(protocoltest.ErrorAt(err), f.h.url, "/"))
			if fatal(t.Context(), err) {
				t.Errorf("the error wraps no sentinel: %v", err)
			}
		case c.Kind == millrace.Put:
			if c.Page == nil || c.Version == "" || c.URL != c.Page.URL {
				t.Errorf("a put without a page or a version: %+v", c)
			}
			named[c.URL] = true
			word := "put"
			if c.Newer {
				word = "newer"
			}
			text := strings.TrimSpace(word + " " + local(c.URL) + " " + strings.TrimPrefix(c.Page.Title, "title "))
			if c.Section != "" {
				text += " of " + c.Section
			}
			have, ok := f.pages[c.URL]
			if ok && c.Newer && !c.Page.Modified.After(have.modified) {
				text += " (no news)"
				have.section = c.Section
			} else {
				have = copied{c.Section, c.Page.Title, c.Page.Modified}
			}
			f.pages[c.URL] = have
			out = append(out, text)
		case c.Kind == millrace.KindCheckpoint:
			text := "mark"
			if c.Checkpoint.Complete {
				text += " whole " + c.Checkpoint.Section
				complete = append(complete, *c.Checkpoint)
			}
			out = append(out, strings.TrimSpace(text))
			last = c.Checkpoint.Cursor
		}
	}
	if !failed {
		f.cursor = last
		for _, m := range complete {
			for u, p := range f.pages {
				if !named[u] && (m.Section == "" || m.Section == p.section) {
					delete(f.pages, u)
				}
			}
		}
	}
	f.h.busy.Wait() // a client may receive a response before its request is logged
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	return strings.Join(out, "\n"), f.h.log
}

// expect reads the stream, and compares the changes and the requests.
func (f *follower) expect(t *testing.T, stream, requests string) {
	t.Helper()
	got, asked := f.read(t)
	if d := cmp.Diff(strings.Split(trim(stream), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("the stream (-want +got):\n%s", d)
	}
	if d := cmp.Diff(strings.Split(trim(requests), "\n"), asked); d != "" {
		t.Errorf("the requests (-want +got):\n%s", d)
	}
}

// trim removes the indentation of a multi-line string.
func trim(s string) string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimSpace(s), "\n") {
		out = append(out, strings.TrimSpace(line))
	}
	return strings.Join(out, "\n")
}

// expectNotes compares the rules of the notes of the last read.
func (f *follower) expectNotes(t *testing.T, rules ...string) {
	t.Helper()
	var want []string
	for _, r := range rules {
		want = append(want, Name+"/"+r)
	}
	if d := cmp.Diff(want, f.notes); d != "" {
		t.Errorf("the notes (-want +got):\n%s", d)
	}
}
