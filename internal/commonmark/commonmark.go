// Package commonmark reads Markdown as blocks: CommonMark, GitHub's extensions and
// those of site generators. It reads all dialects at once, because syntax of one
// dialect rarely means something else in another.
//
// The texts may be hostile: parsing time is bounded by the length of the text.
package commonmark

import (
	"context"
	"strings"

	"github.com/yuin/goldmark/text"

	"github.com/millrace/millrace"
)

// Options configure [Blocks]. Link and Resource are required.
type Options struct {
	// Link returns the absolute URL of a link with its fragment, or "" to make the link plain text.
	// Resource returns the absolute URL of an image or other media, or "" to omit the media.
	Link, Resource func(target string) string
	// HTML returns the blocks of raw HTML that is more than inline markup. If nil, raw HTML is
	// omitted.
	HTML func(ctx context.Context, source []byte) []millrace.Block
	// Anchor returns the anchor of a heading, from its text and its explicit anchor, which may be
	// "". If Anchor is nil, the explicit anchor is used.
	Anchor func(text, own string) string
	// Attributes drops {: .class} after a link, an image, code or emphasis.
	Attributes bool
	// Components reports whether the text may contain components, such as those of MDX. If so,
	// indented lines are not code.
	Components bool
}

// Blocks returns the blocks of a UTF-8 text whose lines end in line feeds; [Bounded]
// prepares any text. The only errors are those of the context.
func Blocks(ctx context.Context, src []byte, o *Options) ([]millrace.Block, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	src = escapeMarks(src)
	w := &writer{ctx: ctx, o: o, src: src}
	w.children(newParser(o.Components).Parse(text.NewReader(src)))
	w.flush()
	if w.err != nil || len(w.out) == 0 {
		return nil, w.err
	}
	return w.out, nil
}

// Heading returns the text that a heading without markup has after parsing: without its
// anchor and without invisible characters at its ends.
func Heading(text string) string {
	text = strings.TrimFunc(strings.ReplaceAll(text, "\n", " "), isBlank)
	if m := headingID.FindStringIndex(text); m != nil {
		text = text[:m[0]]
	}
	return text
}
