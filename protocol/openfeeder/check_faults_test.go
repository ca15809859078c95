package openfeeder

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/protocol/protocoltest"
)

// breaker wraps the handler of a valid site and adds one fault.
type breaker = protocoltest.Breaker

// matcher reports whether a fault applies to a request.
type matcher func(path string, q url.Values) bool

func wellKnown(path string, _ url.Values) bool { return path == discovery }

func theEndpoint(path string, _ url.Values) bool { return path == endpoint }

func aPage(path string, q url.Values) bool { return path == endpoint && q.Get("url") == "/post/" }

// aPlainPage matches requests for a page without a limit.
func aPlainPage(path string, q url.Values) bool { return aPage(path, q) && !q.Has("limit") }

// aReadPage matches the first request for a page, by the checker or by a reader.
func aReadPage(path string, q url.Values) bool {
	return aPage(path, q) && (len(q) == 1 || len(q) == 2 && q.Get("limit") == fmt.Sprint(maxLimit))
}

func theIndex(path string, q url.Values) bool {
	return path == endpoint && !q.Has("url") && !q.Has("q") && !q.Has("since") && !q.Has("until") && q.Get("limit") != "1" && q.Get("limit") != "2"
}

func theQuestion(path string, q url.Values) bool { return path == endpoint && q.Has("q") }

func theRareQuestion(path string, q url.Values) bool {
	return path == endpoint && strings.HasPrefix(q.Get("q"), "flour")
}

func theSync(path string, q url.Values) bool {
	return path == endpoint && q.Has("since") && !q.Has("until") && !q.Has("q")
}

func theClosedWindow(path string, q url.Values) bool {
	return path == endpoint && q.Get("until") == early && q.Get("since") == "1990-01-01T00:00:00Z" && !q.Has("q")
}

func untilAlone(path string, q url.Values) bool {
	return path == endpoint && q.Get("until") == early && !q.Has("since")
}

func theCart(path string, q url.Values) bool { return path == endpoint && q.Get("url") == "/cart/" }

func theMissing(path string, q url.Values) bool {
	return path == endpoint && strings.HasPrefix(q.Get("url"), "/millrace-check/")
}

// on edits the responses to the requests that m matches.
func on(m matcher, f func(r *http.Request, rec *httptest.ResponseRecorder)) breaker {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !m(r.URL.Path, r.URL.Query()) {
				h.ServeHTTP(w, r)
				return
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			for _, name := range []string{"Content-Digest", "Content-Length"} {
				rec.Header().Del(name)
			}
			f(r, rec)
			maps.Copy(w.Header(), rec.Header())
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
		})
	}
}

// edit edits the JSON of responses.
func edit(m matcher, f func(o map[string]any)) breaker {
	return on(m, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		var o map[string]any
		if rec.Code == http.StatusNotModified {
			return
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &o); err != nil {
			panic(err)
		}
		f(o)
		b, err := json.Marshal(o)
		if err != nil {
			panic(err)
		}
		rec.Body = bytes.NewBuffer(b)
	})
}

// set sets a member to a value, or removes it if the value is none.
func set(m matcher, value any, path ...string) breaker {
	return edit(m, func(o map[string]any) { put(o, value, path...) })
}

type none struct{}

func put(o map[string]any, value any, path ...string) {
	for _, name := range path[:len(path)-1] {
		o = o[name].(map[string]any)
	}
	last := path[len(path)-1]
	if value == (none{}) {
		if _, ok := o[last]; !ok {
			panic("there is no " + last)
		}
		delete(o, last)
		return
	}
	o[last] = value
}

// inList edits the first object of a list in a response.
func inList(m matcher, list, name string, value any) breaker {
	return edit(m, func(o map[string]any) {
		if all := o[list].([]any); len(all) > 0 {
			put(all[0].(map[string]any), value, name)
		}
	})
}

// header sets a header field, or removes it if the value is empty.
func header(m matcher, name, value string) breaker {
	return on(m, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		rec.Header().Del(name)
		if value != "" {
			rec.Header().Set(name, value)
		}
	})
}

