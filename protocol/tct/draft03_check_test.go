package tct

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol/protocoltest"
)

const (
	listPath03 = "/tct-pages.json"
	pagePath03 = "/post/tct.json"
)

// signed edits the body of a document, and updates its ETag, digest and length. For a page, it
// also updates the hint in the list.
func signed(path string, f func(body string) string) protocoltest.Breaker {
	return func(h http.Handler) http.Handler {
		plain := func(r *http.Request, path string) *httptest.ResponseRecorder {
			r = r.Clone(r.Context())
			r.Method, r.URL.Path, r.Header = http.MethodGet, path, http.Header{}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			return rec
		}
		tag := func(body string) string { return hashPrefix + canon.SHA256Hex([]byte(body)) }
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != path && r.URL.Path != listPath03 || r.Method == http.MethodPost || strings.Contains(r.Header.Get("Accept-Encoding"), "q=0") {
				h.ServeHTTP(w, r)
				return
			}
			rec := plain(r, r.URL.Path)
			body := rec.Body.String()
			if r.URL.Path == path {
				body = f(body)
			} else {
				page := plain(r, path).Body.String()
				body = strings.ReplaceAll(body, tag(page), tag(f(page)))
			}
			maps.Copy(w.Header(), rec.Header())
			w.Header().Set("ETag", `"`+tag(body)+`"`)
			if match := r.Header.Get("If-None-Match"); match == "*" || strings.Contains(match, tag(body)) {
				for _, name := range []string{"Content-Type", "Content-Length", "Content-Digest"} {
					w.Header().Del(name)
				}
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Header().Set("Content-Digest", canon.Digest([]byte(body)))
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			if r.Method != http.MethodHead {
				_, _ = w.Write([]byte(body))
			}
		})
	}
}

// changed03 edits the JSON object of a document, and encodes it canonically.
func changed03(path string, f func(m map[string]any)) protocoltest.Breaker {
	return signed(path, func(body string) string {
		var m map[string]any
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			panic(err)
		}
		f(m)
		return string(canonical(m))
	})
}

func with03(path, name string, value any) protocoltest.Breaker {
	return changed03(path, func(m map[string]any) { m[name] = value })
}

func without03(path, name string) protocoltest.Breaker {
	return changed03(path, func(m map[string]any) { delete(m, name) })
}

// item03 edits the list item of the page.
func item03(f func(it map[string]any)) protocoltest.Breaker {
	return changed03(listPath03, func(m map[string]any) {
		for _, it := range m["items"].([]any) {
			if it := it.(map[string]any); strings.HasSuffix(it["mUrl"].(string), pagePath03) {
				f(it)
			}
		}
	})
}

// field03 sets a field of the responses to GET and HEAD.
func field03(path, name, value string) protocoltest.Breaker {
	return header03(path, func(_ *http.Request, h http.Header) {
		if h.Del(name); value != "" {
			h.Set(name, value)
		}
	})
}

// header03 edits the header of the responses of a path.
func header03(path string, f func(r *http.Request, h http.Header)) protocoltest.Breaker {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != path {
				h.ServeHTTP(w, r)
				return
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			f(r, rec.Header())
			maps.Copy(w.Header(), rec.Header())
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
		})
	}
}

// links03 replaces old by new in the Link fields of a path.
func links03(path, old, new string) protocoltest.Breaker {
	return header03(path, func(_ *http.Request, h http.Header) {
		for i, l := range h["Link"] {
			h["Link"][i] = strings.ReplaceAll(l, old, new)
		}
	})
}

// tags03 edits the If-None-Match of requests.
func tags03(path string, f func(v string) string) protocoltest.Breaker {
	return protocoltest.OnRequest(path, func(r *http.Request) {
		if v := r.Header.Get("If-None-Match"); v != "" {
			if r.Header.Del("If-None-Match"); f(v) != "" {
				r.Header.Set("If-None-Match", f(v))
			}
		}
	})
}

// fault03 returns a fault of a rule, which is named without the protocol.
func fault03(rule, name string, b protocoltest.Breaker) protocoltest.Fault {
	return protocoltest.Fault{Rule: name03 + "/" + rule, Name: name, Break: b}
}

