package tct

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

func checkCacheControl01(p *seenPage, fail check.Fail) bool {
	if p.OK() {
		timely(p.MURL, p.Resp, fail)
	}
	return p.OK()
}

func checkJSON(p *seenPage, fail check.Fail) bool {
	if !p.OK() {
		return false
	}
	var v json.RawMessage
	if err := json.Unmarshal(p.Body, &v); err != nil {
		fail(p.MURL, err.Error(), "one JSON value")
	}
	return true
}

func checkUTF8(p *seenPage, fail check.Fail) bool {
	if !p.OK() {
		return false
	}
	if len(p.Body) < len(p.Resp.Body) {
		fail(p.MURL, "a byte order mark", "UTF-8 without it")
	}
	if !utf8.Valid(p.Body) {
		at := 0
		for r, n := utf8.DecodeRune(p.Body); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(p.Body[at:]) {
			at += n
		}
		fail(p.MURL, fmt.Sprintf("byte %d (%#02x) is not UTF-8", at, p.Body[at]), "UTF-8")
	}
	return true
}

// checkPlainText searches the content for HTML tags. The text of a page about HTML contains tags,
// so a tag counts as markup only if the C-URL does not show it to readers.
func checkPlainText(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	content, ok := check.JSONText(p.Fields["content"])
	if !ok {
		return false, nil
	}
	tags := htmlTags(content)
	if len(tags) == 0 {
		return true, nil
	}
	page, err := s.Page(ctx, p)
	if err != nil || page == nil || page.Status != http.StatusOK {
		return false, err
	}
	visible := visibleText(page.Body)
	for _, tag := range tags {
		if !strings.Contains(visible, canon.Normalize(tag)) {
			fail(p.MURL, "content with "+tag, "plain text")
			break
		}
	}
	return true, nil
}

// htmlTags returns the tags of known HTML elements in s, as written.
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

// visibleText returns the normalized text of an HTML document, including attributes such as alt.
func visibleText(doc []byte) string {
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

func checkAccess(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	page, err := s.Page(ctx, p)
	if err != nil || page == nil || p.Err != nil {
		return false, err
	}
	if page.Status == http.StatusUnauthorized && p.Resp.Status == http.StatusOK {
		fail(p.MURL, "200, although "+p.CURL+" responds with "+page.StatusText(), page.StatusText())
	}
	return true, nil
}
