package profile

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/weblink"
)

// maxProbed is the maximum number of documents that the rules of [Proxy] request.
const maxProbed = 8

// passed is a machine document of the site, as received through the proxies in between.
type passed struct {
	url    string
	plain  *check.Response // response to Accept-Encoding: identity
	zipped *check.Response // response to Accept-Encoding: gzip
	head   *check.Response // response to HEAD
}

// way contains the responses that the rules of [Proxy] share.
type way struct {
	kit.SiteContext
	documents []*passed
	page      string          // URL of the home page, or "" if it is not HTML
	html      *check.Response // response for page
}

var onWay = kit.Rule("proxy", func(ctx context.Context, t *check.Target) (*way, error) {
	s := &way{SiteContext: kit.NewSiteContext(t)}
	return s, s.see(ctx)
})

// Proxy returns rules that a correct server obeys, but a proxy or CDN in front of it may break. A
// finding names the proxy if the responses identify it, and the setting to change.
func Proxy() check.Suite {
	const must, should = check.Must, check.Should
	rule := func(section, word string, level check.Level, sentence, fix string, f check.SiteCheck[*way]) check.Rule {
		r := onWay(section, word, level, sentence, f)
		r.Fix = "Your proxy probably breaks this. " + fix
		return r
	}
	const noCoding = "nginx: gzip off; in the location of these documents. Caddy: exclude them from encode. " +
		"Cloudflare: a compression rule that disables compression for them. millrace compresses by itself."
	const noCache = "nginx: proxy_cache off; or $http_accept in proxy_cache_key. Caddy: no cache module on pages, or Accept in its key. " +
		"Cloudflare: a cache rule that bypasses the cache for pages with Vary: Accept; it ignores Vary."
	const noRewrite = "nginx: no sub_filter or pagespeed on these documents. Caddy: no replace. " +
		"Cloudflare: disable Email Address Obfuscation and Rocket Loader for them, or send Cache-Control: no-transform."
	const conditions = "nginx: remove proxy_set_header If-None-Match \"\"; and proxy_ignore_headers. Caddy: remove header_up -If-None-Match. " +
		"Cloudflare: enable Respect Strong ETags in a cache rule."
	rules := []check.Rule{
		rule("rfc9110-12.5.3", "identity", must, "A document has no content coding if the client accepts none.", noCoding, onDocuments(func(d *passed, fail func(got, want string)) bool {
			if coding := d.plain.Header.Get("Content-Encoding"); coding != "" {
				fail("Content-Encoding: "+coding+" for Accept-Encoding: identity", "no content coding")
			}
			return true
		})),
		rule("rfc9110-8.8.1", "weakened-etag", should, "A document's strong ETag stays strong when it is compressed.", noCoding, onDocuments(func(d *passed, fail func(got, want string)) bool {
			tag := d.plain.Header.Get("ETag")
			if tag == "" || strings.HasPrefix(tag, "W/") || d.zipped == nil {
				return false
			}
			if with := d.zipped.Header.Get("ETag"); with == "" {
				fail("no ETag for Accept-Encoding: gzip", "a strong ETag, as without a coding")
			} else if strings.HasPrefix(with, "W/") {
				fail("ETag: "+with+" for Accept-Encoding: gzip", "a strong ETag, as without a coding")
			}
			return true
		})),
		rule("rfc9110-12.5.3", "vary-coding", should, "A response that depends on Accept-Encoding has Vary: Accept-Encoding.", "nginx: gzip_vary on;. Caddy and Cloudflare do this unless a rule removes Vary.", onDocuments(func(d *passed, fail func(got, want string)) bool {
			if d.zipped == nil || d.zipped.Header.Get("Content-Encoding") == "" {
				return false
			}
			if !kit.Varies(d.zipped.Header, "Accept-Encoding") {
				fail("Content-Encoding: "+d.zipped.Header.Get("Content-Encoding")+" with Vary: "+d.zipped.Field("Vary"), "Vary: Accept-Encoding")
			}
			return true
		})),
		rule("rfc9530-2", "digest", must, "The content has the digest that its server computed.", noRewrite, onDocuments(func(d *passed, fail func(got, want string)) bool {
			said, body := "", d.plain.Coded
			for digest := range strings.SplitSeq(d.plain.Field("Content-Digest"), ",") {
				if value, ok := strings.CutPrefix(strings.TrimSpace(digest), "sha-256=:"); ok {
					said = strings.TrimSuffix(value, ":")
				}
			}
			if said == "" || d.plain.CutErr != nil {
				return false
			}
			if sum := sha256.Sum256(body); base64.StdEncoding.EncodeToString(sum[:]) != said {
				fail("content whose SHA-256 differs from Content-Digest", "the content as the server sent it")
			}
			return true
		})),
		rule("rfc9110-9.3.2", "head", should, "A HEAD has the status and the fields of a GET.", "nginx: proxy_cache_convert_head off;, and no location that handles HEAD by itself. "+
			"Caddy: no method matcher that excludes HEAD. Cloudflare: no firewall rule against HEAD.", onDocuments(func(d *passed, fail func(got, want string)) bool {
			if d.head == nil {
				return false
			}
			if d.head.Status != d.plain.Status {
				fail(d.head.StatusText()+" to HEAD", d.plain.StatusText()+", as to GET")
				return true
			}
			for _, name := range []string{"Content-Type", "ETag", "Last-Modified", "Content-Length"} {
				get, head := d.plain.Header.Get(name), d.head.Header.Get(name)
				if get != head && get != "" && (head != "" || name != "Content-Length") {
					fail(name+": "+head+" to HEAD", name+": "+get+", as to GET")
				}
			}
			return true
		})),
		rule("rfc9110-13.1.2", "not-modified", must, "If-None-Match with the current tag gets a 304, in every coding.", conditions, check.Each(documentsOf, func(ctx context.Context, s *way, d *passed, fail check.Fail) (bool, error) {
			applies := false
			for i, was := range []*check.Response{d.plain, d.zipped} {
				coding := []string{"identity", "gzip"}[i]
				if was == nil || was.Header.Get("ETag") == "" {
					continue
				}
				applies = true
				resp, err := s.Do(ctx, http.MethodGet, d.url, http.Header{"Accept-Encoding": {coding}, "If-None-Match": {was.Header.Get("ETag")}})
				if err != nil {
					return true, err
				}
				if resp.Status == http.StatusOK && kit.OpaqueTag(resp) == kit.OpaqueTag(was) {
					fail(d.url, through(resp, resp.StatusText()+" to If-None-Match: "+was.Header.Get("ETag")+" with Accept-Encoding: "+coding), "304 Not Modified")
				} else if resp.Status == http.StatusNotModified && resp.Header.Get("ETag") == "" {
					fail(d.url, through(resp, "304 without ETag"), "ETag: "+was.Header.Get("ETag"))
				}
			}
			return applies, nil
		})),
		rule("rfc9111-4.1", "accept-html", must, "A cache does not send Markdown for a request for HTML.", noCache, func(ctx context.Context, s *way, fail check.Fail) error {
			return s.across(ctx, "text/markdown", "text/html", fail)
		}),
		rule("rfc9111-4.1", "accept-markdown", should, "A cache does not send HTML for a request for Markdown, if the page varies by Accept.", noCache, func(ctx context.Context, s *way, fail check.Fail) error {
			return s.across(ctx, "text/html", "text/markdown", fail)
		}),
		rule("rfc9110-12.5.5", "vary-accept", should, "A page whose response depends on Accept has Vary: Accept.", "nginx: no proxy_hide_header Vary; and add_header Vary Accept always; next to a map of $http_accept. "+
			"Caddy: no header -Vary. Cloudflare: no transform rule that removes Vary.", func(ctx context.Context, s *way, fail check.Fail) error {
			if s.html == nil {
				return check.ErrNotApplicable
			}
			md, err := s.Do(ctx, http.MethodGet, s.page, http.Header{"Accept": {"text/markdown"}})
			if err != nil {
				return err
			}
			if !isMarkdown(md) {
				return check.ErrNotApplicable
			}
			for _, r := range []*check.Response{s.html, md} {
				if !kit.Varies(r.Header, "Accept") {
					fail(r.URL, through(r, r.Header.Get("Content-Type")+" with Vary: "+r.Field("Vary")), "Vary: Accept")
				}
			}
			return nil
		}),
	}
	return check.Suite{Name: "proxy", Label: "Proxy", Rules: append(rules, dictionaryRules(rule)...)}
}

