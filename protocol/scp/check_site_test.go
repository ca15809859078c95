package scp

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// goodSite is the URL of the in-memory site of these tests.
const goodSite = "https://site.example"

// checkedAt is the current time in these tests.
var checkedAt = time.Date(2026, 1, 16, 13, 0, 0, 0, time.UTC)

// clientOf returns a client whose requests to the site are handled by h.
func clientOf(h http.Handler) *http.Client {
	return &http.Client{Transport: protocoltest.Answer(h, "site.example", "cdn.example", "x.test")}
}

// attrs contains the attributes of an element, as alternating names and values.
type attrs []string

func (a attrs) set(name, value string) attrs {
	if i := slices.Index(a, name); i >= 0 {
		a = slices.Clone(a)
		a[i+1] = value
		return a
	}
	return append(a[:len(a):len(a)], name, value)
}

func (a attrs) drop(name string) attrs {
	i := slices.Index(a, name)
	return slices.Concat(a[:i], a[i+2:])
}

func (a attrs) get(name string) string { return a[slices.Index(a, name)+1] }

// made is one collection of the site.
type made struct {
	path     string
	declared attrs  // sitemap attributes, without those computed from the file
	first    string // first line; SUM is replaced by the checksum
	lines    []string
	sum      func(text string) string                 // computes the checksum; nil = of the file without the member
	code     func(coding string, body []byte) []byte  // encodes the file; nil = with the named coding
	says     func(coding string, element attrs) attrs // edits the element; nil = unchanged
	ends     string                                   // appended to the suffix of the URL
}

// madeSite is a site that follows every rule until a fault changes it.
type madeSite struct {
	space    string
	sections []attrs
	before   string // elements before the sections
	all      []*made
	sitemap  func(string) string
	at       string // path of the sitemap
	base     string // base URL of the collections
}

const firstLine = `{"collection":{"id":"%s","section":"%s","type":"%s","generated":"%s",%s"version":"0.1","checksum":"SUM"}}`

func pageLine(path, modified, content string) string {
	return fmt.Sprintf(`{"url":"%s%s","title":"Page","description":"D","author":"A. Writer","published":"2025-12-24T01:02:03.5+01:00","modified":"%s","language":"en-GB","canonical":"%s/c","schema":{"@type":"Article"},"content":[%s]}`,
		goodSite, path, modified, goodSite, content)
}

// everyBlock has a block of each type, with all of its members.
const everyBlock = `{"type":"text","text":"Text"},{"type":"heading","level":2,"text":"Heading"},` +
	`{"type":"link","url":"https://other.example/","text":"Link","rel":["nofollow"]},{"type":"image","url":"https://site.example/i.png","alt":"Alt"},` +
	`{"type":"list","ordered":false,"items":["one","two"]},{"type":"code","language":"go","code":"x()"},{"type":"table","rows":[["a","b"],["1","2"]]},` +
	`{"type":"quote","text":"Quote","citation":"Somebody"},` +
	`{"type":"video","name":"Video","url":[{"href":"https://site.example/v.mp4","mediaType":"video/mp4","rel":"alternate"}],"duration":"PT5M20S","width":19,"height":1e1,` +
	`"icon":{"type":"Image","url":"https://site.example/t.jpg"},"summary":"S","captions":[{"language":"en","url":"https://site.example/c.vtt","label":"E"}],` +
	`"chapters":[{"time":0,"title":"Start"}],"transcript":"T"},` +
	`{"type":"audio","name":"Audio","url":"https://site.example/a.mp3","duration":"PT1H","attributedTo":{"type":"Person","name":"P"},"partOf":"Season","chapters":[{"time":60,"title":"C"}],"extra":null}`

const plainBlock = `{"type":"text","text":"Changed"}`

func good() *madeSite {
	collection := func(section, kind, generated, since string, lines ...string) *made {
		declared, more := attrs{"section", section, "type", kind, "generated", generated, "expires", "2026-01-18T00:00:00Z"}, ""
		if kind == "delta" {
			declared = attrs{"section", section, "period", since[:10], "generated", generated, "expires", "2026-01-18T00:00:00Z", "since", since}
			more = `"since":"` + since + `",`
		}
		id := section + "-" + kind + "-" + generated[8:10]
		return &made{
			path: "/scp/" + id, declared: declared, lines: lines,
			first: fmt.Sprintf(firstLine, id, section, kind, generated, more),
		}
	}
	return &madeSite{
		space: namespace, at: "/sitemap.xml", base: goodSite,
		before: "<scp:version>0.1</scp:version>\n<scp:compression>zstd,gzip</scp:compression>\n",
		sections: []attrs{
			{"name", "all", "updateFreq", "daily", "pages", "~3"},
			{"name", "blog", "updateFreq", "daily", "pages", "3"},
		},
		all: []*made{
			collection("all", "snapshot", "2026-01-15T00:00:00Z", "", pageLine("/", "2026-01-10T00:00:00Z", everyBlock),
				pageLine("/one/", "2026-01-11T00:00:00Z", everyBlock), pageLine("/two/", "2026-01-12T00:00:00Z", plainBlock)),
			collection("blog", "snapshot", "2026-01-13T00:00:00Z", "", pageLine("/one/", "2026-01-11T00:00:00Z", plainBlock)),
			collection("all", "delta", "2026-01-15T12:00:00Z", "2026-01-15T00:00:00Z", pageLine("/one/", "2026-01-15T10:00:00Z", plainBlock)),
			collection("all", "delta", "2026-01-16T12:00:00Z", "2026-01-16T00:00:00Z", pageLine("/one/", "2026-01-16T10:00:00Z", plainBlock), pageLine("/three/", "2026-01-16T11:00:00Z", plainBlock)),
		},
	}
}

