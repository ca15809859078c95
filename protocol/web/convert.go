package web

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/commonmark"
	"github.com/millrace/millrace/internal/kit"
)

// carry returns the page that a reader gets from the Markdown of p, or nil if p has no Markdown.
func carry(site millrace.Site, p *millrace.Page) *millrace.Page {
	if missing(site, p) != "" {
		return nil
	}
	out, _ := stablePage(reduce(site, p))
	return out
}

// Reasons why a page has no Markdown, for the field X-Markdown-Missing.
const (
	unnamed  = "unnamed" // the C-URL is not below the site's base; never sent
	archived = "the page only lists other pages"
	empty    = "no content was found in the page"
)

// missing returns the reason why a page has no Markdown, or "" if it has Markdown.
func missing(site millrace.Site, p *millrace.Page) string {
	u, err := canon.URL(canon.Absolute(site.Base, p.URL))
	switch {
	case err != nil, !strings.HasPrefix(canon.Relative(site.Base, u), "/"):
		return unnamed
	case p.Kind == millrace.Archive:
		return archived
	case !hasText(p.Blocks) && strings.TrimSpace(p.Text()) == "" && !hasMedia(p.Blocks):
		return empty
	}
	return ""
}

// hasText reports whether a text or heading block contains text. It is faster than
// [millrace.Page.Text], because the first block of most pages contains text.
func hasText(blocks []millrace.Block) bool {
	return slices.ContainsFunc(blocks, func(b millrace.Block) bool {
		return (b.Type == millrace.TextBlock || b.Type == millrace.HeadingBlock) && strings.TrimSpace(b.Text) != "" || hasText(b.Blocks)
	})
}

// hasMedia reports whether blocks contain a link or media with a safe URL.
func hasMedia(blocks []millrace.Block) bool {
	return slices.ContainsFunc(blocks, func(b millrace.Block) bool {
		switch b.Type {
		case millrace.ImageBlock, millrace.VideoBlock, millrace.AudioBlock, millrace.EmbedBlock, millrace.LinkBlock:
			return millrace.SafeURL(b.URL)
		}
		return hasMedia(b.Blocks)
	})
}

// reduce returns the part of a page that the protocol carries, with unchanged blocks.
func reduce(site millrace.Site, p *millrace.Page) *millrace.Page {
	out := &millrace.Page{
		Title: cleanLine(p.Title), Description: cleanLine(p.Description), Author: cleanLine(p.Author), Language: cleanLine(p.Language),
		Section: cleanLine(p.Section), Published: kit.Second(p.Published), Modified: kit.Second(p.Modified),
		Kind: p.Kind, Blocks: p.Blocks, Known: carried, Detail: millrace.DetailBlocks,
	}
	out.URL, _ = canon.URL(canon.Absolute(site.Base, p.URL))
	if !slices.Contains(pageKinds, out.Kind) {
		out.Kind = ""
	}
	for _, tag := range p.Tags {
		if tag = cleanLine(tag); tag != "" {
			out.Tags = append(out.Tags, tag)
		}
	}
	return out
}

// stablePage returns the form of a page that a round trip through Markdown does not change, and the
// Markdown of that form.
func stablePage(p *millrace.Page) (*millrace.Page, []byte) {
	with := func(blocks []millrace.Block) *millrace.Page {
		next := *p
		next.Blocks = blocks
		return &next
	}
	return commonmark.Settle(p.Blocks, with, encodeMarkdown, func(body []byte) (*millrace.Page, bool) {
		read, err := decodeMarkdown(context.Background(), body, p.URL)
		if err != nil {
			return with(nil), false
		}
		return read, len(read.Blocks) > 0
	})
}

// format is part of every tag, and the Format of the tagger. It changes whenever the Markdown of
// unchanged pages changes.
const format = 5

// hashLen is the length of a tag's hash. A tag consists of the hash of the page, an estimate of its
// tokens, and the length of its line in llms.txt, separated by "-".
const hashLen = 32

// tag returns the validator of a page's Markdown, or "" for a page without Markdown. It is computed
// from the page's revision, because rendering the Markdown is slow. The front matter contains the
// page's date; a change of the date also changes the revision. The length of the line in llms.txt
// depends only on the page.
func tag(site millrace.Site, p *millrace.Page) (string, error) {
	if missing(site, p) != "" {
		return "", nil
	}
	reduced := reduce(site, p)
	revision := p.Version
	if revision == "" {
		revision = p.Revision()
	}
	hash := canon.SHA256Hex(fmt.Appendf(nil, "%d\n%s\n%s\n%s", format, site.EndpointBase, reduced.URL, revision))[:hashLen]
	return fmt.Sprintf("%s-%d-%d", hash, tokens(reduced), lineOf(p, canon.Relative(site.Base, reduced.URL))), nil
}

// tagParts returns the parts of a tag after the hash.
func tagParts(value string) (tokens string, line int) {
	_, rest, _ := strings.Cut(value, "-")
	tokens, rest, _ = strings.Cut(rest, "-")
	line, err := strconv.Atoi(rest)
	if err != nil {
		line = lineSpace
	}
	return tokens, line
}

// tokens estimates the number of tokens of a page's Markdown: one per four characters.
func tokens(p *millrace.Page) int {
	const matter = 60 // number of characters of the names and punctuation in the front matter
	n := matter + 2*utf8.RuneCountInString(p.Title) + utf8.RuneCountInString(p.Description) + len(p.URL) + len(p.Author)
	commonmark.Texts(p.Blocks, func(text string, spans []millrace.Span) {
		n += utf8.RuneCountInString(text) + 2 // plus two characters for a line end or a mark
		for _, s := range spans {
			n += len(s.URL) + 4
		}
	})
	return (n + 3) / 4
}

// markdownOf returns the Markdown of a page whose published tag is want.
func markdownOf(site millrace.Site, p *millrace.Page, want string) ([]byte, error) {
	is, err := tag(site, p)
	if err != nil {
		return nil, err
	}
	if is != want {
		return nil, fmt.Errorf("%s: Markdown of %s: the tag is %s, but %s was published", Name, p.URL, is, want)
	}
	_, body := stablePage(reduce(site, p))
	// An agent that starts at this page finds the other pages through index. Readers ignore this
	// member.
	index := "---\nindex: " + strings.TrimSuffix(site.EndpointBase, "/") + listPath + "\n"
	return append([]byte(index), bytes.TrimPrefix(body, []byte("---\n"))...), nil
}
