package arc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// breaker wraps the handler of a valid site and adds one fault.
type breaker = protocoltest.Breaker

type checkFault struct {
	rule, name string // the rule's ID without the protocol
	breaks     breaker
}

// checkFaults contains at least one fault for every rule. Each fault violates only that rule.
var checkFaults = []checkFault{
	{"E.3/json", "a comma", onText(strings.TrimSuffix, "}", ",}")},
	{"E.3/json", "an array", onLists(func(l []byte) []byte { return fmt.Appendf(nil, "[%s]", l) })},
	{"E.3/content-type", "text", setHeader(pathList, "Content-Type", "text/plain")},
	{"E.3.1/snapshot", "no page", inSnapshot("page", nil)},
	{"E.3.1/snapshot", "no array", inSnapshot("sections", "one")},
	{"E.3.1/snapshot", "no objects", inSnapshot("sections", []any{map[string]any{"groups": []any{1}}})},
	{"E.3.2/json-ld", "elsewhere", replaceIn("/", pathList+`"`, `/none.json"`, pathYAML+`"`, `/none.json"`)},
	{"E.3.3/parity", "another page", replaceIn(pathYAML, "/post/", "/past/")},
	{"E.3.3/parity", "another checksum", replaceIn(pathYAML, "sha256:", "sha256:0")},
	{"E.3.3/parity", "no YAML", replaceIn(pathYAML, "pages:", "pages: [")},

	{"E.4/url", "missing", inPage("url", nil)},
	{"E.4/ai-indexable", "missing", inPage("ai_indexable", nil)},
	{"E.4/lastmod", "missing", inPage("lastmod", nil)},
	{"E.4/lastmod-past", "in the future", inPage("lastmod", "2999-01-01T00:00:00Z")},
	{"E.4/ai-summary", "missing", inPage("ai_summary", nil)},
	{"E.4/same-site", "another", inPage("url", "https://other.example/post/")},
	{"E.4/same-site", "no page", inPage("url", "mailto:webmaster")},
	{"E.4/once", "twice", onMembers(func(m map[string]any) {
		pages := m["pages"].([]any)
		m["pages"] = append(pages, pages[1])
	})},
	{"E.4/canonical-url", "404", answer("/post/", http.StatusNotFound)},
	{"E.4/canonical-url", "another", saysCanonical("/post/", "/posts/")},
	{"E.4/canonical-url", "another site", saysCanonical("/post/", "https://other.example/posts/")},
	{"E.4/canonical-url", "another site than the home page", protocoltest.Both(saysCanonical("/", "/"), saysCanonical("/post/", "https://other.example/post/"))},
	{"E.4/canonical-url", "another page of where it will be", protocoltest.Both(saysCanonical("/", "https://later.example/on/"), saysCanonical("/post/", "https://later.example/post/"))},
	{"E.4/auth-required", "401", answer("/post/", http.StatusUnauthorized)},
	{"E.4/auth-required", "for nothing", inPages(func(p map[string]any) {
		p["auth_required"] = true
		delete(p, "ai_snapshot")
	})},
	{"E.4/robots", "X-Robots-Tag", setHeader("/post/", "X-Robots-Tag", "noindex")},
	{"E.4/robots", "meta", replaceIn("/post/", "<head>", `<head><meta name="robots" content="noindex, follow">`)},

	{"E.5/well-known", "elsewhere", protocoltest.Both(moved(pathList, "/lists/arc-sitemap.json"), answer(pathWellKnown, http.StatusNotFound), answer(pathYAML, http.StatusNotFound),
		replaceIn("/robots.txt", pathList, "/lists/arc-sitemap.json"), replaceIn("/", pathList, "/lists/arc-sitemap.json"))},
	{"E.5/same", "another", replaceIn(pathWellKnown, "sha256:", "sha256:0")},
	{"E.5/same", "fewer", onPath(pathWellKnown, editMembers(func(m map[string]any) { m["pages"] = m["pages"].([]any)[1:] }))},
	{"E.5/robots", "none", answer("/robots.txt", http.StatusNotFound)},
	{"E.5/robots", "an error", answer(pathList, http.StatusInternalServerError)},
	{"E.5/robots", "another", replaceIn("/robots.txt", pathList, "/sitemap.xml")},
	{"E.5/validator", "none", protocoltest.Both(setHeader(pathList, "ETag", ""), setHeader(pathList, "Last-Modified", ""))},
	{"E.5/if-none-match", "ignored", protocoltest.OnRequest(pathList, func(r *http.Request) {
		if !strings.Contains(r.Header.Get("If-None-Match"), "another") {
			r.Header.Del("If-None-Match")
		}
	})},
	{"E.5/if-modified-since", "ignored", protocoltest.Both(dated(pathList), protocoltest.OnRequest(pathList, func(r *http.Request) { r.Header.Del("If-Modified-Since") }))},
	{"E.5/modified", "any tag will do", protocoltest.OnRequest(pathList, func(r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			r.Header.Set("If-None-Match", "*")
		}
	})},
	{"E.5/gzip", "ignored", protocoltest.OnRequest(pathList, func(r *http.Request) { r.Header.Del("Accept-Encoding") })},

	{"E.6/closed-minimal", "a snapshot", inPage("ai_indexable", false)},
	{"E.6/closed-minimal", "a directive", inPage("robots_directive", "noindex")},
	{"E.6/auth-snapshot", "a snapshot", protocoltest.Both(answer("/post/", http.StatusUnauthorized), inPage("auth_required", true))},
	{"E.6/sensitive", "the page", inSnapshot("ai_context", "sensitive")},
	{"E.6/sensitive", "a field", inSnapshot("fields", []any{map[string]any{"field": "name", "context": "personal, optional"}})},
	{"E.6/policy", "none", answer(pathPolicy, http.StatusNotFound)},
	{"E.6/policy", "HTML", protocoltest.Both(replaceIn(pathPolicy, "{", "<html>"), setHeader(pathPolicy, "Content-Type", "text/html"))},
	{"E.6/policy-json", "broken", replaceIn(pathPolicy, "{", "{,")},
	{"E.6/policy-says", "nothing", onPath(pathPolicy, func([]byte) []byte { return []byte(`{"terms":"https://example.com/terms/"}`) })},

	{"E.7/crawl-rate", "none", inList("crawl_rate", nil)},
	{"E.7/crawl-rate", "words", inList("crawl_rate", "slowly")},
	{"E.7/crawl-rate", "a number", inList("crawl_rate", 1)},
	{"E.7/robots-txt", "a page", replaceIn("/robots.txt", "Sitemap:", "User-agent: *\nDisallow: /post\nSitemap:")},
	{"E.7/robots-txt", "the list", replaceIn("/robots.txt", "Sitemap:", "User-agent: *\nDisallow: /arc-sitemap.json\nSitemap:")},
	{"E.7/contact", "none", inList("ai-crawl-contact", nil)},
	{"E.7/contact", "empty", inList("ai-crawl-contact", " ")},

	{"E.8/version", "missing", inList("arc_sitemap_version", nil)},
	{"E.8/version", "3", inList("arc_sitemap_version", "3.0")},
	{"E.8/version", "a number", inList("arc_sitemap_version", 2.1)},
	{"E.8/deltas", "none", onMembers(func(m map[string]any) {
		site := m["site"].(string)
		for i := range large {
			m["pages"] = append(m["pages"].([]any), map[string]any{
				"url": fmt.Sprintf("%s/closed/%d", site, i), "ai_indexable": false, "robots_directive": "noindex",
			})
		}
	})},
	{"E.8/delta", "broken", withDelta(func(l []byte) []byte { return l[:len(l)-1] })},
	{"E.8/delta", "a type", withDelta(editMembers(func(m map[string]any) { first(m)["ai_tags"] = "x" }))},
	{"E.8/delta", "a member", withDelta(editMembers(func(m map[string]any) { delete(first(m), "ai_indexable") }))},
	{"E.8/delta", "the version", withDelta(editMembers(func(m map[string]any) { m["arc_sitemap_version"] = "1" }))},
	{"E.8/delta-parity", "another checksum", withDelta(editMembers(func(m map[string]any) { first(m)["ai_checksum"] = "sha256:00" }))},
	{"E.8/delta-parity", "another page", withDelta(editMembers(func(m map[string]any) { first(m)["url"] = m["site"].(string) + "/unknown/" }))},

	{"E.9/site", "missing", inList("site", nil)},
	{"E.9/site", "a name", inList("site", "example")},
	{"E.9/generated-at", "missing", inList("generated_at", nil)},
	{"E.9/generated-at", "a day", inList("generated_at", "2026-01-02")},
	{"E.9/pages", "missing", inList("pages", nil)},
	{"E.9/pages", "an object", inList("pages", map[string]any{})},
	{"E.9/pages", "no objects", onMembers(func(m map[string]any) { m["pages"] = append(m["pages"].([]any), "/x/") })},
	{"E.9/null", "of a page", inPage("crawl_priority", json.RawMessage("null"))},
	{"E.9/null", "of the list", inList("arc_sitemap_version", json.RawMessage("null"))},
	{"E.9/url", "relative", inPage("url", "/post/")},
	{"E.9/url", "a number", inPage("url", 1)},
	{"E.9/lastmod", "words", inPage("lastmod", "today")},
	{"E.9/lastmod", "a day", inPage("lastmod", "2026-01-02")},
	{"E.9/ai-indexable", "a string", inPage("ai_indexable", "true")},
	{"E.9/ai-summary", "a list", inPage("ai_summary", []string{"x"})},
	{"E.9/ai-tags", "a string", inPage("ai_tags", "x")},
	{"E.9/ai-tags", "numbers", inPage("ai_tags", []any{1})},
	{"E.9/ai-checksum", "a number", inPage("ai_checksum", 1)},
	{"E.9/ai-snapshot", "a string", inPage("ai_snapshot", "{}")},
	{"E.9/crawl-priority", "2", inPage("crawl_priority", 2)},
	{"E.9/crawl-priority", "a string", inPage("crawl_priority", "0.5")},
	{"E.9/auth-required", "a string", inPage("auth_required", "false")},
	{"E.9/robots-directive", "a list", inPage("robots_directive", []string{"index"})},

	{"E.11/drift", "another page", onPath("/post/", func([]byte) []byte {
		return []byte("<html><head><title>Nothing</title></head><body>of it is left</body></html>")
	})},
	{"E.11/drift", "another snapshot", inSnapshot("title", "Buy cheap watches today")},
	{"E.11/checksum", "of a page that has changed", checksums},
	{"E.12/pii", "a mail address", inPage("ai_summary", "A summary, by jane.doe@example.com.")},
	{"E.12/pii", "a telephone number", inSnapshot("contact", "call +1 (555) 123-4567 today")},
}