func faults03() (out []protocoltest.Fault) {
	for section, path := range map[string]string{"list": listPath03, "page": pagePath03} {
		profile := map[string]string{"list": listProfile03, "page": pageProfile03}[section]
		in := func(word, name string, b protocoltest.Breaker) { out = append(out, fault03(section+"/"+word, name, b)) }
		in("content-type", "charset", field03(path, "Content-Type", contentType))
		in("utf-8", "byte order mark", signed(path, func(b string) string { return "\uFEFF" + b }))
		in("profile", "another kind", with03(path, "profile", indexProfileOf(section)))
		in("jcs", "white space", signed(path, func(b string) string { return b + "\n" }))
		in("jcs", "another order", signed(path, func(b string) string {
			return `{"profile":"` + profile + `",` + strings.Replace(strings.TrimPrefix(b, "{"), `"profile":"`+profile+`",`, "", 1)
		}))
		in("etag-is-body-hash", "weak", header03(path, func(_ *http.Request, h http.Header) { h.Set("ETag", "W/"+h.Get("ETag")) }))
		in("etag-is-body-hash", "missing", field03(path, "ETag", ""))
		in("digest", "missing", field03(path, "Content-Digest", ""))
		in("length", "missing", header03(path, func(r *http.Request, h http.Header) { h.Set("Content-Length", "") }))
		in("profile-link", "missing", links03(path, `rel="profile"`, `rel="type"`))
		in("vary", "missing", field03(path, "Vary", ""))
		in("no-transform", "missing", field03(path, "Cache-Control", "max-age=0, must-revalidate"))
		in("no-coding", "gzip", func(h http.Handler) http.Handler { return gzipping(path, h) })
		in("gzip-advertised", "weak", header03(path, func(r *http.Request, h http.Header) {
			if gzipped(r) {
				h.Set("ETag", "W/"+h.Get("ETag"))
			}
		}))
		in("head", "no digest", header03(path, func(r *http.Request, h http.Header) {
			if r.Method == http.MethodHead {
				h.Del("Content-Digest")
			}
		}))
	}
	root := func(_ *http.Request, h http.Header) { h["Link"] = h["Link"][:1] }
	return append(out,
		fault03("root/index-link", "missing", header03("/", root)),
		fault03("root/no-profile-param", "there", links03("/", `rel="index"`, `rel="index"; profile="`+listProfile03+`"`)),
		fault03("root/absolute-target", "relative", header03("/", func(r *http.Request, h http.Header) {
			for i, l := range h["Link"] {
				h["Link"][i] = strings.ReplaceAll(l, "<https://"+r.Host+listPath03, "<"+listPath03)
			}
		})),
		fault03("list/status", "404", protocoltest.Respond(listPath03, http.StatusNotFound)),
		fault03("list/version-2", "3", with03(listPath03, "version", 3)),
		fault03("list/version-2", "a string", with03(listPath03, "version", "2")),
		fault03("list/items", "an object", changed03(listPath03, func(m map[string]any) { m["items"] = append(m["items"].([]any), "x") })),
		fault03("list/no-sitemaps", "empty", with03(listPath03, "sitemaps", []any{})),
		fault03("list/c-url", "relative", item03(func(it map[string]any) { it["cUrl"] = "/post/" })),
		fault03("list/m-url", "missing", item03(func(it map[string]any) { delete(it, "mUrl") })),
		fault03("list/m-url", "404", protocoltest.Respond(pagePath03, http.StatusNotFound)),
		fault03("list/no-leak", "401", protocoltest.Respond(pagePath03, http.StatusUnauthorized)),
		fault03("list/etag-form", "in quotes", item03(func(it map[string]any) { it["etag"] = `"` + it["etag"].(string) + `"` })),
		fault03("list/last-modified", "a date", item03(func(it map[string]any) { it["lastModified"] = "2026-01-02" })),
		fault03("list/last-modified", "an hour of one digit", item03(func(it map[string]any) { it["lastModified"] = "2026-01-02T3:04:05Z" })),
		fault03("list/unique-c-urls", "twice", changed03(listPath03, func(m map[string]any) {
			first, second := m["items"].([]any)[0].(map[string]any), m["items"].([]any)[1].(map[string]any)
			m["items"] = append(m["items"].([]any), map[string]any{"cUrl": first["cUrl"], "mUrl": strings.Replace(second["mUrl"].(string), "tct.json", "tct.json?", 1)})
		})),
		fault03("list/unique-m-urls", "twice", changed03(listPath03, func(m map[string]any) {
			first := m["items"].([]any)[0].(map[string]any)
			m["items"] = append(m["items"].([]any), map[string]any{"cUrl": first["cUrl"].(string) + "?x", "mUrl": first["mUrl"]})
		})),
		fault03("list/same-origin", "a fragment", item03(func(it map[string]any) { it["cUrl"] = it["cUrl"].(string) + "#x" })),
		fault03("list/identity-refused", "200", protocoltest.OnRequest(listPath03, func(r *http.Request) {
			if strings.Contains(r.Header.Get("Accept-Encoding"), "identity;q=0") {
				r.Header.Del("Accept-Encoding")
			}
		})),
		fault03("list/if-none-match", "never 304", tags03(listPath03, func(string) string { return "" })),
		fault03("list/post", "200", protocoltest.OnRequest(listPath03, func(r *http.Request) {
			if r.Method == http.MethodPost {
				r.Method = http.MethodGet
			}
		})),
		fault03("list/stable", "counts", func(h http.Handler) http.Handler {
			n := 0
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				signed(listPath03, func(b string) string {
					if r.Method == http.MethodGet && !gzipped(r) {
						n++
					}
					return strings.Replace(b, `"profile"`, fmt.Sprintf(`"n":%d,"profile"`, n), 1)
				})(h).ServeHTTP(w, r)
			})
		}),

		fault03("page/json", "cut", signed(pagePath03, func(b string) string { return b[:len(b)-1] })),
		fault03("page/object", "an array", signed(pagePath03, func(b string) string { return "[" + b + "]" })),
		fault03("page/canonical-url", "another page", with03(pagePath03, "canonical_url", "https://example.com/x/")),
		fault03("page/title", "missing", without03(pagePath03, "title")),
		fault03("page/content", "a number", with03(pagePath03, "content", 5)),
		fault03("page/language", "null", with03(pagePath03, "language", nil)),
		fault03("page/language", "an underscore", with03(pagePath03, "language", "en_")),
		fault03("page/content-media-type", "a word", with03(pagePath03, "content_media_type", "markdown")),
		fault03("page/canonical-link", "missing", links03(pagePath03, `rel="canonical"`, `rel="original"`)),
		fault03("page/alternate-link", "missing", protocoltest.OnResponse("/post/", func(_ *http.Request, rec *httptest.ResponseRecorder) {
			rec.Header().Del("Link")
			rec.Body = bytes.NewBufferString(strings.ReplaceAll(rec.Body.String(), "alternate", "prefetch"))
		})),
		fault03("page/hint", "stale", item03(func(it map[string]any) { it["etag"] = strings.Trim(otherTag, `"`) })),
		fault03("page/if-none-match", "never 304", tags03(pagePath03, func(v string) string {
			if strings.HasPrefix(v, `"`) && !strings.Contains(v, ",") {
				return ""
			}
			return v
		})),
		fault03("page/if-none-match-list", "one tag only", tags03(pagePath03, func(v string) string {
			if strings.Contains(v, ",") {
				return ""
			}
			return v
		})),
		fault03("page/if-none-match-any", "no *", tags03(pagePath03, func(v string) string { return strings.Trim(v, "*") })),
		fault03("page/if-none-match-weak", "strong comparison", tags03(pagePath03, func(v string) string {
			if strings.HasPrefix(v, "W/") {
				return ""
			}
			return v
		})),
		fault03("page/if-none-match-other", "any tag will do", tags03(pagePath03, func(string) string { return "*" })),
		fault03("page/not-modified-fields", "no Link", header03(pagePath03, func(r *http.Request, h http.Header) {
			if r.Header.Get("If-None-Match") != "" {
				h.Del("Link")
			}
		})),
		fault03("page/no-empty-object", "there", with03(pagePath03, "image", map[string]any{})),
		fault03("page/no-empty-object", "a list by number", with03(pagePath03, "image", map[string]any{"0": "a", "1": "b"})),
		fault03("page/no-u2028", "in the content", with03(pagePath03, "content", "a\u2028b")),
		fault03("page/no-u2028", "escaped", signed(pagePath03, func(b string) string { return strings.Replace(b, `"content":"`, `"content":"\u2028`, 1) })),
	)
}

