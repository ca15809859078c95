package tct

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/weblink"
)

// checkVersion checks the version of a list.
func checkVersion(l *seenList, fail check.Fail) {
	if raw, want := l.Fields["version"], strconv.Itoa(l.d.ListVersion); string(raw) != want {
		fail(l.URL, "version: "+kit.ShortJSON(raw), "the integer "+want)
	}
}

// checkListProfile checks the profile of a list.
func checkListProfile(l *seenList, fail check.Fail) { checkProfile(l.URL, l.Fields, fail) }

// checkPageProfile checks the profile of a document.
func checkPageProfile(p *seenPage, fail check.Fail) bool {
	if p.Fields != nil {
		checkProfile(p.MURL, p.Fields, fail)
	}
	return p.Fields != nil
}

func checkProfile(u string, fields map[string]json.RawMessage, fail check.Fail) {
	if s, ok := check.JSONText(fields["profile"]); !ok || s == "" {
		fail(u, "profile: "+kit.ShortJSON(fields["profile"]), `a string, such as "tct-1"`)
	}
}

// checkItems checks that a list has items, and that they are objects.
func checkItems(l *seenList, fail check.Fail) {
	if l.Items == nil {
		fail(l.URL, "items: "+kit.ShortJSON(l.Fields["items"]), "an array of objects")
	}
	for i, raw := range l.Items {
		if l.Item(i).Fields == nil {
			fail(l.URL, fmt.Sprintf("items/%d: %s", i, raw), "an object with cUrl, mUrl and "+l.d.TagMember)
		}
	}
}

// checkCURL checks the C-URLs of items.
func checkCURL(_ context.Context, s *siteContext, fail check.Fail) error {
	err := s.OnItems(func(l *seenList, i int, it *seenItem) {
		if _, err := canon.URL(it.CURL); err != nil {
			fail(l.URL, fmt.Sprintf("items/%d/cUrl: %s", i, kit.ShortJSON(it.Fields["cUrl"])), "an absolute http or https URL")
		}
	})
	for _, p := range s.Pages {
		if p.Item != nil && p.OK() && p.CURL != "" && p.Disputed() == p.CURL {
			fail(p.MURL, "cUrl: "+p.CURL, p.FieldURL()+", as in the M-URL and its canonical link")
		}
	}
	return err
}

// checkMURL checks the M-URLs of items.
func checkMURL(_ context.Context, s *siteContext, fail check.Fail) error {
	if err := s.OnItems(func(l *seenList, i int, it *seenItem) {
		if m, err := canon.URL(it.MURL); err != nil || !s.HasHost(m) {
			fail(l.URL, fmt.Sprintf("items/%d/mUrl: %s", i, kit.ShortJSON(it.Fields["mUrl"])), "an absolute http or https URL of the site")
		}
	}); err != nil {
		return err
	}
	for _, p := range s.Pages {
		const want = "200 with the JSON of a listed item"
		switch {
		case p.Item == nil, p.OK():
		case check.IsInconclusive(p.Err):
			return p.Err
		case p.Err != nil:
			fail(p.MURL, p.Err.Error(), want)
		case p.Resp.Status == http.StatusUnauthorized: // checkLeak reports it
		case p.Resp.Status != http.StatusOK:
			fail(p.MURL, p.Resp.StatusText(), want)
		default:
			fail(p.MURL, p.Resp.BodyErr.Error(), want)
		}
	}
	return nil
}

// checkLeak checks that a list contains only public documents.
func checkLeak(p *seenPage, fail check.Fail) bool {
	if p.Item == nil || p.Err != nil {
		return false
	}
	if p.Resp.Status == http.StatusUnauthorized {
		fail(p.MURL, "a listed M-URL that responds with "+p.Resp.StatusText(), "a public M-URL, or no item for it")
	}
	return true
}

// checkParity returns a rule that requires the same validator for an item and for its M-URL. sound
// reports whether both have a validator, and same reports whether the two are equal. If they
// differ, the rule fetches both again, because the site may have been edited. It fetches the list
// first, so the document is at least as new.
func checkParity(sound, same func(p *seenPage) bool) siteRule {
	return askPages(func(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
		if p.Item == nil || !p.OK() || !sound(p) {
			return false, nil
		}
		if same(p) {
			return true, nil
		}
		now, err := s.presentItem(ctx, p.Item.MURL)
		if err != nil {
			return true, err
		}
		page, err := s.DoUncached(ctx, http.MethodGet, p.MURL, nil)
		if err != nil {
			return true, err
		}
		if now != nil && !strings.EqualFold(now.Tag, kit.OpaqueTag(page)) {
			fail(p.MURL, s.d.TagMember+" of the item: "+now.Tag, kit.OpaqueTag(page))
		}
		return true, nil
	})
}

