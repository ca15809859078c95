package tct00

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"

	"github.com/millrace/millrace/internal/tct"
	"github.com/millrace/millrace/protocol/protocoltest"
)

const pagePath = "/post/llm/"

type checkFault struct {
	rule, name string // the rule's ID without the protocol
	breaks     breaker
}

// checkFaults has one fault or more for every rule. Each trips that rule and
// no other.
var checkFaults = []checkFault{
	{"3.1/alternate-element", "none", protocoltest.ReplaceBody("/post/", "alternate", "prefetch")},
	{"3.1/alternate-element", "another document", protocoltest.ReplaceBody("/post/", "/post/llm/", "/llm/")},
	{"3.1/alternate-element", "another type", protocoltest.ReplaceBody("/post/", "application/json", "text/plain")},
	{"3.1/alternate-element", "only in the header", protocoltest.Both(
		protocoltest.ReplaceBody("/post/", "alternate", "prefetch"),
		protocoltest.SetHeader("/post/", "Link", `</post/llm/>; rel="alternate"; type="application/json"`),
	)},
	{"3.2/canonical-link", "none", protocoltest.SetHeader(pagePath, "Link", "")},
	{"3.2/canonical-link", "another page", protocoltest.SetHeader(pagePath, "Link", `</>; rel="canonical"`)},
	{"3.2/canonical-link", "two pages", protocoltest.SetHeader(pagePath, "Link", `</post/>; rel="canonical", </>; rel="canonical"`)},
	{"3.3/pattern", "one of its own", moved("/post/llm/", "/x123")},
	{"3.3/manifest", "another pattern", protocoltest.Both(protocoltest.Respond(manifestName, http.StatusNotFound), moved("/llm/", "/m.json"))},
	{"3.4/content-pages", "a category", protocoltest.OnBody(listName, func(s string) string {
		murl := regexp.MustCompile(`"mUrl":"([^"]*)/post/llm/"`).FindStringSubmatch(s)[1]
		return strings.TrimSuffix(s, tct.ListTail) + `,{"cUrl":"` + murl + `/category/a/","mUrl":"` + murl + `/post/llm/","contentHash":` + tct.OtherTag + `}` + tct.ListTail
	})},
	{"3.4/no-archives", "an archive", protocoltest.Both(
		protocoltest.OnBody("/", func(s string) string { return s + `<a href="/2025/10/">October</a>` }),
		protocoltest.OnRequest("/2025/10/llm/", func(r *http.Request) { r.URL.Path = "/about/llm/" }),
	)},

	{"4.1/fingerprint", "of something else", with(pagePath, "content", "Page 1, of which nobody knew")},
	{"4.2/etag", "none", protocoltest.SetHeader(pagePath, "ETag", "")},
	{"4.2/strong-etag", "weak", protocoltest.OnHeader(pagePath, func(_ *http.Request, h http.Header) { h.Set("ETag", "W/"+h.Get("ETag")) })},
	{"4.2/strong-etag", "bare", protocoltest.OnHeader(pagePath, func(_ *http.Request, h http.Header) { h.Set("ETag", strings.Trim(h.Get("ETag"), `"`)) })},
	{"4.2/etag-prefix", "bare digits", tagged(pagePath, func(tag string) string { return strings.TrimPrefix(tag, tct.HashPrefix) })},
	{"4.2/etag-digits", "too few", tagged(pagePath, func(tag string) string { return tag[:len(tag)-1] })},
	{"4.2/etag-digits", "a coding", tagged(pagePath, func(tag string) string { return tag + "-gzip" })},

	{"5.1/precedence", "the date decides", protocoltest.OnRequest(pagePath, func(r *http.Request) {
		if r.Header.Get("If-Modified-Since") != "" {
			r.Header.Del("If-None-Match")
		}
	})},
	{"5.1/precedence", "together they count for nothing", protocoltest.OnRequest(pagePath, func(r *http.Request) {
		if r.Header.Get("If-Modified-Since") != "" {
			r.Header.Del("If-None-Match")
			r.Header.Del("If-Modified-Since")
		}
	})},
	{"5.2/not-modified", "never 304", onTags(func(v string) string {
		if strings.HasPrefix(v, `"`) && !strings.Contains(v, ",") {
			return ""
		}
		return v
	})},
	{"5.2/not-modified-list", "one tag only", onTags(func(v string) string {
		if strings.Contains(v, ",") {
			return ""
		}
		return v
	})},
	{"5.2/not-modified-any", "no *", onTags(func(v string) string { return strings.Trim(v, "*") })},
	{"5.2/not-modified-weak", "strong comparison", onTags(func(v string) string {
		if strings.HasPrefix(v, "W/") {
			return ""
		}
		return v
	})},
	{"5.2/modified", "any tag will do", onTags(func(string) string { return "*" })},
	{"5.2/not-modified-fields", "no ETag", on304("ETag")},
	{"5.2/not-modified-fields", "no Last-Modified", on304("Last-Modified")},
	{"5.2/not-modified-fields", "no Cache-Control", on304("Cache-Control")},
	{"5.3/cache-control", "none", protocoltest.SetHeader(pagePath, "Cache-Control", "")},
	{"5.3/cache-control", "an hour", protocoltest.SetHeader(pagePath, "Cache-Control", "max-age=3600, must-revalidate")},
	{"5.3/cache-control", "no must-revalidate", protocoltest.SetHeader(pagePath, "Cache-Control", "private, max-age=0")},
	{"5.4/vary", "none", protocoltest.SetHeader(pagePath, "Vary", "")},
	{"5.4/vary", "something else", protocoltest.SetHeader(pagePath, "Vary", "Accept-Encoding")},

	{"6.1/sitemap", "404", protocoltest.Respond(listName, http.StatusNotFound)},
	{"6.1/sitemap", "no JSON", protocoltest.ReplaceBody(listName, "]}", "],}")},
	{"6.1/sitemap", "something else", protocoltest.OnBody(listName, func(string) string { return `{"a":1}` })},
	{"6.1/version", "string", protocoltest.ReplaceBody(listName, `"version":1`, `"version":"1"`)},
	{"6.1/version", "7", protocoltest.ReplaceBody(listName, `"version":1`, `"version":7`)},
	{"6.1/version", "missing", protocoltest.ReplaceBody(listName, `"version":1,`, ``)},
	{"6.1/profile", "missing", protocoltest.ReplaceBody(listName, `"profile":"tct-1",`, ``)},
	{"6.1/items", "missing", protocoltest.ReplaceBody(listName, `"items"`, `"pages"`)},
	{"6.1/items", "no objects", protocoltest.ReplaceBody(listName, `"items":[`, `"items":["/x/",`)},
	{"6.1/c-url", "missing", protocoltest.ReplaceBody(listName, `"cUrl":"BASE/post/",`, ``)},
	{"6.1/c-url", "relative", protocoltest.ReplaceBody(listName, `"cUrl":"BASE/post/"`, `"cUrl":"/post/"`)},
	{"6.1/c-url", "another page", protocoltest.ReplaceBody(listName, `"cUrl":"BASE/post/"`, `"cUrl":"BASE/x/"`)},
	{"6.1/m-url", "wrong case", protocoltest.ReplaceBody(listName, `"mUrl":"BASE/post/`, `"murl":"BASE/post/`)},
	{"6.1/m-url", "404", protocoltest.ReplaceBody(listName, tct.ListTail, `,{"cUrl":"BASE/x/","mUrl":"BASE/x/llm/","contentHash":`+tct.OtherTag+`}`+tct.ListTail)},
	{"6.1/modified", "words", protocoltest.ReplaceBody(listName, `"modified":"2026`, `"modified":"in 2026`)},
	{"6.1/modified", "null", protocoltest.OnBody(listName, func(s string) string {
		return regexp.MustCompile(`"modified":"[^"]*"`).ReplaceAllString(s, `"modified":null`)
	})},
	{"6.1/content-hash", "bare digits", protocoltest.ReplaceBody(listName, `"contentHash":"sha256-`, `"contentHash":"`)},
	{"6.1/content-hash", "draft-01", protocoltest.ReplaceBody(listName, `"contentHash"`, `"etag"`)},
	{"6.1/parity", "stale", protocoltest.OnBody(listName, func(s string) string {
		i := strings.Index(s, `"contentHash":"sha256-`) + len(`"contentHash":"sha256-`)
		return s[:i] + strings.Repeat("1", 64) + s[i+64:]
	})},
	{"6.1/homepage-first", "last", onMembers(listName, func(m map[string]any) {
		items := m["items"].([]any)
		m["items"] = append(items[1:], items[0])
	})},

	{"7.1/policy-place", "elsewhere", protocoltest.Both(
		protocoltest.Respond(policyName, http.StatusNotFound),
		protocoltest.SetHeader(listName, "Link", `</about/llm/>; rel="describedby"`),
		protocoltest.OnBody("/about/llm/", func(s string) string { return s }),
	)},
	{"7.2/policy-schema", "no JSON", protocoltest.OnBody(policyName, func(s string) string { return s + "," })},
	{"7.2/policy-schema", "no profile", without(policyName, "profile")},
	{"7.2/policy-schema", "a string for a boolean", with(policyName, "purposes", map[string]string{"allow_ai_train": "no"})},
	{"7.2/policy-schema", "a list for an object", with(policyName, "requirements", []string{"attribution"})},
	{"7.2/policy-schema", "a rate below zero", with(policyName, "rate_hints", map[string]int{"max_requests_per_day": -1})},
	{"7.2/policy-schema", "words for a time", with(policyName, "effective", "soon")},
	{"7.3/describedby-link", "none", protocoltest.SetHeader(listName, "Link", "")},
	{"7.3/describedby-link", "another document", protocoltest.SetHeader(listName, "Link", `</about>; rel="describedby"`)},

	{"8.1/content-type", "another type", protocoltest.SetHeader(pagePath, "Content-Type", "text/json; charset=utf-8")},
	{"8.1/content-type", "none", protocoltest.SetHeader(pagePath, "Content-Type", "")},
	{"8.2/object", "a comma", protocoltest.OnBody(pagePath, func(s string) string { return strings.TrimSuffix(s, "}") + ",}" })},
	{"8.2/object", "array", protocoltest.OnBody(pagePath, func(s string) string { return "[" + s + "]" })},
	{"8.2/canonical-url", "missing", without(pagePath, "canonical_url")},
	{"8.2/canonical-url", "number", with(pagePath, "canonical_url", 1)},
	{"8.2/canonical-url", "another page", with(pagePath, "canonical_url", "https://site.example/other/")},
	{"8.2/title", "missing", without(pagePath, "title")},
	{"8.2/title", "null", with(pagePath, "title", nil)},
	{"8.2/content", "missing", without(pagePath, "content")},
	{"8.2/content", "array", with(pagePath, "content", []string{"x"})},
	{"8.2/hash", "missing", without(pagePath, "hash")},
	{"8.2/hash", "a number", with(pagePath, "hash", 7)},
	{"8.2/hash-equals-etag", "another hash", with(pagePath, "hash", strings.Repeat("1", 64))},
	{"8.2/profile", "missing", without(pagePath, "profile")},
	{"9.2/no-leak", "a closed M-URL", protocoltest.Respond(pagePath, http.StatusUnauthorized)},
}

// onTags edits the If-None-Match of requests for the page.
func onTags(f func(string) string) breaker {
	return protocoltest.OnRequest(pagePath, func(r *http.Request) {
		if v := r.Header.Get("If-None-Match"); v != "" {
			r.Header.Del("If-None-Match")
			if v = f(v); v != "" {
				r.Header.Set("If-None-Match", v)
			}
		}
	})
}

func on304(name string) breaker {
	return protocoltest.OnResponse(pagePath, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		if rec.Code == http.StatusNotModified {
			rec.Header().Del(name)
			rec.Body = new(bytes.Buffer)
		}
	})
}
