package tct01

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tct"
)

func checkAlternate(ctx context.Context, s *survey, p *seenPage, fail check.Fail) (bool, error) {
	page, err := s.page(ctx, p)
	if err != nil || page == nil || page.Status != http.StatusOK || !p.ok() {
		return false, err
	}
	got := "no such link"
	for _, l := range responseLinks(page, true) {
		if !l.Is("alternate", tct.MediaType) {
			continue
		}
		if l.URL == p.murl {
			return true, nil
		}
		got = l.URL
	}
	fail(p.curl, got, `Link: <`+p.murl+`>; rel="alternate"; type="application/json"`)
	return true, nil
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
	if p.ok() {
		jsonType(p.murl, p.resp, fail)
	}
	return p.ok()
}

func checkCacheControl(p *seenPage, fail check.Fail) bool {
	if p.ok() {
		timely(p.murl, p.resp, fail)
	}
	return p.ok()
}

func checkVary(p *seenPage, fail check.Fail) bool {
	if p.ok() {
		variesByCoding(p.murl, p.resp, fail)
	}
	return p.ok()
}

func checkJSON(p *seenPage, fail check.Fail) bool {
	if !p.ok() {
		return false
	}
	var v json.RawMessage
	if err := json.Unmarshal(p.body, &v); err != nil {
		fail(p.murl, err.Error(), "one JSON value")
	}
	return true
}

func checkUTF8(p *seenPage, fail check.Fail) bool {
	if !p.ok() {
		return false
	}
	if len(p.body) < len(p.resp.Body) {
		fail(p.murl, "a byte order mark", "UTF-8 without it")
	}
	if !utf8.Valid(p.body) {
		at := 0
		for r, n := utf8.DecodeRune(p.body); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(p.body[at:]) {
			at += n
		}
		fail(p.murl, fmt.Sprintf("byte %d (%#02x) is not UTF-8", at, p.body[at]), "UTF-8")
	}
	return true
}

func checkObject(p *seenPage, fail check.Fail) bool {
	if !p.ok() || !json.Valid(p.body) {
		return false
	}
	if p.fields == nil {
		fail(p.murl, string(p.body), "an object")
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

// checkPlainText looks for tags in the content. A page about HTML has them in
// its text; so a tag counts as markup only if the C-URL does not show it to
// its readers.
func checkPlainText(ctx context.Context, s *survey, p *seenPage, fail check.Fail) (bool, error) {
	content, ok := jsonText(p.fields["content"])
	if !ok {
		return false, nil
	}
	tags := htmlTags(content)
	if len(tags) == 0 {
		return true, nil
	}
	page, err := s.page(ctx, p)
	if err != nil || page == nil || page.Status != http.StatusOK {
		return false, err
	}
	visible := shownText(page.Body)
	for _, tag := range tags {
		if !strings.Contains(visible, canon.Normalize(tag)) {
			fail(p.murl, "content with "+tag, "plain text")
			break
		}
	}
	return true, nil
}

// htmlTags gives the tags of known HTML elements in s, as they are written.
func htmlTags(s string) []string {
	if !strings.Contains(s, "<") {
		return nil
	}
	var out []string
	z := html.NewTokenizer(strings.NewReader(s))
	for tt := z.Next(); tt != html.ErrorToken; tt = z.Next() {
		if tt == html.StartTagToken || tt == html.EndTagToken || tt == html.SelfClosingTagToken {
			raw := string(z.Raw())
			if name, _ := z.TagName(); atom.Lookup(name) != 0 {
				out = append(out, raw)
			}
		}
	}
	return out
}

// shownText gives the text of an HTML document and of its attributes, such as
// alt, normalized.
func shownText(doc []byte) string {
	var b strings.Builder
	z := html.NewTokenizer(bytes.NewReader(doc))
	for tt := z.Next(); tt != html.ErrorToken; tt = z.Next() {
		switch tok := z.Token(); tt {
		case html.TextToken:
			b.WriteString(tok.Data)
		case html.StartTagToken, html.SelfClosingTagToken:
			for _, a := range tok.Attr {
				if a.Key == "alt" || a.Key == "title" || a.Key == "content" {
					b.WriteString("\n" + a.Val + "\n")
				}
			}
		}
	}
	return canon.Normalize(b.String())
}

func checkLeak(p *seenPage, fail check.Fail) bool {
	if p.item == nil || p.err != nil {
		return false
	}
	if p.resp.Status == http.StatusUnauthorized {
		fail(p.murl, "an item of the M-Sitemap that answers "+tct.Status(p.resp), "no item, or an M-URL that everybody may have")
	}
	return true
}

func checkAccess(ctx context.Context, s *survey, p *seenPage, fail check.Fail) (bool, error) {
	page, err := s.page(ctx, p)
	if err != nil || page == nil || p.err != nil {
		return false, err
	}
	if page.Status == http.StatusUnauthorized && p.resp.Status == http.StatusOK {
		fail(p.murl, "200, while "+p.curl+" answers "+tct.Status(page), tct.Status(page))
	}
	return true, nil
}
