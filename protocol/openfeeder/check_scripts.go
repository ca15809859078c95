package openfeeder

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/protocol/kit"
)

// scripted is markup that loads or runs something: a script or a frame with an
// address, a script with a call or an assignment, a picture of one pixel. An
// element that is only named, as in a text about HTML, does neither.
var scripted = regexp.MustCompile(`(?is)<(?:script|iframe)\s[^<>]*\bsrc\s*=[^<>]*>?` +
	`|<script(?:\s[^<>]*)?>.*?(?:[\w$)\]]\(|=).*?</script` +
	`|<img\s[^>]*(?:width|height)=["']?1["'\s>]`)

// sample is a span or a block of code in Markdown.
var sample = regexp.MustCompile("(?s)```.*?(?:```|$)|`[^`\n]*`")

// checkScripts is about markup that was left in the text. Code may have it, and
// so may a text that shows it: then the page itself shows it to its readers.
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
			shown, err := s.shows(ctx, s.asked[i], found)
			if err != nil {
				return err
			}
			if !shown {
				fail(p.url, fmt.Sprintf("chunks/%d/text has %s", n, found), "the content alone")
			}
		}
	}
	return check.Applied(some)
}

// unseen is what the readers of a page of HTML do not see of its source.
var unseen = regexp.MustCompile(`(?is)<script\b.*?</script\s*>|<style\b.*?</style\s*>|<!--.*?-->|<[a-z/!][^>]*>`)

// shows reports whether a page of the site has markup in the text that its
// readers see. Where the lines end, and how the code is coloured, is no matter.
func (s *siteContext) shows(ctx context.Context, pageURL, markup string) (bool, error) {
	if !s.Near(pageURL) {
		return false, nil // no other site hears of the checker
	}
	p, err := s.get(ctx, pageURL)
	if err != nil || p.err != nil || p.resp.BodyErr != nil || p.resp.Status != http.StatusOK {
		return false, err
	}
	squeezed := func(s string) string { return strings.Join(strings.Fields(s), "") }
	seen := html.UnescapeString(unseen.ReplaceAllString(string(p.resp.Body), ""))
	return strings.Contains(squeezed(seen), squeezed(markup)), nil
}