// answer replaces responses by one with this status and body.
func answer(m matcher, code int, body string) breaker {
	return on(m, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		rec.Code, rec.Body = code, bytes.NewBufferString(body)
	})
}

// asks edits the queries of the requests that m matches.
func asks(m matcher, f func(q url.Values)) breaker {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if q := r.URL.Query(); m(r.URL.Path, q) {
				f(q)
				r = r.Clone(r.Context())
				r.URL.RawQuery = q.Encode()
				r.RequestURI = r.URL.RequestURI()
			}
			h.ServeHTTP(w, r)
		})
	}
}

// pieces replaces the chunks of a page by n chunks.
func pieces(n int) func(o map[string]any) {
	return func(o map[string]any) {
		list := make([]any, n)
		for i := range list {
			list[i] = map[string]any{"id": fmt.Sprint(i), "text": fmt.Sprint("Text ", i), "type": "paragraph", "relevance": nil}
		}
		o["chunks"] = list
		put(o, n, "meta", "total_chunks")
		put(o, n, "meta", "returned_chunks")
	}
}

func withLimit(limit string) matcher {
	return func(path string, q url.Values) bool {
		return path == endpoint && q.Has("url") && q.Get("limit") == limit
	}
}

// closedSite makes the endpoint require a key.
func closedSite(challenge string) breaker {
	return on(theEndpoint, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		rec.Code = http.StatusUnauthorized
		rec.Body = bytes.NewBuffer(failure{authRequired, "A key is needed."}.encode())
		rec.Header().Set("WWW-Authenticate", challenge)
	})
}

func grave(url, at any) breaker {
	return edit(theSync, func(o map[string]any) {
		stone := map[string]any{}
		if url != nil {
			stone["url"] = url
		}
		if at != nil {
			stone["deleted_at"] = at
		}
		o["deleted"] = []any{stone}
		put(o, 1, "sync", "counts", "deleted")
	})
}

const (
	goodURL  = "https://site.example/gone"
	goodTime = "2026-02-21T14:30:00Z"
)