// checkAlternate returns a rule that requires a page to link to its M-URL. If element is set, the
// link must be in the HTML; otherwise, it may also be in a Link field.
func checkAlternate(element bool) siteRule {
	return askPages(func(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
		page, err := s.Page(ctx, p)
		if err != nil || page == nil || page.Status != http.StatusOK || !p.OK() || element && !weblink.IsHTML(page.Header) {
			return false, err
		}
		links, want := kit.Links(page), `Link: <`+p.MURL+`>; rel="alternate"; type="application/json"`
		if element {
			links = links[len(kit.FieldLinks(page)):]
			want = `<link rel="alternate" type="application/json" href="` + p.MURL + `">`
		}
		got := "no such link"
		for _, l := range links {
			if !l.Is("alternate", mediaType) {
				continue
			}
			if l.URL == p.MURL {
				return true, nil
			}
			got = l.URL
		}
		fail(p.CURL, got, want)
		return true, nil
	})
}

// checkContentType returns a rule that requires the JSON media type for an M-URL. If charset is
// set, it also requires the charset UTF-8.
func checkContentType(charset bool) siteRule {
	return onPages(func(p *seenPage, fail check.Fail) bool {
		if p.OK() {
			isJSONType(p.MURL, p.Resp, charset, fail)
		}
		return p.OK()
	})
}

func isJSONType(u string, r *check.Response, charset bool, fail check.Fail) {
	got := r.Header.Get("Content-Type")
	typ, params, err := mime.ParseMediaType(got)
	if err != nil || typ != mediaType || charset && !strings.EqualFold(params["charset"], "utf-8") {
		fail(u, "Content-Type: "+got, "Content-Type: "+contentType)
	}
}

// checkVary returns a rule that requires the Vary field of an M-URL to contain a field name.
func checkVary(name string) siteRule {
	return onPages(func(p *seenPage, fail check.Fail) bool {
		if p.OK() {
			varies(p.MURL, p.Resp, fail, name)
		}
		return p.OK()
	})
}

func varies(u string, r *check.Response, fail check.Fail, by string) {
	if !kit.Varies(r.Header, by) {
		fail(u, "Vary: "+r.Field("Vary"), "Vary: "+by)
	}
}

// presentItem fetches the lists again, but only once per check, and returns the item with the given
// mUrl, or nil if the item is no longer listed.
func (s *siteContext) presentItem(ctx context.Context, mURL string) (*seenItem, error) {
	items, err := check.Memo(ctx, s.Target, s.d.Name+" lists again", func(ctx context.Context) (map[string]*seenItem, error) {
		out := map[string]*seenItem{}
		for _, l := range s.Lists {
			resp, err := s.DoUncached(ctx, http.MethodGet, l.URL, nil)
			if err != nil {
				return nil, err
			}
			items := kit.Array(kit.Object(kit.TrimBOM(resp.Body))["items"])
			if !resp.OK() || items == nil {
				return nil, errors.New("cannot read the list again")
			}
			for _, raw := range items {
				it := s.d.item(raw)
				if slices.ContainsFunc(s.Pages, func(p *seenPage) bool { return p.Item != nil && p.Item.MURL == it.MURL }) {
					out[it.MURL] = it
				}
			}
		}
		return out, nil
	})
	return items[mURL], err
}

// canonicalLink returns the target of the M-URL's canonical link. If there is no link, or several
// links differ, it returns "".
func (p *seenPage) canonicalLink() string {
	target := ""
	for _, l := range kit.FieldLinks(p.Resp) {
		switch {
		case !l.Is("canonical", ""):
		case target != "" && target != l.URL:
			return ""
		default:
			target = l.URL
		}
	}
	return target
}

// FieldURL returns the member canonical_url in canonical form, or "" if it is not a URL.
func (p *seenPage) FieldURL() string {
	s := kit.Text(p.Fields["canonical_url"])
	u, err := canon.URL(s)
	if err != nil {
		return ""
	}
	return u
}