func documentsOf(s *way) []*passed { return s.documents }

// onDocuments returns a check that runs f on each document. f reports whether the rule applies.
func onDocuments(f func(d *passed, fail func(got, want string)) bool) check.SiteCheck[*way] {
	return check.All(documentsOf, func(_ *way, d *passed, fail check.Fail) bool {
		return f(d, func(got, want string) { fail(d.url, through(d.plain, got), want) })
	})
}

// through adds the name of the proxy that a response came through, if it is known.
func through(r *check.Response, got string) string {
	h := r.Header
	name := ""
	switch server := strings.ToLower(h.Get("Server")); {
	case h.Get("Cf-Ray") != "" || server == "cloudflare":
		name = "Cloudflare"
	case h.Get("X-Amz-Cf-Id") != "":
		name = "CloudFront"
	case strings.HasPrefix(h.Get("X-Served-By"), "cache-"):
		name = "Fastly"
	case h.Get("X-Varnish") != "":
		name = "Varnish"
	case strings.HasPrefix(server, "nginx"):
		name = "nginx"
	case server == "caddy" || strings.Contains(h.Get("Via"), "Caddy"):
		name = "Caddy"
	case h.Get("Via") != "":
		name = kit.Short(h.Get("Via"))
	}
	if name != "" {
		got += " (through " + name + ")"
	}
	return got
}

