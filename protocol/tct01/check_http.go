package tct01

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/tct"
)

// variant is a GET that asks for the same thing in other words.
type variant struct {
	name   string
	header http.Header
}

var (
	otherWords  = variant{"other Accept and Accept-Language", http.Header{"Accept": {"text/html, */*;q=0.5"}, "Accept-Language": {"fi, eo;q=0.5"}}}
	otherCoding = variant{"Accept-Encoding: gzip", http.Header{"Accept-Encoding": {"gzip"}}}
)

// again fetches the page's M-URL once more with the same request, once for all
// rules.
func (s *survey) again(ctx context.Context, p *seenPage) (*check.Response, error) {
	return check.Memo(ctx, s.t, Name+" again "+p.murl, func(ctx context.Context) (*check.Response, error) {
		return s.t.Fresh(ctx, http.MethodGet, p.murl, nil)
	})
}

// moves reports whether the page has changed under our eyes: it differs from
// the first answer, and stays that way.
func (s *survey) moves(ctx context.Context, p *seenPage) (bool, error) {
	second, err := s.again(ctx, p)
	if err != nil || !readable(second) || bytes.Equal(second.Body, p.resp.Body) {
		return false, err
	}
	third, err := check.Memo(ctx, s.t, Name+" third "+p.murl, func(ctx context.Context) (*check.Response, error) {
		return s.t.Fresh(ctx, http.MethodGet, p.murl, nil)
	})
	return err == nil && bytes.Equal(second.Body, third.Body), err
}

// steady reports whether the page can be compared with later answers.
func (s *survey) steady(ctx context.Context, p *seenPage) (bool, error) {
	if !p.ok() {
		return false, nil
	}
	moves, err := s.moves(ctx, p)
	return !moves && err == nil, err
}

func readable(r *check.Response) bool { return r.Status == http.StatusOK && r.BodyErr == nil }

// sameTag reports whether two responses have a tag, and the same.
func sameTag(a, b *check.Response) bool { return tct.Opaque(a) != "" && tct.Opaque(a) == tct.Opaque(b) }

func checkNoRandomness(ctx context.Context, s *survey, p *seenPage, fail check.Fail) (bool, error) {
	if ok, err := s.steady(ctx, p); !ok {
		return false, err
	}
	second, err := s.again(ctx, p)
	if err != nil || !readable(second) {
		return false, err
	}
	if !bytes.Equal(second.Body, p.resp.Body) && !sameTag(second, p.resp) {
		got, want := difference(second.Body, p.resp.Body)
		fail(p.murl, "the second answer has "+got, "as the first one, "+want)
	}
	return true, nil
}

func checkDeterministic(ctx context.Context, s *survey, p *seenPage, fail check.Fail) (bool, error) {
	if ok, err := s.steady(ctx, p); !ok {
		return false, err
	}
	second, err := s.again(ctx, p)
	if err != nil || !readable(second) || !bytes.Equal(second.Body, p.resp.Body) {
		return false, err // no-randomness
	}
	for _, v := range []variant{otherWords, otherCoding} {
		resp, err := s.t.Do(ctx, http.MethodGet, p.murl, v.header)
		if err != nil {
			return false, err
		}
		if readable(resp) && !bytes.Equal(resp.Body, p.resp.Body) && !sameTag(resp, p.resp) {
			got, want := difference(resp.Body, p.resp.Body)
			fail(p.murl, got+" with "+v.name, want)
		}
	}
	return true, nil
}

func checkSameTagSameBody(ctx context.Context, s *survey, p *seenPage, fail check.Fail) (bool, error) {
	if !p.ok() || p.tag == "" {
		return false, nil
	}
	second, err := s.again(ctx, p)
	if err != nil {
		return false, err
	}
	all := []*check.Response{second}
	for _, v := range []variant{otherWords, otherCoding} {
		resp, err := s.t.Do(ctx, http.MethodGet, p.murl, v.header)
		if err != nil {
			return false, err
		}
		all = append(all, resp)
	}
	for _, resp := range all {
		if readable(resp) && sameTag(resp, p.resp) && !bytes.Equal(resp.Body, p.resp.Body) {
			got, want := difference(resp.Body, p.resp.Body)
			fail(p.murl, got+" under the same tag "+p.tag, want+", or another tag")
			break
		}
	}
	return true, nil
}