// checkFaults contains at least one fault for every rule. Each fault violates only that rule.
var checkFaults = []struct {
	rule, name string // the rule's ID without the protocol
	breaks     breaker
}{
	{"2/well-known", "404", answer(wellKnown, 404, "")},
	{"2/well-known", "a page", protocoltest.Both(answer(wellKnown, 200, "<!doctype html>"), header(wellKnown, "Content-Type", "text/html"))},
	{"2/public", "401", answer(wellKnown, 401, "")},
	{"2/public", "403", answer(wellKnown, 403, `{"error":{"code":"AUTH_REQUIRED"}}`)},
	{"2/status", "203", on(wellKnown, func(_ *http.Request, rec *httptest.ResponseRecorder) { rec.Code = 203 })},
	{"2/content-type", "text", header(wellKnown, "Content-Type", "text/plain; charset=utf-8")},
	{"2/content-type", "none", header(wellKnown, "Content-Type", "application/octet-stream")},
	{"2.1/object", "broken", answer(wellKnown, 200, `{"version":"1.0",}`)},
	{"2.1/object", "a list", answer(wellKnown, 200, `[]`)},
	{"2.1/version", "missing", set(wellKnown, none{}, "version")},
	{"2.1/version", "a number", set(wellKnown, 1.0, "version")},
	{"2.1/site-name", "missing", set(wellKnown, none{}, "site", "name")},
	{"2.1/site-url", "relative", set(wellKnown, "/", "site", "url")},
	{"2.1/site-origin", "www", set(wellKnown, "https://www.site.example/", "site", "url")},
	{"2.1/site-origin", "www in all URLs", on(func(path string, _ url.Values) bool {
		return path == endpoint || path == "/.well-known/openfeeder.json"
	}, func(r *http.Request, rec *httptest.ResponseRecorder) {
		rec.Body = bytes.NewBufferString(strings.ReplaceAll(rec.Body.String(), "https://"+r.Host, "https://www.site.example"))
	})},
	{"2.1/site-origin", "http", set(wellKnown, "http://site.example/", "site", "url")},
	{"2.1/site-language", "missing", set(wellKnown, none{}, "site", "language")},
	{"2.1/site-language", "a name", set(wellKnown, "English language", "site", "language")},
	{"2.1/site-description", "a list", set(wellKnown, []string{"x"}, "site", "description")},
	{"2.1/feed-endpoint", "missing", set(wellKnown, none{}, "feed", "endpoint")},
	{"2.1/feed-type", "another", set(wellKnown, "rss", "feed", "type")},
	{"2.1/capabilities", "a string", set(wellKnown, `the "search"`, "capabilities")},
	{"2.1/contact", "a name", set(wellKnown, "the owner", "contact")},

	{"3/endpoint", "404", answer(theEndpoint, 404, "")},
	{"3/endpoint", "no JSON", answer(theEndpoint, 200, "<p>")},
	{"3/endpoint", "elsewhere", set(wellKnown, "https://other.example/openfeeder", "feed", "endpoint")},
	{"3/endpoint", "http", set(wellKnown, "http://site.example/openfeeder", "feed", "endpoint")},
	{"3.1/url", "500", answer(aPage, 500, "")},
	{"3.1/url", "the index", asks(aPage, func(q url.Values) { q.Del("url") })},
	{"3.1/q", "nothing", edit(theQuestion, func(o map[string]any) { o["items"], o["chunks"] = []any{}, []any{} })},
	{"3.1/q-later", "the first pages alone", edit(theRareQuestion, func(o map[string]any) { o["items"], o["chunks"] = []any{}, []any{} })},
	{"3.1/q-later", "others", edit(theRareQuestion, func(o map[string]any) {
		for _, list := range []string{"items", "chunks"} {
			for _, it := range o[list].([]any) {
				it.(map[string]any)["url"] = "https://site.example/x/"
			}
		}
	})},
	{"3.1/limit-index", "ignored", asks(func(path string, q url.Values) bool { return path == endpoint && len(q) == 1 && q.Get("limit") == "2" }, func(q url.Values) { q.Del("limit") })},
	{"3.1/page", "ignored", asks(func(path string, q url.Values) bool { return path == endpoint && q.Has("page") }, func(q url.Values) { q.Del("page") })},
	{"3.1/page", "from 0", set(theIndex, 0, "page")},
	{"3.1/limit", "ignored", asks(withLimit("1"), func(q url.Values) { q.Del("limit") })},
	{"3.1/limit-default", "all", edit(aPlainPage, pieces(11))},
	{"3.1/limit-max", "none", edit(withLimit("1000"), pieces(51))},
	{"3.1/min-score", "ignored", edit(func(path string, q url.Values) bool { return theQuestion(path, q) && q.Has("min_score") }, func(o map[string]any) {
		o["chunks"] = []any{map[string]any{"id": "1", "text": "x", "type": "paragraph", "relevance": 0.5}}
	})},
	{"3.1/min-score-alone", "counts", edit(func(path string, q url.Values) bool { return path == endpoint && q.Has("url") && q.Has("min_score") }, func(o map[string]any) { o["chunks"] = []any{} })},
	{"3.1/min-score-alone", "an error", answer(func(path string, q url.Values) bool { return path == endpoint && q.Has("url") && q.Has("min_score") }, 400, "")},

	{"3.2/schema", "missing", set(aPage, none{}, "schema")},
	{"3.2/schema", "another", set(aPage, "openfeeder/2.0", "schema")},
	{"3.2/canonical-url", "another page", set(aPage, "https://site.example/x/", "url")},
	{"3.2/canonical-url", "missing", set(aPage, none{}, "url")},
	{"3.2/title", "missing", set(aPage, none{}, "title")},
	{"3.2/title", "null", set(aPage, nil, "title")},
	{"3.2/author", "an object", set(aPage, map[string]any{"name": "A"}, "author")},
	{"3.2/author-there", "missing", set(aPage, none{}, "author")},
	{"3.2/updated-there", "missing", set(aPage, none{}, "updated")},
	{"3.2/published", "a day", set(aPage, "2026-01-01", "published")},
	{"3.2/updated", "a number", set(aPage, 1767225600, "updated")},
	{"3.2/language", "null", set(aPage, nil, "language")},
	{"3.2/summary", "missing", set(aPage, none{}, "summary")},
	{"3.2/chunks", "strings", edit(aReadPage, func(o map[string]any) {
		o["chunks"] = []any{"Text"}
		put(o, 1, "meta", "returned_chunks")
	})},
	{"3.2/chunk-id", "missing", inList(aPage, "chunks", "id", none{})},
	{"3.2/chunk-id", "twice", edit(aPage, func(o map[string]any) {
		for _, c := range o["chunks"].([]any) {
			c.(map[string]any)["id"] = "c"
		}
	})},
	{"3.2/chunk-id", "twice in an answer", edit(theQuestion, func(o map[string]any) {
		chunks := o["chunks"].([]any)
		o["chunks"] = append(chunks, chunks[0])
	})},
	{"3.2/chunk-text", "missing", inList(aPage, "chunks", "text", 7)},
	{"3.2/chunk-type", "another", inList(aPage, "chunks", "type", "table")},
	{"3.2/no-relevance", "a number", inList(aPage, "chunks", "relevance", 0.5)},
	{"3.2/relevance", "over 1", inList(theQuestion, "chunks", "relevance", 12.5)},
	{"3.2/relevance", "null", inList(theQuestion, "chunks", "relevance", nil)},
	{"3.2/total-chunks", "missing", set(aPage, none{}, "meta", "total_chunks")},
	{"3.2/total-chunks", "too few", set(aPage, 1, "meta", "total_chunks")},
	{"3.2/returned-chunks", "another", set(aPage, 7, "meta", "returned_chunks")},

	{"3.3/schema", "missing", set(theIndex, none{}, "schema")},
	{"3.3/type", "missing", set(theIndex, none{}, "type")},
	{"3.3/page", "a string", set(theIndex, "1", "page")},
	{"3.3/total-pages", "missing", set(theIndex, none{}, "total_pages")},
	{"3.3/items", "missing", set(theIndex, none{}, "items")},
	{"3.3/item-url", "missing", inList(theIndex, "items", "url", none{})},
	{"3.3/item-url", "another site", inList(theIndex, "items", "url", "https://other.example/")},
	{"3.3/item-title", "null", inList(theIndex, "items", "title", nil)},
	{"3.3/item-published", "a name", inList(theIndex, "items", "published", "yesterday")},
	{"3.3/item-summary", "missing", inList(theIndex, "items", "summary", none{})},

	{"3.4/since-date", "the index", asks(theSync, func(q url.Values) { q.Del("since") })},
	{"3.4/since-date", "an error", answer(theSync, 400, "")},
	{"3.4/since-updated", "published pages alone", edit(func(path string, q url.Values) bool {
		return path == endpoint && q.Get("since") == "2026-01-02T03:04:00Z"
	}, func(o map[string]any) {
		o["updated"] = slices.DeleteFunc(o["updated"].([]any), func(it any) bool { return strings.HasSuffix(it.(map[string]any)["url"].(string), "/post/") })
		o["added"] = slices.DeleteFunc(o["added"].([]any), func(it any) bool { return strings.HasSuffix(it.(map[string]any)["url"].(string), "/post/") })
	})},
	{"3.4/since-token", "refused", answer(func(path string, q url.Values) bool {
		return path == endpoint && strings.HasPrefix(q.Get("since"), "ey")
	}, 400, "")},
	{"3.4/openfeeder-version", "missing", set(theSync, none{}, "openfeeder_version")},
	{"3.4/sync-since", "missing", set(theSync, none{}, "sync", "since")},
	{"3.4/as-of", "missing", set(theSync, none{}, "sync", "as_of")},
	{"3.4/sync-token", "missing", set(theSync, none{}, "sync", "sync_token")},
	{"3.4/sync-token", "no date", set(theSync, base64.StdEncoding.EncodeToString([]byte(`{"t":"now"}`)), "sync", "sync_token")},
	{"3.4/counts", "wrong", set(theSync, 77, "sync", "counts", "added")},
	{"3.4/counts", "missing", set(theSync, none{}, "sync", "counts")},
	{"3.4/added", "missing", set(theSync, none{}, "added")},
	{"3.4/added", "no url", inList(theSync, "added", "url", none{})},
	{"3.4/added", "another site", inList(theSync, "added", "url", "https://other.example/")},
	{"3.4/updated", "null", set(theSync, nil, "updated")},
	{"3.4/deleted", "missing", set(theSync, none{}, "deleted")},
	{"3.4/deleted", "strings", set(theSync, []string{goodURL}, "deleted")},
	{"3.4/tombstone-url", "relative", grave("/gone", goodTime)},
	{"3.4/tombstone-url", "missing", grave(nil, goodTime)},
	{"3.4/tombstone-deleted-at", "missing", grave(goodURL, nil)},
	{"3.4/tombstone-deleted-at", "a day", grave(goodURL, "2026-02-21")},
	{"3.4/until", "ignored", asks(theClosedWindow, func(q url.Values) { q.Del("until") })},
	{"3.4/until", "an error", answer(theClosedWindow, 400, "")},
	{"3.4/until-alone", "since", set(untilAlone, early, "sync", "since")},
	{"3.4/until-alone", "an error", answer(untilAlone, 400, "")},
	{"3.4/until-deleted", "tombstones", set(untilAlone, []any{map[string]any{"url": goodURL, "deleted_at": goodTime}}, "deleted")},
	{"3.4/until-token", "accepted", asks(func(path string, q url.Values) bool {
		return path == endpoint && strings.HasPrefix(q.Get("until"), "ey")
	}, func(q url.Values) { q.Set("until", early) })},
	{"3.4/until-before-since", "accepted", asks(func(path string, q url.Values) bool {
		return path == endpoint && q.Get("since") > early && q.Has("until") && !q.Has("q")
	}, func(q url.Values) { q.Del("since") })},
	{"3.4/until-before-since", "another code", edit(func(path string, q url.Values) bool {
		return path == endpoint && q.Get("since") > early && q.Has("until") && !q.Has("q")
	}, func(o map[string]any) { put(o, "NOT_FOUND", "error", "code") })},
	{"3.4/q-wins", "the dates do", asks(func(path string, q url.Values) bool { return theQuestion(path, q) && q.Has("since") }, func(q url.Values) { q.Del("q") })},
	{"3.4/deleted-tracking", "a string", set(theSync, "no", "sync", "deleted_tracking")},

	{"4/no-scripts", "a script", inList(aPage, "chunks", "text", "A heading <script src=x.js></script>")},
	{"4/no-scripts", "a script of its own", inList(aPage, "chunks", "text", "A heading <script async>\nif (1 < 2) track('page')\n</script>")},
	{"4/no-scripts", "a frame", inList(aPage, "chunks", "text", "<IFRAME hidden SRC='https://t.example/'></IFRAME>")},
	{"4/no-scripts", "a pixel", inList(aPage, "chunks", "text", `<img src="/p.gif" width="1" height="1">`)},
	{"6/invalidated", "an old page", edit(func(path string, q url.Values) bool {
		return path == endpoint && strings.HasPrefix(q.Get("since"), "ey")
	}, func(o map[string]any) {
		o["updated"] = []any{map[string]any{"url": "/post/", "updated": "2026-01-05T00:00:00Z"}}
	})},
	{"6/cached", "missing", set(aPage, none{}, "meta", "cached")},
	{"6/cache-age-seconds", "a string", set(aPage, "10", "meta", "cache_age_seconds")},
	{"6/cache-age-seconds", "missing", set(aPage, none{}, "meta", "cache_age_seconds")},
	{"7/capability", "not listed", closedSite("Bearer")},
	{"7/bearer", "Basic", protocoltest.Both(closedSite(`Basic realm="x"`), set(wellKnown, []string{"auth"}, "capabilities"))},
	{"8/not-found", "200", on(theMissing, func(_ *http.Request, rec *httptest.ResponseRecorder) { rec.Code = 200 })},
	{"8/not-found", "500", on(theMissing, func(_ *http.Request, rec *httptest.ResponseRecorder) { rec.Code = 500 })},
	{"8/schema", "missing", set(theMissing, none{}, "schema")},
	{"8/code", "missing", set(theMissing, none{}, "error", "code")},
	{"8/code", "a number", set(theMissing, 404, "error", "code")},
	{"8/message", "missing", set(theMissing, none{}, "error", "message")},
	{"9/x-openfeeder", "missing", header(theEndpoint, "X-OpenFeeder", "")},
	{"9/x-openfeeder", "another", header(theEndpoint, "X-OpenFeeder", "2")},
	{"9/x-openfeeder-cache", "another", header(theEndpoint, "X-OpenFeeder-Cache", "maybe")},
	{"10/author", "an address", set(aPage, "A. Writer <writer@site.example>", "author")},
	{"11/robots-txt", "everything refused", answer(func(path string, _ url.Values) bool { return path == "/robots.txt" }, http.StatusOK, "User-agent: *\nDisallow: /\n")},
	{"12/intent", "refused", func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Openfeeder-Intent") != "" {
				http.Error(w, "", http.StatusForbidden)
				return
			}
			h.ServeHTTP(w, r)
		})
	}},
	{"12/cookies", "a cookie", header(theIndex, "Set-Cookie", "visitor=1")},
	{"10/exclusions", "a cart", protocoltest.Both(
		edit(theIndex, func(o map[string]any) {
			o["items"] = append(o["items"].([]any), map[string]any{"url": "/cart/", "title": "Cart", "published": nil, "summary": ""})
		}),
		asks(theCart, func(q url.Values) { q.Set("url", "/post/") }),
		set(theCart, "/cart/", "url"),
	)},
}

