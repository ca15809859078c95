package scp

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/millrace/millrace/internal/canon"
)

// checkFault is one fault of a valid site, in its content or its responses.
type checkFault struct {
	rule, name string // the rule's ID without the protocol
	make       func(s *madeSite)
	breaks     breaker
}

// onLine replaces the first occurrence of old in a line of the examined snapshot.
func onLine(n int, old, new string) func(*madeSite) {
	return func(s *madeSite) { edit(&s.all[0].lines[n], old, new) }
}

func edit(line *string, old, new string) {
	if !strings.Contains(*line, old) {
		panic(old + " is not in " + *line)
	}
	*line = strings.Replace(*line, old, new, 1)
}

// onFirst edits the metadata line of a collection.
func onFirst(n int, old, new string) func(*madeSite) {
	return func(s *madeSite) { edit(&s.all[n].first, old, new) }
}

// saying edits the sitemap elements of a collection.
func saying(n int, f func(a attrs) attrs) func(*madeSite) {
	return func(s *madeSite) {
		s.all[n].says = func(_ string, a attrs) attrs { return f(a) }
	}
}

func setting(n int, name, value string) func(*madeSite) {
	return saying(n, func(a attrs) attrs { return a.set(name, value) })
}

// coding edits the bytes of the snapshot in one coding.
func coding(of string, f func(b []byte, text []byte) []byte) func(*madeSite) {
	return func(s *madeSite) {
		s.all[0].code = func(coding string, text []byte) []byte {
			b := coded(suffixes[coding], text)
			if coding == of {
				b = f(b, text)
			}
			return b
		}
	}
}

func onSitemap(old, new string) func(*madeSite) {
	return func(s *madeSite) {
		s.sitemap = func(text string) string {
			edit(&text, old, new)
			return text
		}
	}
}

func onSum(f func(text string) string) func(*madeSite) {
	return func(s *madeSite) { s.all[0].sum = f }
}

// noise returns text that does not compress well.
func noise(n int) string {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return base64.StdEncoding.EncodeToString(b)
}

