package scp

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// If a file is refused, the reader tries another coding, the deltas, the snapshot and then the
// sections. At last it returns the error, with the position and the reason.
func TestReadOtherForms(t *testing.T) {
	none := time.Time{}
	cut := func(b []byte) []byte { return b[:len(b)-9] }
	for name, c := range map[string]struct {
		damage func(h *host)
		want   string
		rule   string
	}{
		"zstd cut":    {func(h *host) { h.put("/all.scp.zst", cut(h.files["/all.scp.zst"].body)) }, "200 /all.scp.gz", "format/compression"},
		"zstd absent": {func(h *host) { delete(h.files, "/all.scp.zst") }, "200 /all.scp.gz", "download/get"},
		"zstd and gzip broken": {func(h *host) {
			h.put("/all.scp.zst", []byte("\x28\xB5\x2F\xFDnonsense"))
			h.put("/all.scp.gz", cut(h.files["/all.scp.gz"].body))
		}, "200 /all.scp", "format/compression"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.offers(h.collection("all.scp", day(2, 0), none, "/a"), h.collection("all.scp.gz", day(2, 0), none, "/a"), h.collection("all.scp.zst", day(2, 0), none, "/a"))
			c.damage(h)
			f := follow(h)
			got, asked := f.read(t)
			if got != "put /a\nmark whole" || asked[len(asked)-1] != c.want {
				t.Errorf("%s\n%s", got, asked)
			}
			if len(f.notes) == 0 || f.notes[0] != "scp/"+c.rule {
				t.Errorf("notes: %v", f.notes)
			}
		})
	}
}

// If the only file is invalid, the stream returns the error and yields no page.
func TestReadRefusedFiles(t *testing.T) {
	lines := []string{
		`{"url":"https://x.test/a","title":"t","description":"d","modified":"2026-03-01T00:00:00Z","language":"en","content":[{"type":"text","text":"x"}]}`,
		`{"url":"https://x.test/b","title":"t","description":"d","modified":"2026-03-01T00:00:00Z","language":"en","content":[{"type":"text","text":"x"}]}`,
	}
	valid := string(collectionOf("all.scp", day(2, 0), time.Time{}, lines...))
	for name, c := range map[string]struct{ body, want string }{
		"wrong checksum":         {strings.Replace(valid, `"title":"t"`, `"title":"u"`, 1), "scp/checksum/matches /all.scp line 1 (/collection/checksum)"},
		"a line that is no JSON": {plainly(lines[0], `{"url":`), "scp/format/json-lines /all.scp line 3 (/url)"},
		"a missing member":       {plainly(lines[0], strings.Replace(lines[1], `"title":"t",`, "", 1)), "scp/page/required /all.scp line 3 (/title)"},
		"no metadata":            {lines[0], "scp/format/first-line /all.scp line 1 (/collection)"},
		"a higher version":       {strings.Replace(plainly(lines...), `"version":"0.1"`, `"version":"1.0"`, 1), "scp/metadata/version /all.scp line 1 (/collection/version)"},
		"of another section":     {strings.Replace(plainly(lines...), `"section":"all"`, `"section":"blog"`, 1), "scp/sitemap/section /all.scp line 1 (/collection/section)"},
		"a delta":                {strings.Replace(plainly(lines...), `"type":"snapshot"`, `"type":"delta","since":"2026-03-01T00:00:00Z"`, 1), "scp/sitemap/kind /all.scp line 1 (/collection/type)"},
		"of the future":          {strings.Replace(plainly(lines...), "2026-03-02T00:00:00Z", "2026-03-20T12:11:00Z", 1), "scp/metadata/generated-past /all.scp line 1 (/collection/generated)"},
		"a page of HTML":         {"<!DOCTYPE html><p>not found", "scp/format/first-line /all.scp line 1"},
		"empty":                  {"", "scp/format/first-line /all.scp line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.put("/all.scp", []byte(c.body))
			h.offers(h.element("all.scp", day(2, 0), time.Time{}, 2))
			f := follow(h)
			got, _ := f.read(t)
			if got != "error: "+c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if f.cursor != "" {
				t.Errorf("the cursor is %s", f.cursor)
			}
		})
	}
}

// plainly returns a file without a checksum.
func plainly(lines ...string) string {
	first := `{"collection":{"id":"i","section":"all","type":"snapshot","generated":"2026-03-02T00:00:00Z","version":"0.1"}}`
	return strings.Join(append([]string{first}, lines...), "\n")
}