// onPath edits the body of successful responses at one path. Responses to requests that accept
// gzip are unchanged.
func onPath(path string, f func(body []byte) []byte) breaker {
	return onPaths(func(p string) bool { return p == path }, f)
}

func onPaths(match func(path string) bool, f func(body []byte) []byte) breaker {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !match(r.URL.Path) || r.Header.Get("Accept-Encoding") == "gzip" {
				h.ServeHTTP(w, r)
				return
			}
			rec := protocoltest.ServeIdentity(h, r)
			rec.Header().Del("Content-Digest") // digest of the original body
			if rec.Code == http.StatusOK {
				rec.Body = bytes.NewBuffer(f(bytes.Clone(rec.Body.Bytes())))
			}
			protocoltest.Send(w, rec)
		})
	}
}

// onLists edits the JSON list at both locations, and removes its YAML form and its deltas.
func onLists(f func(list []byte) []byte) breaker {
	return protocoltest.Both(
		onPaths(func(p string) bool { return p == pathList || p == pathWellKnown }, f),
		answer(pathYAML, http.StatusNotFound), noDeltas,
	)
}

// onText removes old from the list with cut, and appends with.
func onText(cut func(s, suffix string) string, old, with string) breaker {
	return onLists(func(l []byte) []byte { return []byte(cut(string(l), old) + with) })
}

