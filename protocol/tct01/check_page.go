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
)

func checkAlternate(ctx context.Context, s *survey, p *seenPage, fail check.Fail) (bool, error) {
	page, err := s.page(ctx, p)
	if err != nil || page == nil || page.Status != http.StatusOK || !p.ok() {
		return false, err
	}
	got := "no such link"
	for _, l := range responseLinks(page, true) {
		if !l.is("alternate", mediaType) {
			continue
		}
		if l.target == p.murl {
			return true, nil
		}
		got = l.target
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
		case !l.is("canonical", ""):
		case target != "" && target != l.target:
			return ""
		default:
			target = l.target
		}
	}
	return target
}

// fieldURL gives canonical_url in canonical form, "" if it is no URL.
func (p *seenPage) fieldURL() string {
	s, _ := text(p.fields["canonical_url"])
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
	if _, ok := text(p.fields[name]); !ok {
		fail(p.murl, name+": "+shown(p.fields[name]), "a string")
	}
	return true
}

func checkProfile(p *seenPage, fail check.Fail) bool {
	if p.fields == nil {
		return false
	}
	if s, ok := text(p.fields["profile"]); !ok || s == "" {
		fail(p.murl, "profile: "+shown(p.fields["profile"]), `a string, such as "tct-1"`)
	}
	return true
}

// checkPlainText looks for tags in the content. A page about HTML has them in
// its text; so a tag counts as markup only if the C-URL does not show it to
// its readers.
func checkPlainText(ctx context.Context, s *survey, p *seenPage, fail check.Fail) (bool, error) {
	content, ok := text(p.fields["content"])
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

func checkHashForm(p *seenPage, fail check.Fail) bool {
	if p.fields == nil {
		return false
	}
	if !isHash(p.hash) {
		fail(p.murl, "hash: "+shown(p.fields["hash"]), "sha256- and 64 lower-case hexadecimal digits")
	}
	return true
}

func checkStrongTag(p *seenPage, fail check.Fail) bool {
	if !p.ok() {
		return false
	}
	got := p.resp.Header.Get("ETag")
	if got == "" || strings.HasPrefix(got, "W/") {
		want := p.hash
		if !isHash(want) {
			want = "sha256-…"
		}
		fail(p.murl, "ETag: "+got, `ETag: "`+want+`"`)
	}
	return true
}

func checkQuotedTag(p *seenPage, fail check.Fail) bool {
	if !p.ok() || p.tag == "" {
		return false
	}
	got := strings.TrimPrefix(p.resp.Header.Get("ETag"), "W/")
	if got != `"`+p.tag+`"` || strings.ContainsAny(p.tag, "\" \t") {
		fail(p.murl, "ETag: "+got, `ETag: "`+p.tag+`"`)
	}
	return true
}

func checkTagForm(p *seenPage, fail check.Fail) bool {
	if !p.ok() || p.tag == "" {
		return false
	}
	if !isHash(p.tag) {
		fail(p.murl, "ETag: "+p.resp.Header.Get("ETag"), "sha256- and 64 lower-case hexadecimal digits, in quotes")
	}
	return true
}

func checkHashEqualsTag(p *seenPage, fail check.Fail) bool {
	if !p.ok() || !isHash(p.hash) || !isHash(p.tag) {
		return false
	}
	if p.hash != p.tag {
		want := "one value for both"
		switch p.sumJCS {
		case p.hash:
			want += ": the hash is the right one"
		case p.tag:
			want += ": the ETag is the right one"
		}
		fail(p.murl, "hash "+p.hash+", ETag "+p.tag, want)
	}
	return true
}

// claims reports whether the page's hash or tag is sum.
func (p *seenPage) claims(sum string) bool { return sum != "" && (p.hash == sum || p.tag == sum) }

func checkHash(p *seenPage, fail check.Fail) bool {
	if p.fields == nil || !utf8.Valid(p.body) || !isHash(p.hash) && !isHash(p.tag) {
		return false
	}
	if p.claims(p.sumJCS) || p.claims(p.sumCut) {
		return true // if the other one differs, that is hash-equals-etag
	}
	want := p.sumJCS
	if p.jcsErr != nil {
		want = p.sumCut
	}
	got := p.hash
	if !isHash(got) {
		got = p.tag
	}
	fail(p.murl, got, want)
	return true
}

// compact gives the body without insignificant white space.
func (p *seenPage) compact() ([]byte, bool) {
	var b bytes.Buffer
	err := json.Compact(&b, p.body)
	return b.Bytes(), err == nil
}

func checkNoSpace(p *seenPage, fail check.Fail) bool {
	if !p.ok() {
		return false
	}
	compact, ok := p.compact()
	if ok && len(compact) != len(p.body) {
		fail(p.murl, fmt.Sprintf("%d bytes, %d of them white space between tokens", len(p.body), len(p.body)-len(compact)), "none")
	}
	return ok
}

// mixesForms reports whether the tag is over RFC 8785 and not over the form
// that the body has.
func (p *seenPage) mixesForms() bool { return p.claims(p.sumJCS) && !p.claims(p.sumCut) }

// checkWireForm leaves a tag over a form of the publisher's own to checkJCS.
func checkWireForm(p *seenPage, fail check.Fail) bool {
	if p.fields == nil || p.jcsErr != nil || !p.claims(p.sumJCS) {
		return false
	}
	if compact, _ := p.compact(); !bytes.Equal(compact, p.jcs) && p.mixesForms() {
		got, want := difference(compact, p.jcs)
		fail(p.murl, "tag over RFC 8785, body with "+got, want)
	}
	return true
}

func checkJCS(p *seenPage, fail check.Fail) bool {
	compact, ok := p.compact()
	if !p.ok() || !ok || !utf8.Valid(p.body) {
		return false
	}
	if p.jcsErr != nil {
		fail(p.murl, p.jcsErr.Error(), "JSON that has a canonical form")
	} else if !bytes.Equal(compact, p.jcs) && !p.mixesForms() {
		got, want := difference(compact, p.jcs)
		fail(p.murl, got, want)
	}
	return true
}

// difference gives where two byte strings part, with a little of either.
func difference(a, b []byte) (string, string) {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	from := max(at-20, 0)
	cut := func(s []byte) string {
		return fmt.Sprintf("%q at byte %d", s[min(from, len(s)):min(at+40, len(s))], from)
	}
	return cut(a), cut(b)
}

func checkLeak(p *seenPage, fail check.Fail) bool {
	if p.item == nil || p.err != nil {
		return false
	}
	if p.resp.Status == http.StatusUnauthorized {
		fail(p.murl, "an item of the M-Sitemap that answers "+status(p.resp), "no item, or an M-URL that everybody may have")
	}
	return true
}

func checkAccess(ctx context.Context, s *survey, p *seenPage, fail check.Fail) (bool, error) {
	page, err := s.page(ctx, p)
	if err != nil || page == nil || p.err != nil {
		return false, err
	}
	if page.Status == http.StatusUnauthorized && p.resp.Status == http.StatusOK {
		fail(p.murl, "200, while "+p.curl+" answers "+status(page), status(page))
	}
	return true, nil
}