// servedFile is a file as served.
type servedFile struct {
	body      []byte
	coding    string
	sum       string
	generated time.Time
	delta     bool
}

func cutSum(text string) string {
	return hashPrefix + canon.SHA256Hex([]byte(strings.Replace(text, `,"checksum":"SUM"`, "", 1)))
}

// handler returns a handler that serves the site.
func (s *madeSite) handler() http.Handler {
	files := map[string]servedFile{}
	var elements strings.Builder
	elements.WriteString(s.before)
	write := func(name string, a attrs) {
		elements.WriteString("<scp:" + name)
		for i := 0; i < len(a); i += 2 {
			fmt.Fprintf(&elements, ` %s="%s"`, a[i], a[i+1])
		}
		elements.WriteString("/>\n")
	}
	for _, a := range s.sections {
		write("section", a)
	}
	for _, m := range s.all {
		text := m.first + "\n" + strings.Join(m.lines, "\n") + "\n"
		f := servedFile{sum: cutSum(text), delta: slices.Contains(m.declared, "since")}
		if m.sum != nil {
			f.sum = m.sum(text)
		}
		var err error
		if f.generated, err = time.Parse(time.RFC3339, m.declared.get("generated")); err != nil {
			panic(err)
		}
		text = strings.Replace(text, "SUM", f.sum, 1)
		for _, coding := range codings {
			f := f
			f.coding, f.body = coding, coded(suffixes[coding], []byte(text))
			if m.code != nil {
				f.body = m.code(coding, []byte(text))
			}
			path := m.path + suffixes[coding] + m.ends
			files[path] = f
			a := slices.Concat(m.declared, attrs{"url", s.base + path, "pages", strconv.Itoa(len(m.lines)), "size", strconv.Itoa(len(f.body))})
			if m.says != nil {
				a = m.says(coding, a)
			}
			name := "collection"
			if f.delta {
				name = "delta"
			}
			write(name, a)
		}
	}
	list := `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:scp="` + s.space + "\">\n" + elements.String() + "<url><loc>" + goodSite + "/</loc></url>\n</urlset>\n"
	if s.sitemap != nil {
		list = s.sitemap(list)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := files[r.URL.Path]
		switch {
		case ok:
			serveFile(w, r, f)
		case r.URL.Path == "/robots.txt":
			fmt.Fprintf(w, "User-agent: *\nDisallow: /no\nSitemap: %s%s\n", goodSite, s.at)
		case r.URL.Path == s.at:
			w.Header().Set("Content-Type", "application/xml")
			_, _ = w.Write([]byte(list))
		case strings.HasSuffix(r.URL.Path, "/"):
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<p>A page"))
		default:
			http.NotFound(w, r)
		}
	})
}

func serveFile(w http.ResponseWriter, r *http.Request, f servedFile) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("ETag", `"`+f.sum+`"`)
	h.Set("Content-Length", strconv.Itoa(len(f.body)))
	h.Set("Cache-Control", "public, max-age=86400, stale-while-revalidate=3600")
	if f.delta {
		h.Set("Cache-Control", "public, max-age=3600, must-revalidate")
	}
	if f.coding != "" {
		h.Set("Content-Encoding", f.coding)
	}
	http.ServeContent(w, r, "", f.generated, bytes.NewReader(f.body))
}

// breaker wraps the handler of a valid site and adds one fault.
type breaker = protocoltest.Breaker

// onFile edits the requests for files whose path contains part, and their responses.
func onFile(part string, before func(r *http.Request), after func(r *http.Request, rec *httptest.ResponseRecorder)) breaker {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.URL.Path, part) {
				h.ServeHTTP(w, r)
				return
			}
			r = r.Clone(r.Context())
			if before != nil {
				before(r)
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			if after != nil {
				after(r, rec)
			}
			maps.Copy(w.Header(), rec.Header())
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
		})
	}
}

// setField sets a header field of responses with status 200, or removes it if value is empty.
func setField(part, name, value string) breaker {
	return onFile(part, nil, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		if rec.Code != http.StatusOK {
			return
		}
		rec.Header().Del(name)
		if value != "" {
			rec.Header().Set(name, value)
		}
	})
}

// ignoring removes the conditional header fields of the requests that conditions accepts.
func ignoring(conditions func(h http.Header) bool) breaker {
	return onFile("/scp/", func(r *http.Request) {
		if conditions(r.Header) {
			r.Header.Del("If-None-Match")
			r.Header.Del("If-Modified-Since")
		}
	}, nil)
}