// indexProfileOf returns a profile that is wrong for the given section.
func indexProfileOf(section string) string {
	if section == "list" {
		return pageProfile03
	}
	return indexProfile03
}

// gzipping adds Content-Encoding: identity to the responses of a path.
func gzipping(path string, h http.Handler) http.Handler {
	return header03(path, func(_ *http.Request, head http.Header) { head.Set("Content-Encoding", "identity") })(h)
}

func TestCheckFaults03(t *testing.T) { protocoltest.Faults(t, Draft03(), faults03()) }

func TestRules03(t *testing.T) {
	var faults []string
	for _, f := range faults03() {
		faults = append(faults, f.Rule)
	}
	protocoltest.WellFormed(t, name03, Draft03().Rules(), faults)
}

func TestCross03(t *testing.T) {
	protocoltest.Agreement{
		Protocol: Draft03(), Faults: faults03(),
		Unread: map[string]string{
			"*/content-type":           "JSON says itself that it is JSON",
			"*/jcs":                    "the hash is of the bytes, in whatever order they are",
			"list/etag-is-body-hash":   "the tag of a list is sent back as it is",
			"*/digest":                 "the ETag says as much, and HTTP says where a body ends",
			"*/length":                 "the same",
			"*/profile-link":           "the member says as much",
			"*/head":                   "a reader sends no HEAD",
			"root/no-profile-param":    "what a link leads to says its profile",
			"list/etag-form":           "an item without a hint is asked for each time",
			"list/last-modified":       "it is but a hint",
			"list/stable":              "shows in two requests; a reader makes one",
			"*/if-none-match*":         "what a 304 spares; a new reader sends no condition",
			"page/not-modified-fields": "the same",
		},
	}.Run(t)
}
