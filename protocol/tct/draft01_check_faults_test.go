package tct

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/canon"

	"github.com/millrace/millrace/protocol/protocoltest"
)

const (
	listPath   = "/llm-pages.json"
	pagePath01 = "/post/llm.json"
)

const hashLen = len(hashPrefix) + 64

type checkFault01 struct {
	rule, name string // the rule's ID without the protocol
	breaks     breaker01
}

// checkFaults01 contains at least one fault for every rule. Each fault violates only that rule.
var checkFaults01 = []checkFault01{
	{"1.4.1/index-link", "no link", protocoltest.SetHeader("/", "Link", `</llm.json>; rel="alternate"; type="application/json"`)},
	{"1.4.1/index-link", "no type", protocoltest.SetHeader("/", "Link", `</llm-pages.json>; rel="index", </llm.json>; rel="alternate"; type="application/json"`)},
	{"1.4.1/index-link", "only on the redirect", onlyOnRedirect},
	{"1.4.1/m-sitemap", "404", protocoltest.Respond(listPath, http.StatusNotFound)},
	{"1.4.1/m-sitemap", "no JSON", protocoltest.ReplaceBody(listPath, "]}", "],}")},
	{"1.4.1/m-sitemap", "something else", protocoltest.OnBody(listPath, func(string) string { return `{"a":1}` })},
	{"1.4.2/alternate-link", "no link", noLinks("/post/")},
	{"1.4.2/alternate-link", "another document", protocoltest.Both(noLinks("/post/"), protocoltest.SetHeader("/post/", "Link", `</llm.json>; rel="alternate"; type="application/json"`))},
	{"1.4.2/alternate-link", "no link element", noLinks("/about")},
	{"1.4.2/canonical-link", "none", protocoltest.SetHeader(pagePath01, "Link", "")},
	{"1.4.2/canonical-link", "another page", protocoltest.SetHeader(pagePath01, "Link", `</>; rel="canonical"`)},
	{"1.4.2/canonical-link", "two pages", protocoltest.SetHeader(pagePath01, "Link", `</post/>; rel="canonical", </>; rel="canonical"`)},

	{"1.5.1/content-type", "no charset", protocoltest.SetHeader(pagePath01, "Content-Type", "application/json")},
	{"1.5.1/content-type", "another type", protocoltest.SetHeader(pagePath01, "Content-Type", "text/json; charset=utf-8")},
	{"1.5.1/valid-json", "a comma", protocoltest.OnBody(pagePath01, func(s string) string { return strings.TrimSuffix(s, "}") + ",}" })},
	{"1.5.1/valid-json", "two values", protocoltest.OnBody(pagePath01, func(s string) string { return s + "{}" })},
	{"1.5.1/utf-8", "byte order mark", protocoltest.OnBody(pagePath01, func(s string) string { return "\uFEFF" + s })},
	{"1.5.1/utf-8", "latin-1", protocoltest.ReplaceBody(pagePath01, "Page 1", "P\xe1ge A")},
	{"1.5.2/object", "array", protocoltest.OnBody(pagePath01, func(s string) string { return "[" + s + "]" })},
	{"1.5.2/canonical-url", "missing", without01(pagePath01, "canonical_url")},
	{"1.5.2/canonical-url", "number", with01(pagePath01, "canonical_url", 1)},
	{"1.5.2/canonical-url", "another page", with01(pagePath01, "canonical_url", "https://site.example/other/")},
	{"1.5.2/title", "missing", without01(pagePath01, "title")},
	{"1.5.2/title", "null", with01(pagePath01, "title", nil)},
	{"1.5.2/content", "missing", without01(pagePath01, "content")},
	{"1.5.2/content", "array", with01(pagePath01, "content", []string{"x"})},
	{"1.5.2/plain-text", "markup", with01(pagePath01, "content", "Page 1\n<p class=x>Curly")},
	{"1.5.2/hash-form", "bare digits", protocoltest.ReplaceBody(pagePath01, `"hash":"sha256-`, `"hash":"`)},
	{"1.5.2/hash-form", "upper case", protocoltest.ReplaceBody(pagePath01, `"hash":"sha256-`, `"hash":"SHA256-`)},
	{"1.5.2/hash-equals-etag", "another hash", protocoltest.OnBody(pagePath01, func(s string) string {
		i := strings.Index(s, `"hash":"sha256-`) + len(`"hash":"sha256-`)
		return s[:i] + strings.Repeat("1", 64) + s[i+64:]
	})},
	{"1.5.2/profile", "missing", without01(pagePath01, "profile")},
	{"1.5.3/deterministic", "by language", pageAs(pagePath01, false, foreign, func(m map[string]any) ([]byte, string, string) {
		m["title"] = "Sivu 1"
		body, hash := encodePage(m)
		return body, hash, hash
	})},
	{"1.5.3/no-randomness", "a counter", counting},

	{"1.6.1/no-whitespace", "indented", protocoltest.OnBody(pagePath01, func(s string) string {
		var b bytes.Buffer
		if err := json.Indent(&b, []byte(s), "", " "); err != nil {
			panic(err)
		}
		return b.String()
	})},
	{"1.6.1/no-whitespace", "a last newline", protocoltest.OnBody(pagePath01, func(s string) string { return s + "\n" })},
	{"1.6.1/jcs", "an order of its own", pageAs(pagePath01, true, always, func(m map[string]any) ([]byte, string, string) {
		hash := hashPrefix + canon.SHA256Hex(reordered(m, ""))
		return reordered(m, hash), hash, hash
	})},
	{"1.6.1/jcs", "escapes of its own", pageAs(pagePath01, true, always, func(m map[string]any) ([]byte, string, string) {
		body, _ := encodePage(m)
		body = bytes.Replace(body, []byte("Page 1"), []byte(`Page \u0031`), 1)
		i := bytes.Index(body, []byte(`"hash":`))
		hash := hashPrefix + canon.SHA256Hex(slices.Concat(body[:i], body[i+len(`"hash":"",`)+hashLen:]))
		return slices.Concat(body[:i], []byte(`"hash":"`+hash+`"`), body[i+len(`"hash":""`)+hashLen:]), hash, hash
	})},
	{"1.6.1/jcs", "a name twice", pageAs(pagePath01, true, always, func(m map[string]any) ([]byte, string, string) {
		delete(m, "hash")
		body := append([]byte(`{"a":1,"a":1,`), canonical(m)[1:]...)
		hash := hashPrefix + canon.SHA256Hex(body)
		return append([]byte(`{"hash":"`+hash+`",`), body[1:]...), hash, hash
	})},
	{"1.6.2/strong-etag", "weak", protocoltest.OnHeader(pagePath01, func(_ *http.Request, h http.Header) { h.Set("ETag", "W/"+h.Get("ETag")) })},
	{"1.6.2/strong-etag", "missing", protocoltest.SetHeader(pagePath01, "ETag", "")},
	{"1.6.2/quoted-etag", "bare", protocoltest.OnHeader(pagePath01, func(_ *http.Request, h http.Header) { h.Set("ETag", strings.Trim(h.Get("ETag"), `"`)) })},
	{"1.6.2/etag-form", "a version", pageAs(pagePath01, false, always, func(m map[string]any) ([]byte, string, string) {
		body, hash := encodePage(m)
		return body, hash, "v7"
	})},
	{"1.6.2/hash-recomputed", "a hash of something else", pageAs(pagePath01, true, always, func(m map[string]any) ([]byte, string, string) {
		hash := hashPrefix + canon.SHA256Hex([]byte(m["content"].(string)))
		m["hash"] = hash
		return canonical(m), hash, hash
	})},
	{"1.6.2/wire-form", "another order", pageAs(pagePath01, false, always, func(m map[string]any) ([]byte, string, string) {
		_, hash := encodePage(m)
		return reordered(m, hash), hash, hash
	})},
	{"1.6.2/same-tag-same-body", "by language", protocoltest.OnResponse(pagePath01, func(r *http.Request, rec *httptest.ResponseRecorder) {
		if foreign(r) {
			rec.Body = bytes.NewBufferString(strings.Replace(rec.Body.String(), "Page 1", "Sivu 1", 1))
		}
	})},
	{"1.6.3/tag-per-request", "by language", protocoltest.OnHeader(pagePath01, func(r *http.Request, h http.Header) {
		if foreign(r) {
			h.Set("ETag", otherTag)
		}
	})},

	{"1.7.1/version", "string", protocoltest.ReplaceBody(listPath, `"version":1`, `"version":"1"`)},
	{"1.7.1/version", "7", protocoltest.ReplaceBody(listPath, `"version":1`, `"version":7`)},
	{"1.7.1/version", "missing", protocoltest.ReplaceBody(listPath, `"version":1,`, ``)},
	{"1.7.1/profile", "missing", protocoltest.ReplaceBody(listPath, `"profile":"tct-1",`, ``)},
	{"1.7.1/items", "missing", protocoltest.ReplaceBody(listPath, `"items"`, `"pages"`)},
	{"1.7.1/items", "no objects", protocoltest.ReplaceBody(listPath, `"items":[`, `"items":["/x/",`)},
	{"1.7.1/c-url", "missing", protocoltest.ReplaceBody(listPath, `"cUrl":"BASE/post/",`, ``)},
	{"1.7.1/c-url", "relative", protocoltest.ReplaceBody(listPath, `"cUrl":"BASE/post/"`, `"cUrl":"/post/"`)},
	{"1.7.1/c-url", "another page", protocoltest.ReplaceBody(listPath, `"cUrl":"BASE/post/"`, `"cUrl":"BASE/x/"`)},
	{"1.7.1/m-url", "wrong case", protocoltest.ReplaceBody(listPath, `"mUrl":"BASE/post/`, `"murl":"BASE/post/`)},
	{"1.7.1/m-url", "404", protocoltest.ReplaceBody(listPath, `"items":[`, `"items":[{"cUrl":"BASE/x/","mUrl":"BASE/x.json","etag":`+otherTag+`},`)},
	{"1.7.1/etag-form", "bare digits", protocoltest.ReplaceBody(listPath, `"etag":"sha256-`, `"etag":"`)},
	{"1.7.1/etag-form", "draft-00", protocoltest.ReplaceBody(listPath, `"etag"`, `"contentHash"`)},
	{"1.7.2/content-type", "no charset", protocoltest.SetHeader(listPath, "Content-Type", "application/json")},
	{"1.7.2/cache-control", "none", protocoltest.SetHeader(listPath, "Cache-Control", "")},
	{"1.7.2/cache-control", "a year", protocoltest.SetHeader(listPath, "Cache-Control", "public, max-age=31536000")},
	{"1.7.2/vary", "none", protocoltest.SetHeader(listPath, "Vary", "")},
	{"1.7.2/vary", "something else", protocoltest.SetHeader(listPath, "Vary", "Accept, Origin")},
	{"1.7.3/parity", "stale", protocoltest.OnBody(listPath, func(s string) string {
		i := strings.Index(s, `"etag":"sha256-`) + len(`"etag":"sha256-`)
		return s[:i] + strings.Repeat("1", 64) + s[i+64:]
	})},

	{"1.8.2/if-none-match", "never 304", onTags01(func(v string) string {
		if strings.HasPrefix(v, `"`) && !strings.Contains(v, ",") {
			return ""
		}
		return v
	})},
	{"1.8.2/if-none-match-list", "one tag only", onTags01(func(v string) string {
		if strings.Contains(v, ",") {
			return ""
		}
		return v
	})},
	{"1.8.2/if-none-match-any", "no *", onTags01(func(v string) string { return strings.Trim(v, "*") })},
	{"1.8.2/if-none-match-weak", "strong comparison", onTags01(func(v string) string {
		if strings.HasPrefix(v, "W/") {
			return ""
		}
		return v
	})},
	{"1.8.2/if-none-match-other", "any tag will do", onTags01(func(string) string { return "*" })},
	{"1.8.2/precedence", "the date decides", protocoltest.OnRequest(pagePath01, func(r *http.Request) {
		if r.Header.Get("If-Modified-Since") != "" {
			r.Header.Del("If-None-Match")
		}
	})},
	{"1.8.2/precedence", "together they count for nothing", protocoltest.OnRequest(pagePath01, func(r *http.Request) {
		if r.Header.Get("If-Modified-Since") != "" {
			r.Header.Del("If-None-Match")
			r.Header.Del("If-Modified-Since")
		}
	})},
	{"1.8.2/not-modified-fields", "no ETag", on30401("ETag")},
	{"1.8.2/not-modified-fields", "no Vary", on30401("Vary")},
	{"1.8.2/cache-control", "none", protocoltest.SetHeader(pagePath01, "Cache-Control", "")},
	{"1.8.2/cache-control", "immutable", protocoltest.SetHeader(pagePath01, "Cache-Control", "max-age=60, immutable")},

	{"1.10/https", "an M-URL", protocoltest.Both(
		protocoltest.ReplaceBody(listPath, "BASE/post/llm.json", "http://site.example/post/llm.json"),
		protocoltest.SetHeader("/post/", "Link", `<http://site.example/post/llm.json>; rel="alternate"; type="application/json"`),
	)},
	{"1.10/https", "a redirect to http", protocoltest.OnResponse(pagePath01, func(r *http.Request, rec *httptest.ResponseRecorder) {
		if r.URL.Scheme == "https" {
			rec.Code = http.StatusFound
			clear(rec.Header())
			rec.Header().Set("Location", "http://site.example"+pagePath01)
		}
	})},
	{"1.10/access-control", "an open M-URL", protocoltest.Respond("/post/", http.StatusUnauthorized)},
	{"1.10/no-leak", "a closed M-URL", protocoltest.Respond(pagePath01, http.StatusUnauthorized)},
	{"1.10/etag-intact", "weakened", protocoltest.OnHeader(pagePath01, func(r *http.Request, h http.Header) {
		if gzipped(r) {
			h.Set("ETag", "W/"+h.Get("ETag"))
		}
	})},
	{"1.10/etag-intact", "a suffix", protocoltest.OnHeader(pagePath01, func(r *http.Request, h http.Header) {
		if gzipped(r) {
			h.Set("ETag", strings.TrimSuffix(h.Get("ETag"), `"`)+`-gzip"`)
		}
	})},
	{"1.10/etag-intact", "stripped from the list", protocoltest.OnHeader(listPath, func(r *http.Request, h http.Header) {
		if gzipped(r) {
			h.Del("ETag")
		}
	})},
	{"G.1.1/vary", "none", protocoltest.SetHeader(pagePath01, "Vary", "")},
}

