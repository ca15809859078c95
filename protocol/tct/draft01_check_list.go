package tct

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

func checkIndexLink(_ context.Context, s *siteContext, fail check.Fail) error {
	switch {
	case s.Home.Status < 200 || s.Home.Status > 299:
		return fmt.Errorf("the root responds with %s: %w", s.Home.StatusText(), check.ErrNotApplicable)
	case len(indexLinks(s)) == 0:
		want := `Link: <` + s.d.List + `.json>; rel="index"; type="application/json"`
		if len(s.Lists) > 0 {
			want = `Link: <` + s.Lists[0].URL + `>; rel="index"; type="application/json"`
		}
		fail(s.Home.URL, linkField(s.Home), want)
	}
	return nil
}

func checkExposed(_ context.Context, s *siteContext, fail check.Fail) error {
	if len(indexLinks(s)) == 0 {
		return check.ErrNotApplicable // the previous rule reports this
	}
	if len(s.Lists) == 0 {
		fail(s.Home.URL, strings.Join(s.Other, "; "), "200 and a JSON object with version and items")
	}
	return nil
}

func checkListContentType(l *seenList, fail check.Fail)  { isJSONType(l.URL, l.Resp, true, fail) }
func checkListCacheControl(l *seenList, fail check.Fail) { timely(l.URL, l.Resp, fail) }
func checkListVary(l *seenList, fail check.Fail)         { varies(l.URL, l.Resp, fail, "Accept-Encoding") }

// checkHTTPS checks that M-URLs and lists are served over https. It does not apply to loopback
// addresses.
func checkHTTPS(_ context.Context, s *siteContext, fail check.Fail) error {
	some := false
	one := func(u string, r *check.Response) {
		if kit.IsLoopback(u) {
			return
		}
		some = true
		if strings.HasPrefix(u, "http:") || r != nil && !r.TLS {
			fail(u, "served over http", "https")
		}
	}
	for _, l := range s.Lists {
		one(l.URL, l.Resp)
	}
	for _, p := range s.Pages {
		one(p.MURL, p.Resp)
	}
	return check.Applied(some)
}

// timelyAge is the largest max-age, in seconds, that counts as short: one day. The draft does not
// define a limit.
const timelyAge = 24 * 60 * 60

// timely checks that Cache-Control makes caches revalidate after a short time (1.7.2, 1.8.2).
func timely(u string, r *check.Response, fail check.Fail) {
	got, directives := r.Field("Cache-Control"), kit.Directives(r)
	_, again := directives["no-cache"]
	_, never := directives["no-store"]
	_, fixed := directives["immutable"]
	age, err := strconv.Atoi(directives["max-age"])
	switch {
	case fixed:
		fail(u, "Cache-Control: "+got, "no immutable: the content of a page changes")
	case !again && !never && (err != nil || age > timelyAge):
		fail(u, "Cache-Control: "+got, "no-cache or a max-age of a day at most, such as "+cacheControl)
	}
}