// Disputed compares the C-URL in the list, the canonical link and canonical_url. It returns the one
// that differs from the other two. If all agree, or one is absent, it returns "".
func (p *seenPage) Disputed() string {
	list, head, field := p.CURL, p.canonicalLink(), p.FieldURL()
	switch {
	case list == "" || head == "" || field == "":
	case list == head && head != field:
		return field
	case list == field && field != head:
		return head
	case head == field && field != list:
		return list
	}
	return ""
}

// checkCanonicalLink checks the canonical link of an M-URL.
func checkCanonicalLink(p *seenPage, fail check.Fail) bool {
	if !p.OK() {
		return false
	}
	head := p.canonicalLink()
	if other := p.Disputed(); head == "" || head != p.CURL && (other == head || other == "") {
		fail(p.MURL, linkField(p.Resp), `Link: <`+p.CURL+`>; rel="canonical"`)
	}
	return true
}

// linkField returns the Link fields of a response for use in a finding.
func linkField(r *check.Response) string {
	if got := r.Field("Link"); got != "" {
		return got
	}
	return "no Link field"
}

// checkCanonicalURL checks the canonical_url of a document.
func checkCanonicalURL(p *seenPage, fail check.Fail) bool {
	if p.Fields == nil {
		return false
	}
	field := p.FieldURL()
	if other := p.Disputed(); field == "" || field != p.CURL && (other == field || other == "") {
		fail(p.MURL, "canonical_url: "+kit.ShortJSON(p.Fields["canonical_url"]), p.CURL)
	}
	return true
}

// checkString checks that a member of a document is a string.
func checkString(name string) func(p *seenPage, fail check.Fail) bool {
	return func(p *seenPage, fail check.Fail) bool {
		if p.Fields == nil {
			return false
		}
		if _, ok := check.JSONText(p.Fields[name]); !ok {
			fail(p.MURL, name+": "+kit.ShortJSON(p.Fields[name]), "a string")
		}
		return true
	}
}

// checkObject returns a rule that requires a document to be an object. If strict is set, the rule
// also reports a document that is not JSON; otherwise, another rule does so.
func checkObject(strict bool) func(p *seenPage, fail check.Fail) bool {
	return func(p *seenPage, fail check.Fail) bool {
		var v json.RawMessage
		switch err := json.Unmarshal(p.Body, &v); {
		case !p.OK(), err != nil && !strict:
			return false
		case err != nil:
			fail(p.MURL, err.Error(), "one JSON object")
		case p.Fields == nil:
			fail(p.MURL, kit.Short(string(p.Body)), "an object")
		}
		return true
	}
}

// hashForm is the format of hashes in a draft.
type hashForm struct {
	Is   func(s string) bool
	Want string
}

// checkItemTag returns a rule that requires a valid hash in each item of a list. If optional is
// set, items may have no hash.
func checkItemTag(form hashForm, optional bool) func(l *seenList, fail check.Fail) {
	return func(l *seenList, fail check.Fail) {
		l.Each(func(i int, it *seenItem) {
			if raw, there := it.Fields[l.d.TagMember]; (there || !optional) && !form.Is(it.Tag) {
				fail(l.URL, fmt.Sprintf("items/%d/%s: %s", i, l.d.TagMember, kit.ShortJSON(raw)), form.Want)
			}
		})
	}
}

// checkHashForm returns a rule that requires the given form for the hash member of a document.
func checkHashForm(form hashForm) func(p *seenPage, fail check.Fail) bool {
	return func(p *seenPage, fail check.Fail) bool {
		if p.Fields != nil && !form.Is(p.Hash) {
			fail(p.MURL, "hash: "+kit.ShortJSON(p.Fields["hash"]), form.Want)
		}
		return p.Fields != nil
	}
}

// checkHashEqualsTag returns a rule that requires the hash member of a document to equal the ETag.
// right reports whether a value is the correct hash.
func checkHashEqualsTag(hash, tag hashForm, right func(p *seenPage, value string) bool) func(p *seenPage, fail check.Fail) bool {
	return func(p *seenPage, fail check.Fail) bool {
		if !hash.Is(p.Hash) || !tag.Is(p.Tag) {
			return false
		}
		if !strings.EqualFold(tagOf(p.Hash), p.Tag) {
			want := "the same value for both"
			switch {
			case right(p, p.Hash):
				want += ": the hash is correct"
			case right(p, p.Tag):
				want += ": the ETag is correct"
			}
			fail(p.MURL, "hash "+p.Hash+", ETag "+p.Tag, want)
		}
		return true
	}
}
