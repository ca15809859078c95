package tct01

import (
	"context"
	"fmt"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tct"
)

func checkIndexLink(_ context.Context, s *survey, fail check.Fail) error {
	switch {
	case s.root.Status < 200 || s.root.Status > 299:
		return fmt.Errorf("the root answers %s: %w", tct.Status(s.root), check.ErrNotApplicable)
	case len(s.index) == 0:
		got := strings.Join(s.root.Header.Values("Link"), ", ")
		if got == "" {
			got = "no Link field"
		}
		want := `Link: </llm-pages.json>; rel="index"; type="application/json"`
		if len(s.lists) > 0 {
			want = `Link: <` + s.lists[0].url + `>; rel="index"; type="application/json"`
		}
		fail(s.root.URL, got, want)
	}
	return nil
}

func checkExposed(_ context.Context, s *survey, fail check.Fail) error {
	if len(s.index) == 0 {
		return check.ErrNotApplicable // the rule before this one says so
	}
	if len(s.lists) == 0 {
		fail(s.root.URL, strings.Join(s.other, "; "), "200 and a JSON object with version and items")
	}
	return nil
}

func checkVersion(l *seenList, fail check.Fail) {
	if raw := l.fields["version"]; string(raw) != "1" {
		fail(l.url, "version: "+shown(raw), "the integer 1")
	}
}

func checkListProfile(l *seenList, fail check.Fail) {
	if s, ok := jsonText(l.fields["profile"]); !ok || s == "" {
		fail(l.url, "profile: "+shown(l.fields["profile"]), `a string, such as "tct-1"`)
	}
}

func checkItems(l *seenList, fail check.Fail) {
	if l.items == nil {
		fail(l.url, "items: "+shown(l.fields["items"]), "an array of objects")
	}
	for i, raw := range l.items {
		if readItem(raw).fields == nil {
			fail(l.url, fmt.Sprintf("items/%d: %s", i, raw), "an object with cUrl, mUrl and etag")
		}
	}
}

// eachItem gives the items that are objects; false if there is none.
func (s *survey) eachItem(f func(l *seenList, at int, it *seenItem)) bool {
	some := false
	for _, l := range s.lists {
		for i, raw := range l.items {
			if it := readItem(raw); it.fields != nil {
				some = true
				f(l, i, it)
			}
		}
	}
	return some
}

func checkCURL(_ context.Context, s *survey, fail check.Fail) error {
	if !s.eachItem(func(l *seenList, i int, it *seenItem) {
		if _, err := canon.URL(it.cURL); err != nil {
			fail(l.url, fmt.Sprintf("items/%d/cUrl: %s", i, shown(it.fields["cUrl"])), "an absolute http or https URL")
		}
	}) {
		return check.ErrNotApplicable
	}
	for _, p := range s.pages {
		if p.item != nil && p.ok() && p.curl != "" && disputed(p) == p.curl {
			fail(p.murl, "cUrl: "+p.curl, p.fieldURL()+", as the M-URL and its canonical link say")
		}
	}
	return nil
}

func checkMURL(_ context.Context, s *survey, fail check.Fail) error {
	if !s.eachItem(func(l *seenList, i int, it *seenItem) {
		if m, err := canon.URL(it.mURL); err != nil || !s.near(m) {
			fail(l.url, fmt.Sprintf("items/%d/mUrl: %s", i, shown(it.fields["mUrl"])), "an absolute http or https URL of the site")
		}
	}) {
		return check.ErrNotApplicable
	}
	for _, p := range s.pages {
		const want = "200 and the JSON of an item of the M-Sitemap"
		switch {
		case p.item == nil, p.ok():
		case unsure(p.err):
			return p.err
		case p.err != nil:
			fail(p.murl, p.err.Error(), want)
		case p.resp.Status == http.StatusUnauthorized: // no-leak
		case p.resp.Status != http.StatusOK:
			fail(p.murl, tct.Status(p.resp), want)
		default:
			fail(p.murl, p.resp.BodyErr.Error(), want)
		}
	}
	return nil
}

func checkItemTag(l *seenList, fail check.Fail) {
	for i, raw := range l.items {
		if it := readItem(raw); it.fields != nil && !tct.IsHash(it.etag) {
			fail(l.url, fmt.Sprintf("items/%d/etag: %s", i, shown(it.fields["etag"])), "sha256- and 64 lower-case hexadecimal digits")
		}
	}
}

func checkListContentType(l *seenList, fail check.Fail)  { jsonType(l.url, l.resp, fail) }
func checkListCacheControl(l *seenList, fail check.Fail) { timely(l.url, l.resp, fail) }
func checkListVary(l *seenList, fail check.Fail)         { variesByCoding(l.url, l.resp, fail) }

// checkHTTPS leaves out loopback, where nobody listens in.
func checkHTTPS(_ context.Context, s *survey, fail check.Fail) error {
	some := false
	one := func(u string, r *check.Response) {
		if loopback(hostOf(u)) {
			return
		}
		some = true
		if strings.HasPrefix(u, "http:") || r != nil && !r.TLS {
			fail(u, "served over http", "https")
		}
	}
	for _, l := range s.lists {
		one(l.url, l.resp)
	}
	for _, p := range s.pages {
		one(p.murl, p.resp)
	}
	if !some {
		return check.ErrNotApplicable
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// jsonType is 1.5.1 and 1.7.2.
func jsonType(u string, r *check.Response, fail check.Fail) {
	got := r.Header.Get("Content-Type")
	typ, params, err := mime.ParseMediaType(got)
	if err != nil || typ != tct.MediaType || !strings.EqualFold(params["charset"], "utf-8") {
		fail(u, "Content-Type: "+got, "Content-Type: "+tct.ContentType)
	}
}

// variesByCoding is 1.7.2 and appendix G.1.1.
func variesByCoding(u string, r *check.Response, fail check.Fail) {
	got := strings.Join(r.Header.Values("Vary"), ", ")
	for name := range strings.SplitSeq(got, ",") {
		if strings.EqualFold(strings.TrimSpace(name), "Accept-Encoding") {
			return
		}
	}
	fail(u, "Vary: "+got, "Vary: Accept-Encoding")
}

// timelyAge is our reading of a short max-age in seconds: a day. The draft
// has no number.
const timelyAge = 24 * 60 * 60

// timely is 1.7.2 and 1.8.2: a cache asks again before long.
func timely(u string, r *check.Response, fail check.Fail) {
	got := strings.Join(r.Header.Values("Cache-Control"), ", ")
	soon := false
	for d := range strings.SplitSeq(strings.ToLower(got), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(d), "=")
		switch name {
		case "no-cache", "no-store":
			soon = true
		case "max-age":
			age, err := strconv.Atoi(strings.Trim(value, `"`))
			soon = soon || err == nil && age <= timelyAge
		case "immutable":
			fail(u, "Cache-Control: "+got, "no immutable: the content of a page changes")
			return
		}
	}
	if !soon {
		fail(u, "Cache-Control: "+got, "no-cache or a max-age of a day at most, such as "+tct.CacheControl)
	}
}