func gzipped(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") }

func foreign(r *http.Request) bool { return r.Header.Get("Accept-Language") != "" }

// onTags01 edits the If-None-Match of requests for the page.
func onTags01(f func(string) string) breaker01 {
	return protocoltest.OnRequest(pagePath01, func(r *http.Request) {
		if v := r.Header.Get("If-None-Match"); v != "" {
			r.Header.Del("If-None-Match")
			if v = f(v); v != "" {
				r.Header.Set("If-None-Match", v)
			}
		}
	})
}

func on30401(name string) breaker01 {
	return protocoltest.OnResponse(pagePath01, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		if rec.Code == http.StatusNotModified {
			rec.Header().Del(name)
		}
	})
}

// onlyOnRedirect redirects the home page, but leaves the link to the list on the redirect.
func onlyOnRedirect(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Link", `</llm-pages.json>; rel="index"; type="application/json"`)
			http.Redirect(w, r, "/en/", http.StatusFound)
		case "/en/":
			w.Header().Set("Link", `</llm.json>; rel="alternate"; type="application/json"`)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// counting serves a new title for each plain request after the first.
func counting(h http.Handler) http.Handler {
	n := 0
	plain := func(r *http.Request) bool {
		if r.Header.Get("Accept-Encoding") != "identity" || r.Header.Get("If-None-Match") != "" || foreign(r) {
			return false
		}
		n++
		return n > 1
	}
	return pageAs(pagePath01, false, plain, func(m map[string]any) ([]byte, string, string) {
		m["title"] = fmt.Sprint("Page 1, served ", n)
		body, hash := encodePage(m)
		return body, hash, hash
	})(h)
}

// reordered encodes a page with its names in descending order and the hash last.
func reordered(m map[string]any, hash string) []byte {
	var b bytes.Buffer
	sep := byte('{')
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(m))) {
		if name != "hash" {
			b.WriteByte(sep)
			fmt.Fprintf(&b, "%q:%s", name, canonical(m[name]))
			sep = ','
		}
	}
	if hash != "" {
		fmt.Fprintf(&b, `,"hash":%q`, hash)
	}
	b.WriteByte('}')
	return b.Bytes()
}