// If "all" is refused, its sections are read instead, and "all" is tried again the next time.
func TestReadSectionsInsteadOfAll(t *testing.T) {
	h := newHost(t)
	blog := h.collection("blog.scp", day(2, 0), time.Time{}, "/blog/a")
	all := h.collection("all.scp", day(2, 0), time.Time{}, "/blog/a", "/b")
	good := h.files["/all.scp"]
	h.put("/all.scp", good.body[:len(good.body)-10])
	h.offers(all, blog)
	f := follow(h)
	f.expect(t, `
		put /blog/a of blog
		mark whole blog`, `
		200 /sitemap.xml
		200 /all.scp
		200 /blog.scp`)
	f.expectNotes(t, "format/json-lines")
	f.expect(t, `mark`, `
		200 /sitemap.xml
		200 /all.scp`)
	h.put("/all.scp", good.body)
	f.expect(t, `
		put /blog/a
		put /b
		mark whole`, `
		200 /sitemap.xml
		200 /all.scp`)
	f.expect(t, `mark`, `304 /sitemap.xml if new`)
}

// If a listed file does not exist, the site violates the protocol. The error is not
// ErrNotFound, because the site does have the protocol.
func TestReadNoSuchFile(t *testing.T) {
	h := newHost(t)
	h.offers(h.collection("all.scp", day(2, 0), time.Time{}, "/a"))
	delete(h.files, "/all.scp")
	f := follow(h)
	f.expect(t, `error: scp/download/get`, `
		200 /sitemap.xml
		404 /all.scp`)
}

// A refused section does not stop the others, but its error is the error of the run.
func TestReadOneOfTheSections(t *testing.T) {
	h := newHost(t)
	blog := h.collection("blog.scp", day(2, 0), time.Time{}, "/blog/a")
	docs := h.collection("docs.scp", day(2, 0), time.Time{}, "/docs/a")
	h.put("/blog.scp", []byte("{}"))
	h.offers(docs, blog)
	f := follow(h)
	f.expect(t, `
		put /docs/a of docs
		mark whole docs
		error: scp/format/first-line /blog.scp line 1 (/collection)`, `
		200 /sitemap.xml
		200 /blog.scp
		200 /docs.scp`)
}

// If a delta is refused, a newer snapshot replaces it. An older snapshot is applied without
// the delta.
func TestReadRefusedDelta(t *testing.T) {
	h := newHost(t)
	pages := make([]string, 30)
	for i := range pages {
		pages[i] = fmt.Sprintf("/a/page/with/a/long/name/%d", i)
	}
	all := h.collection("all.scp", day(2, 0), time.Time{}, pages...)
	delta := h.collection("all-delta.scp", day(3, 0), day(2, 0), "/b 3")
	good := h.files["/all-delta.scp"].body
	h.put("/all-delta.scp", append(bytes.Clone(good), "\n{}"...))
	h.offers(all, delta)
	f := follow(h)
	got, _ := f.read(t)
	if !strings.HasSuffix(got, "\nmark whole") || len(f.pages) != 30 {
		t.Error(got)
	}
	f.expectNotes(t, "page/required")
	// Without a newer snapshot, the delta remains an error until the site repairs it.
	f.expect(t, `error: scp/page/required /all-delta.scp line 3 (/url)`, `
		200 /sitemap.xml
		200 /all-delta.scp`)
	h.offers(h.collection("all-2.scp", day(4, 0), time.Time{}, append(pages, "/b 3")...), delta)
	got, asked := f.read(t)
	if !strings.HasSuffix(got, "put /b 3\nmark whole") || asked[len(asked)-1] != "200 /all-2.scp" {
		t.Error(got, asked)
	}
	f.expectNotes(t, "page/required")
}

// Collections older than the applied ones are refused, whether the sitemap or the file shows
// their age.
func TestReadReplay(t *testing.T) {
	h := newHost(t)
	f := follow(h)
	h.offers(h.collection("all.scp", day(5, 0), time.Time{}, "/a"))
	f.read(t)
	h.offers(h.collection("all.scp", day(4, 0), time.Time{}, "/a", "/withdrawn"))
	f.expect(t, `error: scp/reader/replay /all.scp`,
		`200 /sitemap.xml if new`)
	h.offers(h.element("all.scp", day(6, 0), time.Time{}, 2)) // the sitemap declares a wrong time
	f.expect(t, `error: scp/reader/replay /all.scp line 1 (/collection/generated)`, `
		200 /sitemap.xml if new
		200 /all.scp if new`)

	// A file older than the sitemap declares causes a note, and the sitemap is read again next
	// time.
	h.collection("all.scp", day(7, 0), time.Time{}, "/a")
	h.offers(h.element("all.scp", day(8, 0), time.Time{}, 1))
	f.expect(t, "put /a\nmark whole", "200 /sitemap.xml if new\n200 /all.scp if new")
	f.expectNotes(t, "sitemap/generated")
	h.collection("all.scp", day(8, 0), time.Time{}, "/a")
	f.expect(t, "put /a\nmark whole", "200 /sitemap.xml\n200 /all.scp if new")

	// Collections from the future are skipped.
	h.offers(h.element("all.scp", day(8, 0), time.Time{}, 1), h.collection("all-2.scp", day(21, 0), time.Time{}, "/b"))
	f.expect(t, "mark", "200 /sitemap.xml if new")
	f.expectNotes(t, "metadata/generated-past")
}