func noDeltas(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, pathDeltas) {
			http.NotFound(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// withDelta serves the whole list, edited by f, as the delta of every day.
func withDelta(f func(list []byte) []byte) breaker {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, pathDeltas) {
				list := protocoltest.ServeIdentity(h, atPath(r, pathList))
				w.Header().Set("Content-Type", contentType)
				_, _ = w.Write(f(list.Body.Bytes()))
				return
			}
			h.ServeHTTP(w, r)
		})
	}
}

func atPath(r *http.Request, path string) *http.Request {
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath, r.RequestURI = path, "", path
	return r
}

func editMembers(f func(m map[string]any)) func(body []byte) []byte {
	return func(body []byte) []byte {
		var m map[string]any
		if err := json.Unmarshal(body, &m); err != nil {
			panic(err)
		}
		f(m)
		b, err := json.Marshal(m)
		if err != nil {
			panic(err)
		}
		return b
	}
}

func onMembers(f func(m map[string]any)) breaker { return onLists(editMembers(f)) }

func inList(name string, value any) breaker {
	return onMembers(func(m map[string]any) { put(m, name, value) })
}

func put(m map[string]any, name string, value any) {
	if value == nil {
		if _, ok := m[name]; !ok {
			panic("there is no " + name)
		}
		delete(m, name)
		return
	}
	m[name] = value
}