// across requests the page in one form and then in another, without the target's cache. It reports
// a finding if the second response has the first form.
func (s *way) across(ctx context.Context, first, second string, fail check.Fail) error {
	if s.html == nil {
		return check.ErrNotApplicable
	}
	var got [2]*check.Response
	for i, accept := range []string{first, second} {
		var err error
		if got[i], err = s.DoUncached(ctx, http.MethodGet, s.page, http.Header{"Accept": {accept}}); err != nil {
			return err
		}
	}
	switch {
	case !got[1].OK():
		return check.ErrNotApplicable
	case second == "text/html" && isMarkdown(got[1]):
		fail(s.page, through(got[1], "Markdown for Accept: text/html"), "HTML")
	case second == "text/markdown" && !isMarkdown(got[1]):
		// Without a cache, the site may have no Markdown of this page.
		if !kit.Varies(got[0].Header, "Accept") || !cached(got[1]) {
			return check.ErrNotApplicable
		}
		fail(s.page, through(got[1], "HTML from a cache for Accept: text/markdown"), "Markdown, or a response of the server")
	}
	return nil
}

// cached reports whether a response declares that it comes from a cache.
func cached(r *check.Response) bool {
	if age := r.Header.Get("Age"); age != "" && age != "0" {
		return true
	}
	for _, name := range []string{"X-Cache", "Cf-Cache-Status", "X-Cache-Status", "X-Proxy-Cache", "Cache-Status"} {
		if strings.Contains(strings.ToLower(r.Header.Get(name)), "hit") {
			return true
		}
	}
	return false
}

func isMarkdown(r *check.Response) bool {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	kind = strings.TrimSpace(strings.ToLower(kind))
	return r.OK() && (kind == "text/markdown" || kind == "text/x-markdown")
}

// see requests the home page and machine documents: llms.txt, the API catalog, and the documents to
// which the home page links.
func (s *way) see(ctx context.Context) error {
	home, err := s.Do(ctx, http.MethodGet, s.Site(), http.Header{"Accept": {"text/html"}})
	if err != nil {
		return err
	}
	s.AddHosts(home.URL)
	if home.OK() && weblink.IsHTML(home.Header) {
		s.page, s.html = home.URL, home
	}
	urls := []string{s.At("/llms.txt"), s.At("/.well-known/api-catalog")}
	for _, l := range kit.Links(home) {
		if kind := strings.ToLower(l.Type); s.HasHost(l.URL) && (kind == "text/markdown" || strings.HasSuffix(kind, "json") || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "xml")) && !slices.Contains(urls, l.URL) {
			urls = append(urls, l.URL)
		}
	}
	for _, u := range urls {
		if len(s.documents) == maxProbed {
			break
		}
		// Do not use Document, which drops content with a wrong digest.
		plain, err := s.Get(ctx, u)
		switch {
		case check.IsInconclusive(err), ctx.Err() != nil:
			return cmp.Or(err, ctx.Err())
		case err != nil, plain.Status != http.StatusOK, plain.CutErr != nil, weblink.IsHTML(plain.Header), kit.LooksHTML(plain.Coded):
			continue
		}
		d := &passed{url: plain.URL, plain: plain}
		// Errors of these requests are ignored, because they show nothing about the proxy.
		if zipped, err := s.Do(ctx, http.MethodGet, d.url, http.Header{"Accept-Encoding": {"gzip"}}); err == nil && zipped.Status == http.StatusOK {
			d.zipped = zipped
		}
		if head, err := s.Do(ctx, http.MethodHead, d.url, nil); err == nil {
			d.head = head
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.documents = append(s.documents, d)
	}
	if len(s.documents) == 0 {
		return fmt.Errorf("%s names no machine document: %w", s.Site(), check.ErrAbsent)
	}
	return nil
}
