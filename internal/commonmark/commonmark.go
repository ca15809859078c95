// Package commonmark reads Markdown: CommonMark with GitHub's extensions and
// those of the generators of sites, as blocks. What one dialect knows and another
// does not, hardly ever means something else there, so all are read at once.
//
// The texts may be hostile: the time that one takes is bounded by its length.
package commonmark

import (
	"context"
	"strings"

	"github.com/yuin/goldmark/text"

	"github.com/millrace/millrace"
)

// Options say what stands around a text. Link and Resource are required.
type Options struct {
	// Link gives the absolute URL of a link, with its fragment, and Resource that
	// of an image and the like; "" = it leads nowhere, and its text is text.
	Link, Resource func(target string) string
	// HTML gives the blocks of raw HTML that has no mark in a text of its own; nil
	// = it is left out.
	HTML func(ctx context.Context, source []byte) []millrace.Block
	// Anchor gives the anchor of a heading by its text and by its own, "" if it
	// says none; nil = the latter.
	Anchor func(text, own string) string
	// Attributes: {: .class} behind a link, an image, code or emphasis is no text.
	Attributes bool
	// Components: the text may have components in it, so indented lines are no code.
	Components bool
}

// Blocks gives the blocks of a text in UTF-8, whose lines end in line feeds;
// [Bounded] makes one of any. Errors: the context's own.
func Blocks(ctx context.Context, src []byte, o *Options) ([]millrace.Block, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	src = tame(src)
	w := &writer{ctx: ctx, o: o, src: src}
	w.children(newParser(o.Components).Parse(text.NewReader(src)))
	w.flush()
	if w.err != nil || len(w.out) == 0 {
		return nil, w.err
	}
	return w.out, nil
}

// Heading gives the text that a heading without marks has, once it is read: it
// loses what is the heading's anchor, and what nobody sees at its ends.
func Heading(text string) string {
	text = strings.TrimFunc(strings.ReplaceAll(text, "\n", " "), isBlank)
	if m := headingID.FindStringIndex(text); m != nil {
		text = text[:m[0]]
	}
	return text
}
