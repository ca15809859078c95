package tct00

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tct"
	"github.com/millrace/millrace/internal/weblink"
)

func checkAlternate(ctx context.Context, s *survey, p *seenPage, fail check.Fail) (bool, error) {
	page, err := s.page(ctx, p)
	if err != nil || page == nil || page.Status != http.StatusOK || !p.ok() || !saysHTML(page) {
		return false, err
	}
	base, err := url.Parse(page.URL)
	if err != nil {
		return false, err
	}
	got := "no such element"
	for _, l := range weblink.HTML(bytes.NewReader(page.Body), base).Links {
		if !l.Is("alternate", tct.MediaType) {
			continue
		}
		if l.URL == p.murl {
			return true, nil
		}
		got = l.URL
	}
	fail(p.curl, got, `<link rel="alternate" type="application/json" href="`+p.murl+`">`)
	return true, nil
}

func saysHTML(r *check.Response) bool {
	return strings.Contains(strings.ToLower(r.Header.Get("Content-Type")), "html")
}

// canonicalLink gives where the M-URL's canonical link leads, "" if nowhere or
// to several places.
func (p *seenPage) canonicalLink() string {
	target := ""
	for _, l := range responseLinks(p.resp, false) {
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

// fieldURL gives canonical_url in canonical form, "" if it is no URL.
func (p *seenPage) fieldURL() string {
	s, _ := jsonText(p.fields["canonical_url"])
	u, err := canon.URL(s)
	if err != nil {
		return ""
	}
	return u
}

// disputed gives the URL with which one of the list, the canonical link and
// canonical_url stands alone against the two others, "" if none does.
func disputed(p *seenPage) string {
	list, head, field := p.curl, p.canonicalLink(), p.fieldURL()
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

func checkCanonicalLink(p *seenPage, fail check.Fail) bool {
	if !p.ok() {
		return false
	}
	head := p.canonicalLink()
	if odd := disputed(p); head == "" || head != p.curl && (odd == head || odd == "") {
		got := strings.Join(p.resp.Header.Values("Link"), ", ")
		if got == "" {
			got = "no Link field"
		}
		fail(p.murl, got, `Link: <`+p.curl+`>; rel="canonical"`)
	}
	return true
}

func checkCanonicalURL(p *seenPage, fail check.Fail) bool {
	if p.fields == nil {
		return false
	}
	field := p.fieldURL()
	if odd := disputed(p); field == "" || field != p.curl && (odd == field || odd == "") {
		fail(p.murl, "canonical_url: "+shown(p.fields["canonical_url"]), p.curl)
	}
	return true
}

func checkContentType(p *seenPage, fail check.Fail) bool {
	if !p.ok() {
		return false
	}
	got := p.resp.Header.Get("Content-Type")
	if typ, _, err := mime.ParseMediaType(got); err != nil || typ != tct.MediaType {
		fail(p.murl, "Content-Type: "+got, "Content-Type: "+tct.ContentType)
	}
	return true
}

// directives gives the directives of a Cache-Control field, by name.
func directives(r *check.Response) map[string]string {
	out := make(map[string]string)
	for d := range strings.SplitSeq(strings.ToLower(strings.Join(r.Header.Values("Cache-Control"), ",")), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(d), "=")
		out[name] = strings.Trim(value, `"`)
	}
	return out
}

func checkCacheControl(p *seenPage, fail check.Fail) bool {
	if !p.ok() {
		return false
	}
	said := directives(p.resp)
	_, again := said["must-revalidate"]
	_, private := said["private"]
	age, err := strconv.Atoi(said["max-age"])
	if !again || !private && (err != nil || age != 0) {
		fail(p.murl, "Cache-Control: "+strings.Join(p.resp.Header.Values("Cache-Control"), ", "), "must-revalidate, and max-age=0 or private")
	}
	return true
}

func checkVary(p *seenPage, fail check.Fail) bool {
	if !p.ok() {
		return false
	}
	got := strings.Join(p.resp.Header.Values("Vary"), ", ")
	if !slices.ContainsFunc(strings.Split(got, ","), func(name string) bool {
		name = strings.TrimSpace(name)
		return name == "*" || strings.EqualFold(name, "Accept")
	}) {
		fail(p.murl, "Vary: "+got, "Vary: Accept")
	}
	return true
}

func checkObject(p *seenPage, fail check.Fail) bool {
	if !p.ok() {
		return false
	}
	var v json.RawMessage
	switch err := json.Unmarshal(p.body, &v); {
	case err != nil:
		fail(p.murl, err.Error(), "one JSON object")
	case p.fields == nil:
		fail(p.murl, tct.Short(string(p.body)), "an object")
	}
	return true
}

func checkTitle(p *seenPage, fail check.Fail) bool   { return requireString(p, "title", fail) }
func checkContent(p *seenPage, fail check.Fail) bool { return requireString(p, "content", fail) }

func requireString(p *seenPage, name string, fail check.Fail) bool {
	if p.fields == nil {
		return false
	}
	if _, ok := jsonText(p.fields[name]); !ok {
		fail(p.murl, name+": "+shown(p.fields[name]), "a string")
	}
	return true
}

func checkProfile(p *seenPage, fail check.Fail) bool {
	if p.fields == nil {
		return false
	}
	if s, ok := jsonText(p.fields["profile"]); !ok || s == "" {
		fail(p.murl, "profile: "+shown(p.fields["profile"]), `a string, such as "tct-1"`)
	}
	return true
}

func checkLeak(p *seenPage, fail check.Fail) bool {
	if p.item == nil || p.err != nil {
		return false
	}
	if p.resp.Status == http.StatusUnauthorized {
		fail(p.murl, "an item of the list that answers "+tct.Status(p.resp), "no item, or an M-URL that everybody may have")
	}
	return true
}

func checkParity(ctx context.Context, s *survey, p *seenPage, fail check.Fail) (bool, error) {
	if p.item == nil || !p.ok() || !isHash(p.item.hash) || !isHash(p.tag) {
		return false, nil
	}
	if strings.EqualFold(p.tag, p.item.hash) {
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
	if now == nil || strings.EqualFold(now.hash, tct.Opaque(page)) {
		return true, nil
	}
	fail(p.murl, "contentHash of the item: "+now.hash, tct.Opaque(page))
	return true, nil
}

// presentItem fetches the list anew, once, and gives the item with an mUrl,
// nil if there is none any more.
func (s *survey) presentItem(ctx context.Context, mURL string) (*seenItem, error) {
	items, err := check.Memo(ctx, s.t, Name+" list again", func(ctx context.Context) (map[string]*seenItem, error) {
		out := map[string]*seenItem{}
		resp, err := s.t.Fresh(ctx, http.MethodGet, s.list.url, nil)
		if err != nil {
			return nil, err
		}
		var doc struct {
			Items []json.RawMessage `json:"items"`
		}
		if !readable(resp) || json.Unmarshal(trimBOM(resp.Body), &doc) != nil {
			return nil, errors.New("the list cannot be read again")
		}
		for _, raw := range doc.Items {
			it := readItem(raw)
			if slices.ContainsFunc(s.pages, func(p *seenPage) bool { return p.item != nil && p.item.mURL == it.mURL }) {
				out[it.mURL] = it
			}
		}
		return out, nil
	})
	return items[mURL], err
}

func readable(r *check.Response) bool { return r.Status == http.StatusOK && r.BodyErr == nil }