// first returns the entry of /post/.
func first(m map[string]any) map[string]any {
	for _, e := range m["pages"].([]any) {
		if p := e.(map[string]any); strings.HasSuffix(p["url"].(string), "/post/") {
			return p
		}
	}
	panic("there is no /post/")
}

func inPages(f func(page map[string]any)) breaker {
	return onMembers(func(m map[string]any) { f(first(m)) })
}

func inPage(name string, value any) breaker {
	return inPages(func(p map[string]any) { put(p, name, value) })
}

func inSnapshot(name string, value any) breaker {
	return inPages(func(p map[string]any) { put(p["ai_snapshot"].(map[string]any), name, value) })
}

// checksums sets each ai_checksum except the first to the hash of the page as served.
func checksums(h http.Handler) http.Handler {
	var base *http.Request
	edit := onLists(editMembers(func(m map[string]any) {
		for i, e := range m["pages"].([]any) {
			p := e.(map[string]any)
			path := strings.TrimPrefix(p["url"].(string), m["site"].(string))
			if body := protocoltest.ServeIdentity(h, atPath(base, path)).Body.Bytes(); i > 0 {
				p["ai_checksum"] = checksumPrefix + canon.SHA256Hex(body)
			}
		}
	}))(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		base = r
		edit.ServeHTTP(w, r)
	})
}

// replaceIn replaces pairs of strings in the body at a path.
func replaceIn(path string, pairs ...string) breaker {
	return onPath(path, func(body []byte) []byte {
		if !bytes.Contains(body, []byte(pairs[0])) {
			panic(pairs[0] + " is not in " + string(body))
		}
		return []byte(strings.NewReplacer(pairs...).Replace(string(body)))
	})
}

func saysCanonical(path, url string) breaker {
	return replaceIn(path, "<head>", `<head><link rel="canonical" href="`+url+`">`)
}

func setHeader(path, name, value string) breaker {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != path {
				h.ServeHTTP(w, r)
				return
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			rec.Header().Del(name)
			if value != "" {
				rec.Header().Set(name, value)
			}
			protocoltest.Send(w, rec)
		})
	}
}

// dated replaces the ETag of a document by Last-Modified.
func dated(path string) breaker {
	return protocoltest.Both(setHeader(path, "ETag", ""), setHeader(path, "Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT"))
}

// moved moves the document at old to new.
func moved(old, new string) breaker {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case new:
				r = atPath(r, old)
			case old:
				http.NotFound(w, r)
				return
			}
			h.ServeHTTP(w, r)
		})
	}
}

func answer(path string, code int) breaker {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != path {
				h.ServeHTTP(w, r)
				return
			}
			w.WriteHeader(code)
		})
	}
}