func TestFaults(t *testing.T) {
	faults := make([]protocoltest.Fault, 0, len(checkFaults))
	for _, f := range checkFaults {
		faults = append(faults, protocoltest.Fault{Rule: Name + "/" + f.rule, Name: f.name, Break: f.breaks})
	}
	protocoltest.Faults(t, Protocol(), faults)
}

func TestCross(t *testing.T) {
	protocoltest.Agreement{
		Protocol: Protocol(), Faults: crossFaults(),
		Unread: map[string]string{
			"2/status":               "203 is a 200 that a proxy has changed",
			"2.1/site-name":          "nothing is taken of it",
			"2.1/site-language":      "each page has its own",
			"2.1/feed-type":          "what is not static is asked as a server",
			"2.1/contact":            "nothing is taken of it",
			"3.1/q*":                 "a reader asks no questions",
			"3.1/min-score*":         "a reader asks no questions",
			"3.1/page":               "the index has one page",
			"3.1/limit*":             "a reader always asks for 50",
			"3.2/chunk-id":           "nothing is taken of it",
			"3.2/*relevance":         "nothing is taken of it",
			"3.3/type":               "schema and items say what it is",
			"3.3/item-*":             "the page's document says it",
			"3.4/openfeeder-version": "discovery has said it",
			"3.4/sync-since":         "nothing is taken of it",
			"3.4/as-of":              "the token counts",
			"3.4/sync-token#no date": "a token is opaque to clients",
			"3.4/until*":             "a reader closes no window",
			"3.4/q-wins":             "a reader asks no questions",
			"8/*":                    "an error is one, whatever it says",
		},
		Document: func(r *http.Request) string {
			q := r.URL.Query()
			q.Del("limit")
			q.Del("page")
			if q.Has("since") {
				q.Set("since", "any")
			}
			return r.URL.Path + "?" + q.Encode()
		},
	}.Run(t)
}

func crossFaults() []protocoltest.Fault {
	faults := make([]protocoltest.Fault, 0, len(checkFaults))
	for _, f := range checkFaults {
		faults = append(faults, protocoltest.Fault{Rule: Name + "/" + f.rule, Name: f.name, Break: f.breaks})
	}
	return faults
}