// An expired sitemap is requested again, bypassing all caches. If it is still the same, the
// reader only reports a note.
func TestReadExpired(t *testing.T) {
	h := newHost(t)
	h.offers(h.collection("all.scp", day(5, 0), time.Time{}, "/a")) // expires in April
	f := follow(h)
	f.read(t)
	f.expectNotes(t)
	f.now = day(20, 12).AddDate(0, 1, 0)
	f.expect(t, "mark", "304 /sitemap.xml if new no-cache")
	f.expectNotes(t, "sitemap/not-expired")

	f.cursor = ""
	f.expect(t, "put /a\nmark whole", "200 /sitemap.xml\n304 /sitemap.xml if new no-cache\n200 /all.scp")
	f.expectNotes(t, "sitemap/not-expired")

	// A cache returns an outdated sitemap.
	stale, fresh := h.files["/sitemap.xml"].body, sitemapOf(h.collection("all-2.scp", day(19, 0).AddDate(0, 1, 0), time.Time{}, "/a", "/b"))
	h.files["/sitemap.xml"] = &served{answer: func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cache-Control") == "no-cache" {
			_, _ = w.Write(fresh)
		} else {
			_, _ = w.Write(stale)
		}
	}}
	f.cursor = ""
	f.expect(t, "put /a\nput /b\nmark whole", "200 /sitemap.xml\n200 /sitemap.xml no-cache\n200 /all-2.scp")
	f.expectNotes(t)
}

// The reader yields only pages of the sitemap's site.
func TestReadPagesElsewhere(t *testing.T) {
	h := newHost(t)
	h.offers(h.collection("all.scp", day(5, 0), time.Time{}, "/a", "https://other.test/b", strings.Replace(h.url, "http:", "https:", 1)+"c", "/d"))
	f := follow(h)
	f.expect(t, `
		put /a
		skip https://other.test/b
		skip `+strings.Replace(h.url, "http:", "https:", 1)+`c
		put /d
		mark whole`, "200 /sitemap.xml\n200 /all.scp")
}

// The header fields of a file are compared with its content.
func TestReadOddHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		header []string
		rules  []string
	}{
		"as it should be":      {[]string{}, nil},
		"gzip for zstd":        {[]string{"Content-Encoding", "gzip"}, []string{"http/content-encoding"}},
		"no coding":            {[]string{"Content-Encoding", ""}, []string{"http/content-encoding"}},
		"a coding that is not": {[]string{"Content-Encoding", "br"}, []string{"http/content-encoding"}},
		"another type":         {[]string{"Content-Type", "application/octet-stream"}, []string{"http/content-type"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			e := h.collection("all.scp.zst", day(5, 0), time.Time{}, "/a")
			h.put("/all.scp.zst", h.files["/all.scp.zst"].body, c.header...)
			h.offers(e)
			f := follow(h)
			f.expect(t, "put /a\nmark whole", "200 /sitemap.xml\n200 /all.scp.zst")
			f.expectNotes(t, c.rules...)
		})
	}
	for _, c := range []struct{ name, rule string }{
		{"all.scp", "http/content-encoding"}, // compressed in transit
		{"all.scp.gz", "format/compression"}, // not compressed at all
	} {
		h := newHost(t)
		h.offers(h.collection(c.name, day(5, 0), time.Time{}, "/a"))
		body := collectionOf(c.name, day(5, 0), time.Time{}, h.lines([]string{"/a"})...)
		if c.name == "all.scp" {
			body = zipped(body)
		}
		h.put("/"+c.name, body, "Content-Encoding", "gzip")
		f := follow(h)
		f.expect(t, "put /a\nmark whole", "200 /sitemap.xml\n200 /"+c.name)
		f.expectNotes(t, c.rule)
	}
	h := newHost(t)
	e := h.collection("all.scp", day(5, 0), time.Time{}, "/a")
	h.offers(strings.Replace(strings.Replace(e, `pages="1"`, `pages="2"`, 1), `size="`, `size="9`, 1))
	h.put("/all.scp", []byte(strings.Replace(plainly(h.lines([]string{"/a"})...), "-02T", "-05T", 1)))
	f := follow(h)
	f.expect(t, "put /a\nmark whole", "200 /sitemap.xml\n200 /all.scp")
	f.expectNotes(t, "sitemap/size", "checksum/present", "sitemap/pages")
}

// A run has a quota. It applies to the sizes in the sitemap and to the bytes received.
func TestReadQuota(t *testing.T) {
	h := newHost(t)
	e := h.collection("all.scp", day(5, 0), time.Time{}, "/a", "/b", "/c")
	h.offers(e)
	f := follow(h)
	f.o.Quota = 100
	f.expect(t, "error: too-large", "200 /sitemap.xml")
	h.offers(strings.Replace(e, `size="`, `size="" x="`, 1))
	f.expect(t, "error: too-large", "200 /sitemap.xml\n200 /all.scp")
	f.o.Quota = int64(len(h.files["/all.scp"].body))
	if got, _ := f.read(t); len(f.pages) != 3 {
		t.Error(got)
	}
}
