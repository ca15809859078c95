package tct

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// variant is a different request for the same representation.
type variant struct {
	name   string
	header http.Header
}

var (
	otherWords  = variant{"other Accept and Accept-Language", http.Header{"Accept": {"text/html, */*;q=0.5"}, "Accept-Language": {"fi, eo;q=0.5"}}}
	otherCoding = variant{"Accept-Encoding: gzip", http.Header{"Accept-Encoding": {"gzip"}}}
)

// again repeats the request for the page's M-URL. All rules share the result.
func again(ctx context.Context, s *siteContext, p *seenPage) (*check.Response, error) {
	return check.Memo(ctx, s.Target, name01+" again "+p.MURL, func(ctx context.Context) (*check.Response, error) {
		return s.DoUncached(ctx, http.MethodGet, p.MURL, nil)
	})
}

// moves reports whether the page has changed during the check: two later responses differ from the
// first one, but not from each other.
func moves(ctx context.Context, s *siteContext, p *seenPage) (bool, error) {
	second, err := again(ctx, s, p)
	if err != nil || !second.OK() || bytes.Equal(second.Body, p.Resp.Body) {
		return false, err
	}
	third, err := check.Memo(ctx, s.Target, name01+" third "+p.MURL, func(ctx context.Context) (*check.Response, error) {
		return s.DoUncached(ctx, http.MethodGet, p.MURL, nil)
	})
	return err == nil && bytes.Equal(second.Body, third.Body), err
}

// steady reports whether later responses can be compared with the first one.
func steady(ctx context.Context, s *siteContext, p *seenPage) (bool, error) {
	if !p.OK() {
		return false, nil
	}
	moves, err := moves(ctx, s, p)
	return !moves && err == nil, err
}

// sameTag reports whether two responses have the same tag.
func sameTag(a, b *check.Response) bool {
	return kit.OpaqueTag(a) != "" && kit.OpaqueTag(a) == kit.OpaqueTag(b)
}

func checkNoRandomness(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	if ok, err := steady(ctx, s, p); !ok {
		return false, err
	}
	second, err := again(ctx, s, p)
	if err != nil || !second.OK() {
		return false, err
	}
	if !bytes.Equal(second.Body, p.Resp.Body) && !sameTag(second, p.Resp) {
		got, want := difference(second.Body, p.Resp.Body)
		fail(p.MURL, "the second response has "+got, "the same as in the first, "+want)
	}
	return true, nil
}

func checkDeterministic(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	if ok, err := steady(ctx, s, p); !ok {
		return false, err
	}
	second, err := again(ctx, s, p)
	if err != nil || !second.OK() || !bytes.Equal(second.Body, p.Resp.Body) {
		return false, err // the rule no-randomness reports this
	}
	for _, v := range []variant{otherWords, otherCoding} {
		resp, err := s.Do(ctx, http.MethodGet, p.MURL, v.header)
		if err != nil {
			return false, err
		}
		if resp.OK() && !bytes.Equal(resp.Body, p.Resp.Body) && !sameTag(resp, p.Resp) {
			got, want := difference(resp.Body, p.Resp.Body)
			fail(p.MURL, got+" with "+v.name, want)
		}
	}
	return true, nil
}

func checkSameTagSameBody(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	if !p.OK() || p.Tag == "" {
		return false, nil
	}
	second, err := again(ctx, s, p)
	if err != nil {
		return false, err
	}
	all := []*check.Response{second}
	for _, v := range []variant{otherWords, otherCoding} {
		resp, err := s.Do(ctx, http.MethodGet, p.MURL, v.header)
		if err != nil {
			return false, err
		}
		all = append(all, resp)
	}
	for _, resp := range all {
		if resp.OK() && sameTag(resp, p.Resp) && !bytes.Equal(resp.Body, p.Resp.Body) {
			got, want := difference(resp.Body, p.Resp.Body)
			fail(p.MURL, got+" with the same tag "+p.Tag, want+", or a different tag")
			break
		}
	}
	return true, nil
}

func checkTagPerRequest(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	if !p.OK() || p.Tag == "" {
		return false, nil
	}
	second, err := again(ctx, s, p)
	if err != nil {
		return false, err
	}
	worded, err := s.Do(ctx, http.MethodGet, p.MURL, otherWords.header)
	if err != nil {
		return false, err
	}
	for _, resp := range []*check.Response{second, worded} {
		if resp.OK() && bytes.Equal(resp.Body, p.Resp.Body) && kit.OpaqueTag(resp) != p.Tag {
			fail(p.MURL, "ETag: "+resp.Header.Get("ETag")+", then, for the same body", "ETag: "+p.Resp.Header.Get("ETag"))
			break
		}
	}
	return true, nil
}

// checkTagIntact requests a content coding, because proxies that compress are most likely to
// weaken, rewrite or drop tags.
func checkTagIntact(ctx context.Context, s *siteContext, fail check.Fail) error {
	some := false
	for _, p := range s.Pages {
		if !p.OK() || !strings.HasPrefix(p.Resp.Header.Get("ETag"), `"`) {
			continue
		}
		resp, err := s.Do(ctx, http.MethodGet, p.MURL, otherCoding.header)
		if err != nil {
			return err
		}
		some = true
		if got := resp.Header.Get("ETag"); resp.OK() && bytes.Equal(resp.Body, p.Resp.Body) && got != p.Resp.Header.Get("ETag") {
			fail(p.MURL, "ETag: "+got+" with "+otherCoding.name, "ETag: "+p.Resp.Header.Get("ETag"))
		}
	}
	for _, l := range s.Lists {
		// The tag of a list may have a suffix per coding, because the draft does not define its
		// value.
		if !strings.HasPrefix(l.Resp.Header.Get("ETag"), `"`) {
			continue
		}
		resp, err := s.Do(ctx, http.MethodGet, l.URL, otherCoding.header)
		if err != nil {
			return err
		}
		some = true
		if got := resp.Header.Get("ETag"); resp.OK() && !strings.HasPrefix(got, `"`) {
			fail(l.URL, "ETag: "+got+" with "+otherCoding.name, "a strong ETag")
		}
	}
	return check.Applied(some)
}
