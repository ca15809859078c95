package openfeeder

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// scripted matches markup that loads or runs something: a script or iframe with a src, a script
// with a call or an assignment, or an image of one pixel. It does not match tags that a text only
// mentions, as in a text about HTML.
var scripted = regexp.MustCompile(`(?is)<(?:script|iframe)\s[^<>]*\bsrc\s*=[^<>]*>?` +
	`|<script(?:\s[^<>]*)?>.*?(?:[\w$)\]]\(|=).*?</script` +
	`|<img\s[^>]*(?:width|height)=["']?1["'\s>]`)

// sample matches code spans and code blocks in Markdown.
var sample = regexp.MustCompile("(?s)```.*?(?:```|$)|`[^`\n]*`")

// checkScripts checks for markup left in the text. Markup is allowed in code, and in text that
// quotes it: the page itself then shows the markup as text.
func checkScripts(ctx context.Context, s *siteContext, fail check.Fail) error {
	some := false
	for i, p := range s.pages {
		if !p.page() {
			continue
		}
		chunks, _ := objects(p.body.at("chunks"))
		for n, c := range chunks {
			some = true
			found := scripted.FindString(sample.ReplaceAllString(kit.Text(c["text"]), " "))
			if found == "" || kit.Text(c["type"]) == "code" {
				continue
			}
			visible, err := s.shows(ctx, s.asked[i], found)
			if err != nil {
				return err
			}
			if !visible {
				fail(p.url, fmt.Sprintf("chunks/%d/text contains %s", n, found), "only the content")
			}
		}
	}
	return check.Applied(some)
}

// invisible matches the parts of an HTML source that readers do not see.
var invisible = regexp.MustCompile(`(?is)<script\b.*?</script\s*>|<style\b.*?</style\s*>|<!--.*?-->|<[a-z/!][^>]*>`)

// shows reports whether a page of the site shows the markup as visible text. It ignores white space
// and tags, such as those of code highlighting.
func (s *siteContext) shows(ctx context.Context, pageURL, markup string) (bool, error) {
	if !s.HasHost(pageURL) {
		return false, nil // request no other site
	}
	p, err := s.get(ctx, pageURL)
	if err != nil || p.err != nil || p.resp.BodyErr != nil || p.resp.Status != http.StatusOK {
		return false, err
	}
	squeezed := func(s string) string { return strings.Join(strings.Fields(s), "") }
	seen := html.UnescapeString(invisible.ReplaceAllString(string(p.resp.Body), ""))
	return strings.Contains(squeezed(seen), squeezed(markup)), nil
}
