package commonmark

import (
	"context"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
)

// Page returns the blocks of a page's Markdown, whose links are relative to base.
// Errors are [millrace.ErrTooLarge] and those of the context.
func Page(ctx context.Context, text []byte, base *url.URL) ([]millrace.Block, error) {
	text, err := Bounded(text)
	if err != nil {
		return nil, err
	}
	l := linker{base}
	return Blocks(ctx, text, &Options{Link: l.link, Resource: l.resource, HTML: l.html, Attributes: true})
}

// linker resolves the references of a page.
type linker struct{ base *url.URL }

// link returns the absolute URL of a link with its fragment, or "" if the URL is invalid or has a
// scheme other than http, https and mailto.
func (l linker) link(ref string) string {
	ref = strings.TrimSpace(ref)
	if len(ref) > 7 && strings.EqualFold(ref[:7], "mailto:") {
		if millrace.SafeURL(ref) {
			return ref
		}
		return ""
	}
	target, fragment, ok := strings.Cut(ref, "#")
	u := l.base.String()
	if target != "" {
		u = l.resource(target)
	}
	if u == "" || !ok || fragment == "" {
		if target == "" {
			return ""
		}
		return u
	}
	parsed, err := url.Parse(u + "#" + fragment)
	if err != nil {
		return u
	}
	return parsed.String()
}

// resource returns the absolute URL of a reference without its fragment, or "" if it is
// invalid.
func (l linker) resource(ref string) string {
	u, err := canon.Resolve(l.base, strings.TrimSpace(ref))
	if err != nil {
		return ""
	}
	return u
}

// html returns the blocks of HTML in a text.
func (l linker) html(ctx context.Context, source []byte) []millrace.Block {
	blocks, err := extract.Fragment(ctx, source, l.base.String(), nil)
	if err != nil {
		return nil // drop HTML that cannot be read
	}
	return blocks
}
