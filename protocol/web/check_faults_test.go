package web

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
)

const (
	twinPath = "/post/index.md"
	pagePath = "/post/"
)

type checkFault struct {
	rule, name string // the rule's ID without the room
	breaks     breaker
}

// onMarkdown edits the Markdown that a page's own URL gives.
func onMarkdown(f func(r *http.Request, rec *httptest.ResponseRecorder)) breaker {
	return onResponse(pagePath, func(r *http.Request, rec *httptest.ResponseRecorder) {
		if strings.HasPrefix(rec.Header().Get("Content-Type"), "text/markdown") {
			f(r, rec)
		}
	})
}

// noLink takes a link from a page's header.
func noLink(path, rel string) breaker {
	return onResponse(path, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		var kept []string
		for _, l := range rec.Header()["Link"] {
			if !strings.Contains(l, rel) {
				kept = append(kept, l)
			}
		}
		rec.Header()["Link"] = kept
	})
}

// neverNotModified answers conditions with the whole document.
func neverNotModified(path string) breaker {
	return func(good http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				r = r.Clone(r.Context())
				r.Header.Del("If-None-Match")
			}
			good.ServeHTTP(w, r)
		})
	}
}

// checkFaults has one fault or more for every rule. Each trips that rule and no
// other.
var checkFaults = []checkFault{
	{"llmstxt/alternate", "none", noLink(pagePath, `rel="alternate"`)},
	{"llmstxt/alternate", "to nothing", both(
		setHeader(pagePath, "Link", `</post.md>; rel="alternate"; type="text/markdown", </llms.txt>; rel="describedby"`),
		body(twinPath, "<!doctype html>"), setHeader(twinPath, "Content-Type", "text/html"), replaceBody("/llms.txt", "/post/index.md", "/docs/a.html.md"))},
	{"llmstxt/describedby", "none", noLink(pagePath, "describedby")},
	{"rfc7763-2/media-type", "text/plain", setHeader(twinPath, "Content-Type", "text/plain; charset=utf-8")},
	{"rfc7763-2/charset", "none", setHeader(twinPath, "Content-Type", "text/markdown")},
	{"rfc7763-2/utf-8", "latin-1", replaceBody(twinPath, "The text", "Th\xe9 text")},
	{"rfc6596-3/canonical", "none", setHeader(twinPath, "Link", "")},
	{"rfc6596-3/canonical", "another page", setHeader(twinPath, "Link", `</other/>; rel="canonical"`)},
	{"rfc9110-8.8.3/etag", "none", setHeader(twinPath, "ETag", "")},
	{"rfc9110-13.1.2/if-none-match", "ignored", neverNotModified(twinPath)},
	{"rfc9110-12.5.5/vary", "HTML", onResponse(pagePath, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		if strings.HasPrefix(rec.Header().Get("Content-Type"), "text/html") {
			rec.Header().Set("Vary", "Accept-Encoding")
		}
	})},
	{"rfc9110-12.5.5/vary", "Markdown", onMarkdown(func(_ *http.Request, rec *httptest.ResponseRecorder) { rec.Header().Del("Vary") })},
	{"rfc9110-12.5.1/q", "whoever names it", accepting(pagePath, func(a string) string {
		if strings.Contains(a, "text/markdown") && !strings.Contains(a, "q=0,") {
			return "text/markdown"
		}
		return a
	})},
	{"rfc9110-12.5.1/q0", "whoever names it", accepting(pagePath, func(a string) string {
		if strings.Contains(a, "text/markdown;q=0,") {
			return "text/markdown"
		}
		return a
	})},
	{"rfc9110-12.5.1/any", "everybody", accepting(pagePath, func(a string) string {
		if a == "*/*" {
			return "text/markdown"
		}
		return a
	})},
	{"rfc9110-8.8.1/other-tag", "one for both", onResponse(pagePath, func(r *http.Request, rec *httptest.ResponseRecorder) {
		rec.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			rec.Code, rec.Body = http.StatusNotModified, new(bytes.Buffer)
		}
	})},

	{"llmstxt/title", "none", body("/llms.txt", "Pages:\n\n- [Post](/post/index.md)\n")},
	{"llmstxt/title", "a later one", body("/llms.txt", "## Pages\n\n# Mill\n")},
	{"llmstxt/one-title", "two", replaceBody("/llms.txt", "## Pages", "# Pages")},
	{"llmstxt/no-other-headings", "a third level", replaceBody("/llms.txt", "What follows", "### Notes\n\nWhat follows")},
	{"llmstxt/file-list", "no link", replaceBody("/llms.txt", "- [Post](/post/index.md): what is new", "- Post: what is new")},
	{"llmstxt/file-list", "no colon", replaceBody("/llms.txt", "): what", ") what")},
	{"llmstxt/text", "an unknown type", setHeader("/llms.txt", "Content-Type", "application/octet-stream")},
	{"llmstxt/text", "latin-1", replaceBody("/llms.txt", "about", "ab\xf6ut")},
	{"llmstxt/size", "long", replaceBody("/llms.txt", "What follows", strings.Repeat("Many words. ", 5000))},
	{"llmstxt/links", "gone", replaceBody("/llms.txt", "/docs/a.html.md", "/docs/b.html.md")},

	{"rfc4287-2/well-formed", "cut", replaceBody("/feed.atom", "</feed>", "")},
	{"rfc4287-2/well-formed", "RSS", body("/feed.atom", `<rss version="2.0"><channel/></rss>`)},
	{"rfc4287-7/media-type", "text/xml", setHeader("/feed.atom", "Content-Type", "text/xml")},
	{"rfc4287-4.1.1/id", "none", replaceBody("/feed.atom", "<id>https://site.example/feed.atom</id>", "")},
	{"rfc4287-4.1.1/id", "a path", replaceBody("/feed.atom", "<id>https://site.example/feed.atom</id>", "<id>/feed</id>")},
	{"rfc4287-4.1.1/title", "none", replaceBody("/feed.atom", "<title>Mill</title>", "")},
	{"rfc4287-4.1.1/updated", "two", replaceBody("/feed.atom", "<author>", "<updated>2026-01-03T00:00:00Z</updated><author>")},
	{"rfc4287-4.1.1/author", "none", replaceBody("/feed.atom", "<author><name>Mill</name></author>", "")},
	{"rfc4287-4.1.1/self", "none", replaceBody("/feed.atom", `rel="self"`, `rel="via"`)},
	{"rfc4287-4.1.1/same-entry", "twice", both(
		replaceBody("/feed.atom", "<id>https://site.example/</id>", "<id>https://site.example/post/</id>"),
		replaceBody("/feed.atom", "2026-01-01T03:04:05Z", "2026-01-02T03:04:05Z"))},
	{"rfc4287-4.1.2/id", "none", replaceBody("/feed.atom", "<id>https://site.example/</id>", "")},
	{"rfc4287-4.1.2/title", "none", replaceBody("/feed.atom", "<title>Post</title>", "")},
	{"rfc4287-4.1.2/updated", "none", replaceBody("/feed.atom", "<updated>2026-01-02T03:04:05Z</updated>", "")},
	{"rfc4287-4.1.2/link", "neither", replaceBody("/feed.atom", "<content>Mill</content>", "")},
	{"rfc4287-3.3/date", "a date alone", replaceBody("/feed.atom", "2026-01-01T03:04:05Z", "2026-01-01")},
	{"rfc4287-3.3/date", "lower case", replaceBody("/feed.atom", "2026-01-01T03:04:05Z", "2026-01-01t03:04:05z")},
	{"rfc6721-3/ref", "none", replaceBody("/feed.atom", ` ref="https://site.example/old/"`, "")},
	{"rfc6721-3/when", "none", replaceBody("/feed.atom", ` when="2026-01-03T00:00:00Z"`, "")},

	{"jsonfeed-top/json", "cut", body("/feed.json", `{"version":`)},
	{"jsonfeed-top/version", "none", replaceBody("/feed.json", `"version":"https://jsonfeed.org/version/1.1",`, "")},
	{"jsonfeed-top/title", "a number", replaceBody("/feed.json", `"title":"Mill"`, `"title":1`)},
	{"jsonfeed-top/items", "none", replaceBody("/feed.json", `"items":`, `"entries":`)},
	{"jsonfeed-top/items", "strings", replaceBody("/feed.json", `"items":[`, `"items":["a",`)},
	{"jsonfeed-top/feed-url", "another", replaceBody("/feed.json", `"feed_url":"https://site.example/feed.json"`, `"feed_url":"https://site.example/feed.xml"`)},
	{"jsonfeed-items/id", "none", replaceBody("/feed.json", `"id":"https://site.example/post/",`, "")},
	{"jsonfeed-items/id", "twice", replaceBody("/feed.json", `"id":"https://site.example/post/"`, `"id":"https://site.example/"`)},
	{"jsonfeed-items/content", "none", replaceBody("/feed.json", `"content_text":"Post",`, "")},
	{"jsonfeed-items/date", "a date alone", replaceBody("/feed.json", "2026-01-01T03:04:05Z", "2026-01-01")},
	{"jsonfeed-discovery/media-type", "application/json", setHeader("/feed.json", "Content-Type", "application/json")},

	{"sitemaps-format/xml", "no namespace", replaceBody("/sitemap.xml", ` xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"`, "")},
	{"sitemaps-format/xml", "cut", replaceBody("/sitemap.xml", "</urlset>", "")},
	{"sitemaps-format/pages", "an error", onResponse("/docs/a.html", func(_ *http.Request, rec *httptest.ResponseRecorder) { rec.Code = http.StatusInternalServerError })},
	{"sitemaps-format/loc", "none", replaceBody("/sitemap.xml", "<loc>https://site.example/docs/a.html</loc>", "")},
	{"sitemaps-format/loc", "a path", replaceBody("/sitemap.xml", "<loc>https://site.example/docs/a.html</loc>", "<loc>/docs/a.html</loc>")},
	{"sitemaps-format/lastmod", "a day first", replaceBody("/sitemap.xml", "<lastmod>2026-01-02</lastmod>", "<lastmod>02.01.2026</lastmod>")},
	{"sitemaps-format/lastmod", "no such day", replaceBody("/sitemap.xml", "<lastmod>2026-01-02</lastmod>", "<lastmod>2026-02-30</lastmod>")},
	{"sitemaps-format/changefreq", "a word", replaceBody("/sitemap.xml", "daily", "often")},
	{"sitemaps-format/priority", "above one", replaceBody("/sitemap.xml", "0.8", "8")},
	{"sitemaps-index/limits", "many", replaceBody("/sitemap.xml", "</urlset>", strings.Repeat("<url><loc>https://site.example/post/</loc></url>\n", 50_000)+"</urlset>")},
	{"sitemaps-location/host", "another host", replaceBody("/sitemap.xml", "<loc>https://site.example/docs/a.html</loc>", "<loc>https://other.example/</loc>")},
	{"sitemaps-index/there", "gone", replaceBody("/robots.txt", "Sitemap:", "Sitemap: https://site.example/news.xml\nSitemap:")},

	{"rfc9309-2.3/reachable", "an error", onResponse("/robots.txt", func(_ *http.Request, rec *httptest.ResponseRecorder) { rec.Code = http.StatusInternalServerError })},
	{"rfc9309-2.3/media-type", "HTML", setHeader("/robots.txt", "Content-Type", "text/html")},
	{"rfc9309-2.3/utf-8", "latin-1", replaceBody("/robots.txt", "everybody", "\xe9verybody")},
	{"rfc9309-2.2/line", "no colon", replaceBody("/robots.txt", "Allow: /\n", "Allow /\n")},
	{"rfc9309-2.2/group", "nobody", onResponse("/robots.txt", func(_ *http.Request, rec *httptest.ResponseRecorder) {
		rec.Body = bytes.NewBufferString("Disallow: /secret/\n" + rec.Body.String())
	})},
	{"rfc9309-2.2.1/product-token", "a version", replaceBody("/robots.txt", "User-agent: *", "User-agent: Mozilla/5.0")},
	{"rfc9309-2.2.2/path", "a word", replaceBody("/robots.txt", "/private/", "private/")},
	{"rfc9309-2.5/size", "long", replaceBody("/robots.txt", "# for everybody\n", strings.Repeat("# for everybody and everything\n", 20_000))},
	{"sitemaps-robots/absolute", "a path", replaceBody("/robots.txt", "https://site.example/sitemap.xml", "/sitemap.xml")},

	{"rfc9727-4/linkset", "plain JSON", setHeader("/.well-known/api-catalog", "Content-Type", `application/json; profile="`+catalogProfile+`"`)},
	{"rfc9264-4.2/json", "an object", body("/.well-known/api-catalog", `{"linkset":{}}`)},
	{"rfc9264-4.2/json", "no href", replaceBody("/.well-known/api-catalog", `"href"`, `"url"`)},
	{"rfc9264-4.2/json", "no array", replaceBody("/.well-known/api-catalog", `[{"href":"https://site.example/llms.txt","type":"text/markdown"}]`, `"/llms.txt"`)},
	{"rfc9727-4/profile", "none", setHeader("/.well-known/api-catalog", "Content-Type", linksetType)},
	{"rfc9727-2/head", "no link", setHeader("/.well-known/api-catalog", "Link", "")},
}