func checkTagPerRequest(ctx context.Context, s *survey, p *seenPage, fail check.Fail) (bool, error) {
	if !p.ok() || p.tag == "" {
		return false, nil
	}
	second, err := s.again(ctx, p)
	if err != nil {
		return false, err
	}
	worded, err := s.t.Do(ctx, http.MethodGet, p.murl, otherWords.header)
	if err != nil {
		return false, err
	}
	for _, resp := range []*check.Response{second, worded} {
		if readable(resp) && bytes.Equal(resp.Body, p.resp.Body) && tct.Opaque(resp) != p.tag {
			fail(p.murl, "ETag: "+resp.Header.Get("ETag")+", then, for the same body", "ETag: "+p.resp.Header.Get("ETag"))
			break
		}
	}
	return true, nil
}

// checkTagIntact asks for a coding: what compresses on the way is what most
// often weakens, rewrites or drops tags.
func checkTagIntact(ctx context.Context, s *survey, fail check.Fail) error {
	some := false
	for _, p := range s.pages {
		if !p.ok() || !strings.HasPrefix(p.resp.Header.Get("ETag"), `"`) {
			continue
		}
		resp, err := s.t.Do(ctx, http.MethodGet, p.murl, otherCoding.header)
		if err != nil {
			return err
		}
		some = true
		if got := resp.Header.Get("ETag"); readable(resp) && bytes.Equal(resp.Body, p.resp.Body) && got != p.resp.Header.Get("ETag") {
			fail(p.murl, "ETag: "+got+" with "+otherCoding.name, "ETag: "+p.resp.Header.Get("ETag"))
		}
	}
	for _, l := range s.lists {
		// A list's tag may have a suffix per coding: the draft does not say how it is made.
		if !strings.HasPrefix(l.resp.Header.Get("ETag"), `"`) {
			continue
		}
		resp, err := s.t.Do(ctx, http.MethodGet, l.url, otherCoding.header)
		if err != nil {
			return err
		}
		some = true
		if got := resp.Header.Get("ETag"); readable(resp) && !strings.HasPrefix(got, `"`) {
			fail(l.url, "ETag: "+got+" with "+otherCoding.name, "a strong ETag")
		}
	}
	if !some {
		return check.ErrNotApplicable
	}
	return nil
}

func checkParity(ctx context.Context, s *survey, p *seenPage, fail check.Fail) (bool, error) {
	if p.item == nil || !p.ok() || !tct.IsHash(p.item.etag) || !tct.IsHash(p.tag) && !tct.IsHash(p.hash) {
		return false, nil
	}
	if p.claims(p.item.etag) {
		return true, nil
	}
	// A site that is being edited gets a second chance, the list first: the
	// page is then at least as new.
	now, err := s.presentItem(ctx, p.item.mURL)
	if err != nil {
		return false, err
	}
	page, err := s.t.Fresh(ctx, http.MethodGet, p.murl, nil)
	if err != nil {
		return false, err
	}
	if now == nil || now.etag == tct.Opaque(page) {
		return true, nil
	}
	fail(p.murl, "etag of the item: "+now.etag, tct.Opaque(page))
	return true, nil
}

// presentItem fetches the lists anew, once, and gives the item with an mUrl,
// nil if there is none any more.
func (s *survey) presentItem(ctx context.Context, mURL string) (*seenItem, error) {
	items, err := check.Memo(ctx, s.t, Name+" lists again", func(ctx context.Context) (map[string]*seenItem, error) {
		out := map[string]*seenItem{}
		for _, l := range s.lists {
			resp, err := s.t.Fresh(ctx, http.MethodGet, l.url, nil)
			if err != nil {
				return nil, err
			}
			var doc struct {
				Items []json.RawMessage `json:"items"`
			}
			if !readable(resp) || json.Unmarshal(trimBOM(resp.Body), &doc) != nil {
				return nil, errors.New("the M-Sitemap cannot be read again")
			}
			for _, raw := range doc.Items {
				it := readItem(raw)
				if slices.ContainsFunc(s.pages, func(p *seenPage) bool { return p.item != nil && p.item.mURL == it.mURL }) {
					out[it.mURL] = it
				}
			}
		}
		return out, nil
	})
	return items[mURL], err
}