// checkFaults contains at least one fault for every rule. Each fault violates only that rule.
var checkFaults = []checkFault{
	{rule: "format/extension", name: "none", make: func(s *madeSite) { s.all[1].ends = ".jsonl" }},
	{rule: "format/extension", name: "of a file that is looked into", make: func(s *madeSite) { s.all[2].ends = "x" }},
	{rule: "format/compression", name: "cut", make: coding("zstd", func(b, _ []byte) []byte { return b[:len(b)-9] })},
	{rule: "format/compression", name: "cut gzip", make: coding("gzip", func(b, _ []byte) []byte { return b[:len(b)-9] })},
	{rule: "format/compression", name: "data behind it", make: coding("gzip", func(b, _ []byte) []byte { return append(b, "tail"...) })},
	{rule: "format/compression", name: "not at all", make: coding("gzip", func(_, text []byte) []byte { return text })},
	{rule: "format/first-line", name: "a page", make: onFirst(0, `{"collection":{`, `{"collected":{`)},
	{rule: "format/first-line", name: "an array", make: onFirst(0, `{"collection"`, `[{"collection"`)},
	{rule: "format/json-lines", name: "a comma", make: onLine(1, `"title":"Page",`, `"title":"Page",,`)},
	{rule: "format/json-lines", name: "two values", make: onLine(1, `]}`, `]}}`)},
	{rule: "format/json-lines", name: "an array", make: func(s *madeSite) { s.all[0].lines[1] = "[]" }},
	{rule: "format/json-lines", name: "a blank line", make: func(s *madeSite) { s.all[0].lines[1] = " " }},
	{rule: "format/json-lines", name: "latin-1", make: onLine(1, "Page", "P\xe1ge")},
	{rule: "format/json-lines", name: "byte order mark", make: onFirst(0, "{", "\uFEFF{")},
	{rule: "format/pages", name: "metadata again", make: func(s *madeSite) { s.all[0].lines[2] = s.all[0].first }},
	{rule: "format/unique", name: "a page twice", make: onLine(1, goodSite+"/one/", goodSite+"/")},

	{rule: "metadata/id", name: "missing", make: onFirst(0, `"id":"all-snapshot-15",`, "")},
	{rule: "metadata/id", name: "a space", make: onFirst(0, "all-snapshot", "all snapshot")},
	{rule: "metadata/id", name: "a line end", make: onFirst(0, "all-snapshot-15", `all-snapshot\n`)},
	{rule: "metadata/id-unique", name: "an id twice", make: onFirst(2, "all-delta-15", "all-delta-16")},
	{rule: "metadata/section", name: "missing", make: onFirst(0, `"section":"all",`, "")},
	{rule: "metadata/section", name: "a path", make: onFirst(0, `"section":"all"`, `"section":"/all"`)},
	{rule: "metadata/type", name: "another", make: onFirst(0, `"snapshot"`, `"full"`)},
	{rule: "metadata/generated", name: "a date", make: onFirst(0, "2026-01-15T00:00:00Z", "2026-01-15")},
	{rule: "metadata/generated", name: "a number", make: onFirst(0, `"2026-01-15T00:00:00Z"`, "1768435200")},
	{rule: "metadata/generated-past", name: "tomorrow", make: func(s *madeSite) {
		s.all[3].declared = s.all[3].declared.set("generated", "2026-01-17T12:00:00Z")
		edit(&s.all[3].first, "2026-01-16T12:00:00Z", "2026-01-17T12:00:00Z")
	}},
	{rule: "metadata/since", name: "missing", make: onFirst(3, `"since":"2026-01-16T00:00:00Z",`, "")},
	{rule: "metadata/since", name: "null", make: onFirst(3, `"2026-01-16T00:00:00Z"`, "null")},
	{rule: "metadata/version", name: "a number", make: onFirst(0, `"0.1"`, "0.1")},
	{rule: "metadata/version", name: "three parts", make: onFirst(0, `"0.1"`, `"0.1.0"`)},
	{
		rule: "checksum/form", name: "upper case",
		make: onSum(func(text string) string { return hashPrefix + strings.ToUpper(cutSum(text)[len(hashPrefix):]) }),
		breaks: onFile("all-snapshot", func(r *http.Request) {
			if v := r.Header.Get("If-None-Match"); v != "" {
				r.Header.Set("If-None-Match", upperSum(v))
			}
		}, func(_ *http.Request, rec *httptest.ResponseRecorder) {
			rec.Header().Set("ETag", strings.ToLower(rec.Header().Get("ETag")))
		}),
	},
	{rule: "checksum/form", name: "another hash", make: onFirst(0, `"SUM"`, `"md5:d41d8cd98f00b204e9800998ecf8427e"`)},
	{rule: "checksum/matches", name: "of something else", make: onSum(func(string) string { return hashPrefix + strings.Repeat("a", 64) })},
	{rule: "checksum/reading", name: "of the pages alone", make: onSum(func(text string) string {
		_, pages, _ := strings.Cut(text, "\n")
		return hashPrefix + canon.SHA256Hex([]byte(pages))
	})},
	{rule: "checksum/reading", name: "with an empty value", make: onSum(func(text string) string {
		return hashPrefix + canon.SHA256Hex([]byte(strings.Replace(text, "SUM", "", 1)))
	})},
	{rule: "checksum/reading", name: "with zeros", make: onSum(func(text string) string {
		return hashPrefix + canon.SHA256Hex([]byte(strings.Replace(text, "SUM", hashPrefix+noSum, 1)))
	})},
	{rule: "checksum/present", name: "none", make: onFirst(0, `,"checksum":"SUM"`, "")},

	{rule: "page/required", name: "no title", make: onLine(1, `"title":"Page",`, "")},
	{rule: "page/required", name: "no language", make: onLine(1, `"language":"en-GB",`, "")},
	{rule: "page/url", name: "a path", make: onLine(1, `"url":"`+goodSite, `"url":"`)},
	{rule: "page/url", name: "another scheme", make: onLine(1, `"url":"https:`, `"url":"ftp:`)},
	{rule: "page/url", name: "a space", make: onLine(1, `/one/`, `/o ne/`)},
	{rule: "page/url", name: "a number", make: onLine(1, `"`+goodSite+`/one/"`, `1`)},
	{rule: "page/site", name: "another site", make: onLine(1, goodSite+"/one/", "https://other.example/")},
	{rule: "page/title", name: "null", make: onLine(1, `"title":"Page"`, `"title":null`)},
	{rule: "page/description", name: "an array", make: onLine(1, `"description":"D"`, `"description":["D"]`)},
	{rule: "page/author", name: "an object", make: onLine(1, `"A. Writer"`, `{"name":"A"}`)},
	{rule: "page/published", name: "words", make: onLine(1, `"2025-12-24T01:02:03.5+01:00"`, `"yesterday"`)},
	{rule: "page/modified", name: "no zone", make: onLine(1, `2026-01-11T00:00:00Z`, `2026-01-11T00:00:00`)},
	{rule: "page/language", name: "an underscore", make: onLine(1, `"en-GB"`, `"en_GB"`)},
	{rule: "page/canonical", name: "a path", make: onLine(1, `"canonical":"`+goodSite, `"canonical":"`)},
	{rule: "page/schema", name: "an array", make: onLine(1, `{"@type":"Article"}`, `[{"@type":"Article"}]`)},
	{rule: "page/content", name: "empty", make: onLine(2, plainBlock, "")},
	{rule: "page/content", name: "a string", make: onLine(2, `[`+plainBlock+`]`, `"text"`)},

	{rule: "blocks/type", name: "none", make: onLine(2, `"type":"text",`, "")},
	{rule: "blocks/type", name: "unknown", make: onLine(2, `"type":"text"`, `"type":"paragraph"`)},
	{rule: "blocks/type", name: "a string", make: onLine(2, plainBlock, `"text"`)},
	{rule: "blocks/text", name: "no text", make: onLine(2, `,"text":"Changed"`, "")},
	{rule: "blocks/heading", name: "no level", make: onLine(1, `"level":2,`, "")},
	{rule: "blocks/heading", name: "half a level", make: onLine(1, `"level":2`, `"level":2.5`)},
	{rule: "blocks/heading-level", name: "0", make: onLine(1, `"level":2`, `"level":0`)},
	{rule: "blocks/heading-level", name: "7", make: onLine(1, `"level":2`, `"level":7`)},
	{rule: "blocks/link", name: "no text", make: onLine(1, `,"text":"Link"`, "")},
	{rule: "blocks/link", name: "rel", make: onLine(1, `["nofollow"]`, `"nofollow"`)},
	{rule: "blocks/image", name: "no alt", make: onLine(1, `,"alt":"Alt"`, "")},
	{rule: "blocks/list", name: "no order", make: onLine(1, `"ordered":false,`, "")},
	{rule: "blocks/list", name: "a string for an order", make: onLine(1, `"ordered":false`, `"ordered":"false"`)},
	{rule: "blocks/list", name: "nested", make: onLine(1, `"two"]`, `["two"]]`)},
	{rule: "blocks/code", name: "text", make: onLine(1, `"code":"x()"`, `"text":"x()"`)},
	{rule: "blocks/table", name: "flat", make: onLine(1, `[["a","b"],["1","2"]]`, `["a","b"]`)},
	{rule: "blocks/table", name: "numbers", make: onLine(1, `["1","2"]`, `[1,2]`)},
	{rule: "blocks/quote", name: "citation", make: onLine(1, `"citation":"Somebody"`, `"citation":null`)},
	{rule: "blocks/video", name: "no name", make: onLine(1, `"name":"Video",`, "")},
	{rule: "blocks/video", name: "no media type", make: onLine(1, `,"mediaType":"video/mp4"`, "")},
	{rule: "blocks/video", name: "no URL", make: onLine(1, `[{"href":"https://site.example/v.mp4","mediaType":"video/mp4","rel":"alternate"}]`, "[]")},
	{rule: "blocks/video", name: "width", make: onLine(1, `"width":19`, `"width":-19`)},
	{rule: "blocks/audio", name: "an object", make: onLine(1, `"https://site.example/a.mp3"`, `{"href":"https://site.example/a.mp3"}`)},
	{rule: "blocks/audio", name: "partOf", make: onLine(1, `"partOf":"Season"`, `"partOf":3`)},
	{rule: "blocks/url", name: "a path", make: onLine(1, `"url":"https://site.example/i.png"`, `"url":"/i.png"`)},
	{rule: "blocks/url", name: "a script", make: onLine(1, `"url":"https://other.example/"`, `"url":"javascript:alert(1)"`)},
	{rule: "blocks/url", name: "of captions", make: onLine(1, `"url":"https://site.example/c.vtt"`, `"url":"c.vtt"`)},
	{rule: "blocks/duration", name: "seconds", make: onLine(1, `"PT5M20S"`, `"320"`)},
	{rule: "blocks/duration", name: "days", make: onLine(1, `"PT1H"`, `"P1D"`)},
	{rule: "blocks/icon", name: "a URL", make: onLine(1, `{"type":"Image","url":"https://site.example/t.jpg"}`, `"https://site.example/t.jpg"`)},
	{rule: "blocks/icon", name: "type", make: onLine(1, `"Image"`, `"image"`)},
	{rule: "blocks/captions", name: "no label", make: onLine(1, `,"label":"E"`, "")},
	{rule: "blocks/chapters", name: "time", make: onLine(1, `"time":60`, `"time":"1:00"`)},
	{rule: "blocks/chapters", name: "before the start", make: onLine(1, `"time":60`, `"time":-60`)},

	{rule: "discovery/sitemap-xml", name: "elsewhere", make: func(s *madeSite) { s.at = "/scp-sitemap.txt" }},
	{rule: "discovery/valid", name: "cut", make: onSitemap("</urlset>", "")},
	{rule: "discovery/valid", name: "another root", make: func(s *madeSite) {
		s.sitemap = func(text string) string {
			return strings.Replace(text, "schemas/sitemap/0.9", "schemas/other", 1)
		}
	}},
	{rule: "discovery/namespace", name: "another version", make: func(s *madeSite) { s.space = strings.Replace(namespace, "1.0", "0.1", 1) }},
	{rule: "discovery/namespace", name: "not bound", make: func(s *madeSite) {
		s.sitemap = func(text string) string { return strings.Replace(text, ` xmlns:scp="`+namespace+`"`, "", 1) }
	}},
	{rule: "snapshots/offered", name: "none", make: func(s *madeSite) {
		s.sections = append(s.sections, attrs{"name", "docs", "updateFreq", "daily", "pages", "7"})
	}},
	{rule: "snapshots/at-generation", name: "a later page", make: onLine(2, "2026-01-12T00:00:00Z", "2026-01-15T00:11:00Z")},
	{rule: "deltas/within-period", name: "a later page", make: func(s *madeSite) { edit(&s.all[3].lines[1], "2026-01-16T11:00:00Z", "2026-01-16T23:00:00Z") }},
	{rule: "deltas/within-period", name: "a page that has not changed", make: func(s *madeSite) {
		s.all[3].lines = append(s.all[3].lines, s.all[0].lines[2])
	}},
	{rule: "deltas/since", name: "after it was generated", make: func(s *madeSite) {
		s.all[3].declared = s.all[3].declared.set("since", "2026-01-16T12:30:00Z")
		edit(&s.all[3].first, "2026-01-16T00:00:00Z", "2026-01-16T12:30:00Z")
	}},
	{rule: "deltas/monotonic", name: "back in a delta", make: func(s *madeSite) { edit(&s.all[3].lines[0], "2026-01-16T10:00:00Z", "2026-01-15T09:00:00Z") }},
	{rule: "deltas/monotonic", name: "back in the snapshot", make: func(s *madeSite) {
		s.all[0].declared = s.all[0].declared.set("generated", "2026-01-16T12:30:00Z")
		edit(&s.all[0].first, "2026-01-15T00:00:00Z", "2026-01-16T12:30:00Z")
	}},
	{rule: "download/get", name: "404", breaks: onFile("all-snapshot-15.scp.gz", nil, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		clear(rec.Header())
		rec.Code = http.StatusNotFound
	})},
	{rule: "download/get", name: "credentials", breaks: onFile("delta", nil, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		clear(rec.Header())
		rec.Code = http.StatusUnauthorized
	})},

	{rule: "http/content-type", name: "JSON", breaks: setField("delta", "Content-Type", "application/json")},
	{rule: "http/content-type", name: "by the suffix", breaks: setField(".gz", "Content-Type", "application/gzip")},
	{rule: "http/content-encoding", name: "none", breaks: setField(".gz", "Content-Encoding", "")},
	{rule: "http/content-encoding", name: "another name", breaks: setField(".zst", "Content-Encoding", "zst")},
	{rule: "http/content-encoding", name: "undone on the way", make: coding("gzip", func(_, text []byte) []byte { return text }), breaks: setField("snapshot-15.scp.gz", "Content-Encoding", "")},
	{rule: "http/content-length", name: "none", breaks: setField("/scp/", "Content-Length", "")},
	{rule: "http/etag", name: "none", breaks: setField("delta", "ETag", "")},
	{rule: "http/last-modified", name: "none", breaks: setField("delta", "Last-Modified", "")},
	{rule: "http/etag-checksum", name: "another", breaks: onFile("snapshot", func(r *http.Request) {
		edit := strings.NewReplacer("x-", "")
		if v := r.Header.Get("If-None-Match"); v != "" {
			r.Header.Set("If-None-Match", edit.Replace(v))
		}
	}, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		rec.Header().Set("ETag", `"x-`+rec.Header().Get("ETag")[1:])
	})},
	{rule: "http/last-modified-generated", name: "a day later", breaks: onFile("delta-15", func(r *http.Request) {
		if r.Header.Get("If-Modified-Since") != "Sun, 06 Nov 1994 08:49:37 GMT" && r.Header.Get("If-Modified-Since") != "" {
			r.Header.Set("If-Modified-Since", "Fri, 16 Jan 2026 12:00:00 GMT")
		}
	}, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		rec.Header().Set("Last-Modified", "Fri, 16 Jan 2026 12:00:00 GMT")
	})},
	{rule: "conditional/if-none-match", name: "not seen", breaks: ignoring(func(h http.Header) bool { return h.Get("If-None-Match") != "" })},
	{rule: "conditional/if-modified-since", name: "not seen", breaks: ignoring(func(h http.Header) bool { return h.Get("If-None-Match") == "" })},
	{rule: "conditional/both", name: "only alone", breaks: ignoring(func(h http.Header) bool {
		return h.Get("If-None-Match") != "" && h.Get("If-None-Match") != otherTag && h.Get("If-Modified-Since") != ""
	})},
	{rule: "conditional/forms", name: "no lists", breaks: ignoring(func(h http.Header) bool { return strings.Contains(h.Get("If-None-Match"), ",") })},
	{rule: "conditional/forms", name: "no weak tags", breaks: ignoring(func(h http.Header) bool { return strings.HasPrefix(h.Get("If-None-Match"), "W/") })},
	{rule: "conditional/forms", name: "no star", breaks: ignoring(func(h http.Header) bool { return h.Get("If-None-Match") == "*" })},
	{rule: "conditional/changed", name: "any tag", breaks: onFile("/scp/", func(r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			r.Header.Set("If-None-Match", "*")
		}
	}, nil)},
	{rule: "conditional/changed", name: "any date", breaks: onFile("/scp/", func(r *http.Request) {
		if r.Header.Get("If-Modified-Since") != "" {
			r.Header.Set("If-Modified-Since", "Sun, 06 Nov 2094 08:49:37 GMT")
		}
	}, nil)},
	{rule: "conditional/precedence", name: "either", breaks: onFile("/scp/", func(r *http.Request) {
		if r.Header.Get("If-Modified-Since") != "" {
			r.Header.Del("If-None-Match")
		}
	}, nil)},
	{rule: "conditional/fields", name: "no ETag", breaks: onFile("/scp/", nil, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		if rec.Code == http.StatusNotModified {
			rec.Header().Del("ETag")
		}
	})},
	{rule: "caching/cache-control", name: "none", breaks: setField("delta-16", "Cache-Control", "")},
	{rule: "caching/public", name: "private", breaks: setField("snapshot", "Cache-Control", "private, max-age=86400")},
	{rule: "caching/max-age", name: "an hour", breaks: setField("snapshot", "Cache-Control", "public, max-age=3601")},
	{rule: "caching/max-age", name: "none", breaks: setField("snapshot", "Cache-Control", "public")},
	{rule: "caching/delta-max-age", name: "as long", breaks: setField("delta", "Cache-Control", "public, max-age=86400, must-revalidate")},
	{rule: "caching/must-revalidate", name: "none", breaks: setField("delta", "Cache-Control", "public, max-age=60")},

	{rule: "security/https", name: "http", make: func(s *madeSite) { s.base = "http://site.example" }},
	{rule: "security/https", name: "a redirect to http", breaks: onFile("delta", nil, func(r *http.Request, rec *httptest.ResponseRecorder) {
		if r.URL.Scheme == "https" {
			rec.Code = http.StatusFound
			clear(rec.Header())
			rec.Header().Set("Location", "http://site.example"+r.URL.Path)
		}
	})},
	{rule: "privacy/public", name: "a closed page", breaks: onFile("/two/", nil, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		rec.Code = http.StatusUnauthorized
	})},
	{rule: "limits/ratio", name: "a bomb", make: func(s *madeSite) {
		for i := range 8 {
			s.all[0].lines = append(s.all[0].lines, pageLine(fmt.Sprintf("/%d/", i), "2026-01-12T00:00:00Z", strings.Replace(plainBlock, "Changed", strings.Repeat("a", 200<<10), 1)))
		}
	}},
	{rule: "limits/file", name: "60 GB", make: setting(1, "size", "60000000000")},
	{rule: "limits/page", name: "too long", make: onLine(2, "Changed", noise(testLine))},
	{rule: "limits/blocks", name: "1001", make: onLine(2, plainBlock, plainBlock+strings.Repeat(","+plainBlock, 1000))},
	{rule: "security/sitemap-https", name: "http", breaks: onFile("/sitemap.xml", nil, func(r *http.Request, rec *httptest.ResponseRecorder) {
		if r.URL.Scheme == "https" {
			rec.Code = http.StatusFound
			clear(rec.Header())
			rec.Header().Set("Location", "http://site.example"+r.URL.Path)
		}
	})},

	{rule: "sitemap/position", name: "in a url", make: func(s *madeSite) {
		s.sitemap = func(text string) string {
			text = strings.Replace(text, "<scp:version>0.1</scp:version>\n", "", 1)
			return strings.Replace(text, "</loc>", "</loc><scp:version>0.1</scp:version>", 1)
		}
	}},
	{rule: "sitemap/declared", name: "an element", make: onSitemap("<scp:version>", "<scp:vendor>x</scp:vendor><scp:version>")},
	{rule: "sitemap/declared", name: "an attribute", make: setting(1, "etag", "x")},
	{rule: "sitemap/declared", name: "content", make: onSitemap(`<scp:section name="blog" updateFreq="daily" pages="3"/>`, `<scp:section name="blog" updateFreq="daily" pages="3">blog</scp:section>`)},
	{rule: "sitemap/required", name: "no period", make: saying(2, func(a attrs) attrs { return a.drop("period") })},
	{rule: "sitemap/required", name: "no expires", make: saying(0, func(a attrs) attrs { return a.drop("expires") })},
	{rule: "sitemap/required", name: "no pages", make: func(s *madeSite) { s.sections[0] = s.sections[0].drop("pages") }},
	{rule: "sitemap/version", name: "one number", make: onSitemap(">0.1<", ">1<")},
	{rule: "sitemap/version", name: "a space", make: onSitemap(">0.1<", "> 0.1<")},
	{rule: "sitemap/compression", name: "a space", make: onSitemap(">zstd,gzip<", ">zstd, gzip<")},
	{rule: "sitemap/compression-offered", name: "no zstd", make: onSitemap(">zstd,gzip<", ">gzip<")},
	{rule: "sitemap/update-freq", name: "yearly", make: func(s *madeSite) { s.sections[0] = s.sections[0].set("updateFreq", "yearly") }},
	{rule: "sitemap/section-pages", name: "words", make: func(s *madeSite) { s.sections[0] = s.sections[0].set("pages", "many") }},
	{rule: "sitemap/type", name: "full", make: setting(0, "type", "full")},
	{rule: "sitemap/url", name: "a path", make: saying(0, func(a attrs) attrs { return a.set("url", strings.TrimPrefix(a.get("url"), goodSite)) })},
	{rule: "sitemap/date-time", name: "a date", make: setting(0, "expires", "2026-01-18")},
	{rule: "sitemap/date-time", name: "small letters", make: setting(3, "since", "2026-01-16t00:00:00z")},
	{rule: "sitemap/integer", name: "an estimate", make: setting(0, "pages", "~3")},
	{rule: "sitemap/integer", name: "a unit", make: setting(0, "size", "1 kB")},
	{rule: "sitemap/section-declared", name: "unknown", make: func(s *madeSite) {
		s.sections = s.sections[:1]
	}},
	{rule: "sitemap/section", name: "another", make: onFirst(3, `"section":"all"`, `"section":"blog"`)},
	{rule: "sitemap/kind", name: "a snapshot", make: onFirst(3, `"delta"`, `"snapshot"`)},
	{rule: "sitemap/generated", name: "earlier", make: setting(3, "generated", "2026-01-16T11:30:00Z")},
	{rule: "sitemap/since", name: "earlier", make: setting(3, "since", "2026-01-15T12:00:00Z")},
	{rule: "sitemap/pages", name: "more", make: setting(0, "pages", "4")},
	{rule: "sitemap/size", name: "decoded", make: setting(2, "size", "1")},
	{rule: "sitemap/expires", name: "before it was made", make: setting(0, "expires", "2026-01-14T00:00:00Z")},
	{rule: "sitemap/not-expired", name: "an hour ago", make: setting(1, "expires", "2026-01-16T12:00:00Z")},
}

// testLine is the maximum line length in these tests.
const testLine = 256 << 10

func upperSum(tag string) string {
	return strings.ReplaceAll(strings.ToUpper(tag), "SHA256", "sha256")
}
