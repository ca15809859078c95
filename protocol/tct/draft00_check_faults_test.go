package tct

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"

	"github.com/millrace/millrace/protocol/protocoltest"
)

const pagePath00 = "/post/llm/"

type checkFault00 struct {
	rule, name string // the rule's ID without the protocol
	breaks     breaker00
}

// checkFaults00 contains at least one fault for every rule. Each fault violates only that rule.
var checkFaults00 = []checkFault00{
	{"3.1/alternate-element", "none", protocoltest.ReplaceBody("/post/", "alternate", "prefetch")},
	{"3.1/alternate-element", "another document", protocoltest.ReplaceBody("/post/", "/post/llm/", "/llm/")},
	{"3.1/alternate-element", "another type", protocoltest.ReplaceBody("/post/", "application/json", "text/plain")},
	{"3.1/alternate-element", "only in the header", protocoltest.Both(
		protocoltest.ReplaceBody("/post/", "alternate", "prefetch"),
		protocoltest.SetHeader("/post/", "Link", `</post/llm/>; rel="alternate"; type="application/json"`),
	)},
	{"3.2/canonical-link", "none", protocoltest.SetHeader(pagePath00, "Link", "")},
	{"3.2/canonical-link", "another page", protocoltest.SetHeader(pagePath00, "Link", `</>; rel="canonical"`)},
	{"3.2/canonical-link", "two pages", protocoltest.SetHeader(pagePath00, "Link", `</post/>; rel="canonical", </>; rel="canonical"`)},
	{"3.3/pattern", "one of its own", moved("/post/llm/", "/x123")},
	{"3.3/manifest", "another pattern", protocoltest.Both(protocoltest.Respond(manifestName, http.StatusNotFound), moved("/llm/", "/m.json"))},
	{"3.4/content-pages", "a category", protocoltest.OnBody(listName00, func(s string) string {
		murl := regexp.MustCompile(`"mUrl":"([^"]*)/post/llm/"`).FindStringSubmatch(s)[1]
		return strings.TrimSuffix(s, listTail) + `,{"cUrl":"` + murl + `/category/a/","mUrl":"` + murl + `/post/llm/","contentHash":` + otherTag + `}` + listTail
	})},
	{"3.4/no-archives", "an archive", protocoltest.Both(
		protocoltest.OnBody("/", func(s string) string { return s + `<a href="/2025/10/">October</a>` }),
		protocoltest.OnRequest("/2025/10/llm/", func(r *http.Request) { r.URL.Path = "/about/llm/" }),
	)},

	{"4.1/fingerprint", "of something else", with00(pagePath00, "content", "Page 1, another one")},
	{"4.2/etag", "none", protocoltest.SetHeader(pagePath00, "ETag", "")},
	{"4.2/strong-etag", "weak", protocoltest.OnHeader(pagePath00, func(_ *http.Request, h http.Header) { h.Set("ETag", "W/"+h.Get("ETag")) })},
	{"4.2/strong-etag", "bare", protocoltest.OnHeader(pagePath00, func(_ *http.Request, h http.Header) { h.Set("ETag", strings.Trim(h.Get("ETag"), `"`)) })},
	{"4.2/etag-prefix", "bare digits", tagged(pagePath00, func(tag string) string { return strings.TrimPrefix(tag, hashPrefix) })},
	{"4.2/etag-digits", "too few", tagged(pagePath00, func(tag string) string { return tag[:len(tag)-1] })},
	{"4.2/etag-digits", "a coding", tagged(pagePath00, func(tag string) string { return tag + "-gzip" })},

	{"5.1/precedence", "the date decides", protocoltest.OnRequest(pagePath00, func(r *http.Request) {
		if r.Header.Get("If-Modified-Since") != "" {
			r.Header.Del("If-None-Match")
		}
	})},
	{"5.1/precedence", "together they count for nothing", protocoltest.OnRequest(pagePath00, func(r *http.Request) {
		if r.Header.Get("If-Modified-Since") != "" {
			r.Header.Del("If-None-Match")
			r.Header.Del("If-Modified-Since")
		}
	})},
	{"5.2/not-modified", "never 304", onTags00(func(v string) string {
		if strings.HasPrefix(v, `"`) && !strings.Contains(v, ",") {
			return ""
		}
		return v
	})},
	{"5.2/not-modified-list", "one tag only", onTags00(func(v string) string {
		if strings.Contains(v, ",") {
			return ""
		}
		return v
	})},
	{"5.2/not-modified-any", "no *", onTags00(func(v string) string { return strings.Trim(v, "*") })},
	{"5.2/not-modified-weak", "strong comparison", onTags00(func(v string) string {
		if strings.HasPrefix(v, "W/") {
			return ""
		}
		return v
	})},
	{"5.2/modified", "any tag will do", onTags00(func(string) string { return "*" })},
	{"5.2/not-modified-fields", "no ETag", on30400("ETag")},
	{"5.2/not-modified-fields", "no Last-Modified", on30400("Last-Modified")},
	{"5.2/not-modified-fields", "no Cache-Control", on30400("Cache-Control")},
	{"5.3/cache-control", "none", protocoltest.SetHeader(pagePath00, "Cache-Control", "")},
	{"5.3/cache-control", "an hour", protocoltest.SetHeader(pagePath00, "Cache-Control", "max-age=3600, must-revalidate")},
	{"5.3/cache-control", "no must-revalidate", protocoltest.SetHeader(pagePath00, "Cache-Control", "private, max-age=0")},
	{"5.4/vary", "none", protocoltest.SetHeader(pagePath00, "Vary", "")},
	{"5.4/vary", "something else", protocoltest.SetHeader(pagePath00, "Vary", "Accept-Encoding")},

	{"6.1/sitemap", "404", protocoltest.Respond(listName00, http.StatusNotFound)},
	{"6.1/sitemap", "no JSON", protocoltest.ReplaceBody(listName00, "]}", "],}")},
	{"6.1/sitemap", "something else", protocoltest.OnBody(listName00, func(string) string { return `{"a":1}` })},
	{"6.1/version", "string", protocoltest.ReplaceBody(listName00, `"version":1`, `"version":"1"`)},
	{"6.1/version", "7", protocoltest.ReplaceBody(listName00, `"version":1`, `"version":7`)},
	{"6.1/version", "missing", protocoltest.ReplaceBody(listName00, `"version":1,`, ``)},
	{"6.1/profile", "missing", protocoltest.ReplaceBody(listName00, `"profile":"tct-1",`, ``)},
	{"6.1/items", "missing", protocoltest.ReplaceBody(listName00, `"items"`, `"pages"`)},
	{"6.1/items", "no objects", protocoltest.ReplaceBody(listName00, `"items":[`, `"items":["/x/",`)},
	{"6.1/c-url", "missing", protocoltest.ReplaceBody(listName00, `"cUrl":"BASE/post/",`, ``)},
	{"6.1/c-url", "relative", protocoltest.ReplaceBody(listName00, `"cUrl":"BASE/post/"`, `"cUrl":"/post/"`)},
	{"6.1/c-url", "another page", protocoltest.ReplaceBody(listName00, `"cUrl":"BASE/post/"`, `"cUrl":"BASE/x/"`)},
	{"6.1/m-url", "wrong case", protocoltest.ReplaceBody(listName00, `"mUrl":"BASE/post/`, `"murl":"BASE/post/`)},
	{"6.1/m-url", "404", protocoltest.ReplaceBody(listName00, listTail, `,{"cUrl":"BASE/x/","mUrl":"BASE/x/llm/","contentHash":`+otherTag+`}`+listTail)},
	{"6.1/modified", "words", protocoltest.ReplaceBody(listName00, `"modified":"2026`, `"modified":"in 2026`)},
	{"6.1/modified", "null", protocoltest.OnBody(listName00, func(s string) string {
		return regexp.MustCompile(`"modified":"[^"]*"`).ReplaceAllString(s, `"modified":null`)
	})},
	{"6.1/content-hash", "bare digits", protocoltest.ReplaceBody(listName00, `"contentHash":"sha256-`, `"contentHash":"`)},
	{"6.1/content-hash", "draft-01", protocoltest.ReplaceBody(listName00, `"contentHash"`, `"etag"`)},
	{"6.1/parity", "stale", protocoltest.OnBody(listName00, func(s string) string {
		i := strings.Index(s, `"contentHash":"sha256-`) + len(`"contentHash":"sha256-`)
		return s[:i] + strings.Repeat("1", 64) + s[i+64:]
	})},
	{"6.1/homepage-first", "last", onMembers(listName00, func(m map[string]any) {
		items := m["items"].([]any)
		m["items"] = append(items[1:], items[0])
	})},

	{"7.1/policy-place", "elsewhere", protocoltest.Both(
		protocoltest.Respond(policyName, http.StatusNotFound),
		protocoltest.SetHeader(listName00, "Link", `</about/llm/>; rel="describedby"`),
		protocoltest.OnBody("/about/llm/", func(s string) string { return s }),
	)},
	{"7.2/policy-schema", "no JSON", protocoltest.OnBody(policyName, func(s string) string { return s + "," })},
	{"7.2/policy-schema", "no profile", without00(policyName, "profile")},
	{"7.2/policy-schema", "a string for a boolean", with00(policyName, "purposes", map[string]string{"allow_ai_train": "no"})},
	{"7.2/policy-schema", "a list for an object", with00(policyName, "requirements", []string{"attribution"})},
	{"7.2/policy-schema", "a rate below zero", with00(policyName, "rate_hints", map[string]int{"max_requests_per_day": -1})},
	{"7.2/policy-schema", "words for a time", with00(policyName, "effective", "soon")},
	{"7.3/describedby-link", "none", protocoltest.SetHeader(listName00, "Link", "")},
	{"7.3/describedby-link", "another document", protocoltest.SetHeader(listName00, "Link", `</about>; rel="describedby"`)},

	{"8.1/content-type", "another type", protocoltest.SetHeader(pagePath00, "Content-Type", "text/json; charset=utf-8")},
	{"8.1/content-type", "none", protocoltest.SetHeader(pagePath00, "Content-Type", "")},
	{"8.2/object", "a comma", protocoltest.OnBody(pagePath00, func(s string) string { return strings.TrimSuffix(s, "}") + ",}" })},
	{"8.2/object", "array", protocoltest.OnBody(pagePath00, func(s string) string { return "[" + s + "]" })},
	{"8.2/canonical-url", "missing", without00(pagePath00, "canonical_url")},
	{"8.2/canonical-url", "number", with00(pagePath00, "canonical_url", 1)},
	{"8.2/canonical-url", "another page", with00(pagePath00, "canonical_url", "https://site.example/other/")},
	{"8.2/title", "missing", without00(pagePath00, "title")},
	{"8.2/title", "null", with00(pagePath00, "title", nil)},
	{"8.2/content", "missing", without00(pagePath00, "content")},
	{"8.2/content", "array", with00(pagePath00, "content", []string{"x"})},
	{"8.2/hash", "missing", without00(pagePath00, "hash")},
	{"8.2/hash", "a number", with00(pagePath00, "hash", 7)},
	{"8.2/hash-equals-etag", "another hash", with00(pagePath00, "hash", strings.Repeat("1", 64))},
	{"8.2/profile", "missing", without00(pagePath00, "profile")},
	{"9.2/no-leak", "a closed M-URL", protocoltest.Respond(pagePath00, http.StatusUnauthorized)},
}

// onTags00 edits the If-None-Match of requests for the page.
func onTags00(f func(string) string) breaker00 {
	return protocoltest.OnRequest(pagePath00, func(r *http.Request) {
		if v := r.Header.Get("If-None-Match"); v != "" {
			r.Header.Del("If-None-Match")
			if v = f(v); v != "" {
				r.Header.Set("If-None-Match", v)
			}
		}
	})
}

func on30400(name string) breaker00 {
	return protocoltest.OnResponse(pagePath00, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		if rec.Code == http.StatusNotModified {
			rec.Header().Del(name)
			rec.Body = new(bytes.Buffer)
		}
	})
}
