package web

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/millrace/millrace/protocol/protocoltest"
)

const (
	alternatePath = "/post/index.md"
	pagePath      = "/post/"
)

type checkFault struct {
	rule, name string // the rule's ID without the protocol
	breaks     breaker
}

// onMarkdown edits the Markdown that a page's own URL returns.
func onMarkdown(f func(r *http.Request, rec *httptest.ResponseRecorder)) breaker {
	return protocoltest.OnResponse(pagePath, func(r *http.Request, rec *httptest.ResponseRecorder) {
		if strings.HasPrefix(rec.Header().Get("Content-Type"), "text/markdown") {
			f(r, rec)
		}
	})
}

// noLink removes a link from a page's header.
func noLink(path, rel string) breaker {
	return protocoltest.OnResponse(path, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		var links []string
		for _, l := range rec.Header()["Link"] {
			if !strings.Contains(l, rel) {
				links = append(links, l)
			}
		}
		rec.Header()["Link"] = links
	})
}

// neverNotModified responds to conditional requests with the whole document.
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

// checkFaults contains at least one fault for every rule. Each fault violates only that rule.
var checkFaults = []checkFault{
	{"llmstxt/alternate", "none", noLink(pagePath, `rel="alternate"`)},
	{"llmstxt/alternate", "to nothing", protocoltest.Both(
		protocoltest.SetHeader(pagePath, "Link", `</post.md>; rel="alternate"; type="text/markdown", </llms.txt>; rel="describedby"`),
		body(alternatePath, "<!doctype html>"), protocoltest.SetHeader(alternatePath, "Content-Type", "text/html"), protocoltest.ReplaceBody("/llms.txt", "/post/index.md", "/docs/a.html.md"))},
	{"llmstxt/describedby", "none", noLink(pagePath, "describedby")},
	{"rfc7763-2/media-type", "text/plain", protocoltest.SetHeader(alternatePath, "Content-Type", "text/plain; charset=utf-8")},
	{"rfc7763-2/charset", "none", protocoltest.SetHeader(alternatePath, "Content-Type", "text/markdown")},
	{"rfc7763-2/utf-8", "latin-1", protocoltest.ReplaceBody(alternatePath, "The text", "Th\xe9 text")},
	{"rfc6596-3/canonical", "none", protocoltest.SetHeader(alternatePath, "Link", "")},
	{"rfc6596-3/canonical", "another page", protocoltest.SetHeader(alternatePath, "Link", `</other/>; rel="canonical"`)},
	{"rfc9110-8.8.3/etag", "none", protocoltest.SetHeader(alternatePath, "ETag", "")},
	{"rfc9110-13.1.2/if-none-match", "ignored", neverNotModified(alternatePath)},
	{"rfc9110-12.5.5/vary", "HTML", protocoltest.OnResponse(pagePath, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		if strings.HasPrefix(rec.Header().Get("Content-Type"), "text/html") {
			rec.Header().Set("Vary", "Accept-Encoding")
		}
	})},
	{"rfc9110-12.5.5/vary", "Markdown", onMarkdown(func(_ *http.Request, rec *httptest.ResponseRecorder) { rec.Header().Del("Vary") })},
	{"rfc9110-12.5.1/q", "Markdown with a lower weight", accepting(pagePath, func(a string) string {
		if strings.Contains(a, "text/markdown") && !strings.Contains(a, "q=0,") {
			return "text/markdown"
		}
		return a
	})},
	{"rfc9110-12.5.1/q0", "Markdown with weight zero", accepting(pagePath, func(a string) string {
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
	{"rfc9110-8.8.1/other-tag", "one for both", protocoltest.OnResponse(pagePath, func(r *http.Request, rec *httptest.ResponseRecorder) {
		rec.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			rec.Code, rec.Body = http.StatusNotModified, new(bytes.Buffer)
		}
	})},

	{"llmstxt/title", "none", body("/llms.txt", "Pages:\n\n- [Post](/post/index.md)\n")},
	{"llmstxt/title", "a later one", body("/llms.txt", "## Pages\n\n# Mill\n")},
	{"llmstxt/one-title", "two", protocoltest.ReplaceBody("/llms.txt", "## Pages", "# Pages")},
	{"llmstxt/no-other-headings", "a third level", protocoltest.ReplaceBody("/llms.txt", "What follows", "### Notes\n\nWhat follows")},
	{"llmstxt/file-list", "no link", protocoltest.ReplaceBody("/llms.txt", "- [Post](/post/index.md): what is new", "- Post: what is new")},
	{"llmstxt/file-list", "no colon", protocoltest.ReplaceBody("/llms.txt", "): what", ") what")},
	{"llmstxt/text", "an unknown type", protocoltest.SetHeader("/llms.txt", "Content-Type", "application/octet-stream")},
	{"llmstxt/text", "latin-1", protocoltest.ReplaceBody("/llms.txt", "about", "ab\xf6ut")},
	{"llmstxt/size", "long", protocoltest.ReplaceBody("/llms.txt", "What follows", strings.Repeat("Many words. ", 5000))},
	{"llmstxt/links", "gone", protocoltest.ReplaceBody("/llms.txt", "/docs/a.html.md", "/docs/b.html.md")},

	{"rfc4287-2/well-formed", "cut", protocoltest.ReplaceBody("/feed.atom", "</feed>", "")},
	{"rfc4287-2/well-formed", "RSS", body("/feed.atom", `<rss version="2.0"><channel/></rss>`)},
	{"rfc4287-7/media-type", "text/xml", protocoltest.SetHeader("/feed.atom", "Content-Type", "text/xml")},
	{"rfc4287-4.1.1/id", "none", protocoltest.ReplaceBody("/feed.atom", "<id>https://site.example/feed.atom</id>", "")},
	{"rfc4287-4.1.1/id", "a path", protocoltest.ReplaceBody("/feed.atom", "<id>https://site.example/feed.atom</id>", "<id>/feed</id>")},
	{"rfc4287-4.1.1/title", "none", protocoltest.ReplaceBody("/feed.atom", "<title>Mill</title>", "")},
	{"rfc4287-4.1.1/updated", "two", protocoltest.ReplaceBody("/feed.atom", "<author>", "<updated>2026-01-03T00:00:00Z</updated><author>")},
	{"rfc4287-4.1.1/author", "none", protocoltest.ReplaceBody("/feed.atom", "<author><name>Mill</name></author>", "")},
	{"rfc4287-4.1.1/self", "none", protocoltest.ReplaceBody("/feed.atom", `rel="self"`, `rel="via"`)},
	{"rfc4287-4.1.1/same-entry", "twice", protocoltest.Both(
		protocoltest.ReplaceBody("/feed.atom", "<id>https://site.example/</id>", "<id>https://site.example/post/</id>"),
		protocoltest.ReplaceBody("/feed.atom", "2026-01-01T03:04:05Z", "2026-01-02T03:04:05Z"))},
	{"rfc4287-4.1.2/id", "none", protocoltest.ReplaceBody("/feed.atom", "<id>https://site.example/</id>", "")},
	{"rfc4287-4.1.2/title", "none", protocoltest.ReplaceBody("/feed.atom", "<title>Post</title>", "")},
	{"rfc4287-4.1.2/updated", "none", protocoltest.ReplaceBody("/feed.atom", "<updated>2026-01-02T03:04:05Z</updated>", "")},
	{"rfc4287-4.1.2/link", "neither", protocoltest.ReplaceBody("/feed.atom", "<content>Mill</content>", "")},
	{"rfc4287-3.3/date", "a date alone", protocoltest.ReplaceBody("/feed.atom", "2026-01-01T03:04:05Z", "2026-01-01")},
	{"rfc4287-3.3/date", "lower case", protocoltest.ReplaceBody("/feed.atom", "2026-01-01T03:04:05Z", "2026-01-01t03:04:05z")},
	{"rfc6721-3/ref", "none", protocoltest.ReplaceBody("/feed.atom", ` ref="https://site.example/old/"`, "")},
	{"rfc6721-3/when", "none", protocoltest.ReplaceBody("/feed.atom", ` when="2026-01-03T00:00:00Z"`, "")},

	{"jsonfeed-top/json", "cut", body("/feed.json", `{"version":`)},
	{"jsonfeed-top/version", "none", protocoltest.ReplaceBody("/feed.json", `"version":"https://jsonfeed.org/version/1.1",`, "")},
	{"jsonfeed-top/title", "a number", protocoltest.ReplaceBody("/feed.json", `"title":"Mill"`, `"title":1`)},
	{"jsonfeed-top/items", "none", protocoltest.ReplaceBody("/feed.json", `"items":`, `"entries":`)},
	{"jsonfeed-top/items", "strings", protocoltest.ReplaceBody("/feed.json", `"items":[`, `"items":["a",`)},
	{"jsonfeed-top/feed-url", "another", protocoltest.ReplaceBody("/feed.json", `"feed_url":"https://site.example/feed.json"`, `"feed_url":"https://site.example/feed.xml"`)},
	{"jsonfeed-items/id", "none", protocoltest.ReplaceBody("/feed.json", `"id":"https://site.example/post/",`, "")},
	{"jsonfeed-items/id", "twice", protocoltest.ReplaceBody("/feed.json", `"id":"https://site.example/post/"`, `"id":"https://site.example/"`)},
	{"jsonfeed-items/content", "none", protocoltest.ReplaceBody("/feed.json", `"content_text":"Post",`, "")},
	{"jsonfeed-items/date", "a date alone", protocoltest.ReplaceBody("/feed.json", "2026-01-01T03:04:05Z", "2026-01-01")},
	{"jsonfeed-discovery/media-type", "application/json", protocoltest.SetHeader("/feed.json", "Content-Type", "application/json")},

	{"sitemaps-format/xml", "no namespace", protocoltest.ReplaceBody("/sitemap.xml", ` xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"`, "")},
	{"sitemaps-format/xml", "cut", protocoltest.ReplaceBody("/sitemap.xml", "</urlset>", "")},
	{"sitemaps-format/pages", "an error", protocoltest.OnResponse("/docs/a.html", func(_ *http.Request, rec *httptest.ResponseRecorder) { rec.Code = http.StatusInternalServerError })},
	{"sitemaps-format/loc", "none", protocoltest.ReplaceBody("/sitemap.xml", "<loc>https://site.example/docs/a.html</loc>", "")},
	{"sitemaps-format/loc", "a path", protocoltest.ReplaceBody("/sitemap.xml", "<loc>https://site.example/docs/a.html</loc>", "<loc>/docs/a.html</loc>")},
	{"sitemaps-format/lastmod", "a day first", protocoltest.ReplaceBody("/sitemap.xml", "<lastmod>2026-01-02</lastmod>", "<lastmod>02.01.2026</lastmod>")},
	{"sitemaps-format/lastmod", "no such day", protocoltest.ReplaceBody("/sitemap.xml", "<lastmod>2026-01-02</lastmod>", "<lastmod>2026-02-30</lastmod>")},
	{"sitemaps-format/changefreq", "a word", protocoltest.ReplaceBody("/sitemap.xml", "daily", "often")},
	{"sitemaps-format/priority", "above one", protocoltest.ReplaceBody("/sitemap.xml", "0.8", "8")},
	{"sitemaps-index/limits", "many", protocoltest.ReplaceBody("/sitemap.xml", "</urlset>", strings.Repeat("<url><loc>https://site.example/post/</loc></url>\n", 50_000)+"</urlset>")},
	{"sitemaps-location/host", "another host", protocoltest.ReplaceBody("/sitemap.xml", "<loc>https://site.example/docs/a.html</loc>", "<loc>https://other.example/</loc>")},
	{"sitemaps-index/there", "gone", protocoltest.ReplaceBody("/robots.txt", "Sitemap:", "Sitemap: https://site.example/news.xml\nSitemap:")},

	{"rfc9309-2.3/reachable", "an error", protocoltest.OnResponse("/robots.txt", func(_ *http.Request, rec *httptest.ResponseRecorder) { rec.Code = http.StatusInternalServerError })},
	{"rfc9309-2.3/media-type", "HTML", protocoltest.SetHeader("/robots.txt", "Content-Type", "text/html")},
	{"rfc9309-2.3/utf-8", "latin-1", protocoltest.ReplaceBody("/robots.txt", "everybody", "\xe9verybody")},
	{"rfc9309-2.2/line", "no colon", protocoltest.ReplaceBody("/robots.txt", "Allow: /\n", "Allow /\n")},
	{"rfc9309-2.2/group", "no user agent", protocoltest.OnResponse("/robots.txt", func(_ *http.Request, rec *httptest.ResponseRecorder) {
		rec.Body = bytes.NewBufferString("Disallow: /secret/\n" + rec.Body.String())
	})},
	{"rfc9309-2.2.1/product-token", "a version", protocoltest.ReplaceBody("/robots.txt", "User-agent: *", "User-agent: Mozilla/5.0")},
	{"rfc9309-2.2.2/path", "a word", protocoltest.ReplaceBody("/robots.txt", "/private/", "private/")},
	{"rfc9309-2.5/size", "long", protocoltest.ReplaceBody("/robots.txt", "# for everybody\n", strings.Repeat("# for everybody and everything\n", 20_000))},
	{"sitemaps-robots/absolute", "a path", protocoltest.ReplaceBody("/robots.txt", "https://site.example/sitemap.xml", "/sitemap.xml")},

	{"rfc9727-4/linkset", "plain JSON", protocoltest.SetHeader("/.well-known/api-catalog", "Content-Type", `application/json; profile="`+catalogProfile+`"`)},
	{"rfc9264-4.2/json", "an object", body("/.well-known/api-catalog", `{"linkset":{}}`)},
	{"rfc9264-4.2/json", "no href", protocoltest.ReplaceBody("/.well-known/api-catalog", `"href"`, `"url"`)},
	{"rfc9264-4.2/json", "no array", protocoltest.ReplaceBody("/.well-known/api-catalog", `[{"href":"https://site.example/llms.txt","type":"text/markdown"}]`, `"/llms.txt"`)},
	{"rfc9727-4/profile", "none", protocoltest.SetHeader("/.well-known/api-catalog", "Content-Type", linksetType)},
	{"rfc9727-2/head", "no link", protocoltest.SetHeader("/.well-known/api-catalog", "Link", "")},
}
