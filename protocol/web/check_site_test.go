package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	"github.com/millrace/millrace/protocol/protocoltest"
)

const goodSite = "https://site.example"

// goodPages maps the pages of a valid site to the paths of their Markdown.
var goodPages = map[string]string{"/": "/index.md", "/post/": "/post/index.md", "/docs/a.html": "/docs/a.html.md"}

const (
	goodLLMs = "# Mill\n\n> A site about a mill.\n\nWhat follows are its pages.\n\n## Pages\n\n" +
		"- [Post](/post/index.md): what is new\n- [A [b]](</docs/a.html.md>)\n- [The mill](/index.md)\n"
	goodRobots  = "# for everybody\nUser-agent: *\nDisallow: /private/\nAllow: /\n\nSitemap: https://site.example/sitemap.xml\n"
	goodSitemap = `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>https://site.example/</loc><lastmod>2026-01-02</lastmod><changefreq>daily</changefreq><priority>0.8</priority></url>
<url><loc>https://site.example/post/</loc><lastmod>2026-01-02T03:04:05Z</lastmod></url>
<url><loc>https://site.example/docs/a.html</loc></url>
</urlset>
`
	goodAtom = `<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:at="http://purl.org/atompub/tombstones/1.0">
<id>https://site.example/feed.atom</id><title>Mill</title><updated>2026-01-03T00:00:00Z</updated>
<author><name>Mill</name></author>
<link rel="self" type="application/atom+xml" href="https://site.example/feed.atom"/>
<entry><id>https://site.example/post/</id><title>Post</title><updated>2026-01-02T03:04:05Z</updated>
<link rel="alternate" type="text/html" href="https://site.example/post/"/>
<link rel="alternate" type="text/markdown" href="https://site.example/post/index.md"/></entry>
<entry><id>https://site.example/</id><title>Mill</title><updated>2026-01-01T03:04:05Z</updated><content>Mill</content></entry>
<at:deleted-entry ref="https://site.example/old/" when="2026-01-03T00:00:00Z"/>
</feed>
`
	goodJSONFeed = `{"version":"https://jsonfeed.org/version/1.1","title":"Mill","home_page_url":"https://site.example/","feed_url":"https://site.example/feed.json","items":[
{"id":"https://site.example/post/","url":"https://site.example/post/","content_text":"Post","date_modified":"2026-01-02T03:04:05Z"},
{"id":"https://site.example/","url":"https://site.example/","content_text":"Mill","date_modified":"2026-01-01T03:04:05Z"}],"_deleted":{"items":[]}}
`
	goodCatalog = `{"linkset":[{"anchor":"https://site.example/","item":[{"href":"https://site.example/llms.txt","type":"text/markdown"}]}]}
`
)

// goodHandler serves a site that follows every rule.
func goodHandler() http.Handler {
	files := map[string][2]string{
		"/llms.txt":                {"text/markdown; charset=utf-8", goodLLMs},
		"/robots.txt":              {"text/plain; charset=utf-8", goodRobots},
		"/sitemap.xml":             {"application/xml; charset=utf-8", goodSitemap},
		"/feed.atom":               {"application/atom+xml; charset=utf-8", goodAtom},
		"/feed.json":               {"application/feed+json; charset=utf-8", goodJSONFeed},
		"/.well-known/api-catalog": {linksetType + `; profile="` + catalogProfile + `"`, goodCatalog},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		if f, ok := files[r.URL.Path]; ok {
			if h.Set("Content-Type", f[0]); r.URL.Path == "/.well-known/api-catalog" {
				h.Set("Link", `</.well-known/api-catalog>; rel="api-catalog"`)
			}
			goodBody(w, r, f[1])
			return
		}
		for page, md := range goodPages {
			switch {
			case r.URL.Path == md, r.URL.Path == page && quality(r, "text/markdown") > quality(r, "text/html"):
				h.Set("Content-Type", "text/markdown; charset=utf-8")
				h.Set("Link", "<"+goodSite+page+`>; rel="canonical"`)
				if r.URL.Path == page {
					h.Set("Vary", "Accept")
				}
				goodBody(w, r, "---\nurl: \""+goodSite+page+"\"\ntitle: \""+page+"\"\n---\n\n# "+page+"\n\nThe text.\n")
				return
			case r.URL.Path == page:
				h.Set("Content-Type", "text/html; charset=utf-8")
				h.Set("Vary", "Accept-Encoding, Accept")
				h.Add("Link", "<"+md+`>; rel="alternate"; type="text/markdown"`)
				h.Add("Link", `</llms.txt>; rel="describedby"; type="text/markdown"`)
				if page == "/" {
					h.Add("Link", `</feed.atom>; rel="alternate"; type="application/atom+xml", </feed.json>; rel="alternate"; type="application/feed+json"`)
				}
				goodBody(w, r, "<!DOCTYPE html><title>"+page+"</title><p>The text.")
				return
			}
		}
		http.NotFound(w, r)
	})
}

// goodBody writes a body, or a 304 if the request has its validator.
func goodBody(w http.ResponseWriter, r *http.Request, body string) {
	sum := sha256.Sum256([]byte(body))
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write([]byte(body))
}

// quality returns the q of a media type in a request's Accept field.
func quality(r *http.Request, mediaType string) float64 {
	best, rank := 0.0, -1
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if accept == "" {
		accept = "*/*"
	}
	for part := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		q := 1.0
		if v, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
			q, _ = strconv.ParseFloat(v, 64)
		}
		is := -1
		switch name {
		case mediaType:
			is = 1
		case "*/*":
			is = 0
		}
		if is > rank {
			best, rank = q, is
		}
	}
	return best
}

// breaker wraps the handler of a valid site and adds one fault.
type breaker = protocoltest.Breaker

func body(path, now string) breaker {
	return protocoltest.OnResponse(path, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		if rec.Code == http.StatusOK {
			rec.Body = bytes.NewBufferString(now)
		}
	})
}

// accepting edits the Accept field of requests before the site gets them.
func accepting(path string, f func(accept string) string) breaker {
	return func(good http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				r = r.Clone(r.Context())
				r.Header.Set("Accept", f(r.Header.Get("Accept")))
			}
			good.ServeHTTP(w, r)
		})
	}
}
