package markdown

import (
	"bytes"
	"context"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/commonmark"
)

// blocks returns the blocks of a text, without sentences that contain unknown values. lost is the
// number of these values. The error is [millrace.ErrTooLarge] or the context's error.
func (s *snapshot) blocks(ctx context.Context, src []byte, l *linker, m matter) (list []millrace.Block, lost int, err error) {
	c := s.cleaner(l, m)
	if src, err = c.clean(src); err != nil {
		return nil, 0, err
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	slugs := slugger{kind: s.kind}
	blocks, err := commonmark.Blocks(ctx, src, &commonmark.Options{
		Link: l.link, Resource: l.resource, HTML: l.fragment,
		Anchor: func(text, own string) string {
			if own == "" {
				return slugs.of(text)
			}
			slugs.taken(own)
			return own
		},
		Attributes: s.kind != Hugo, Components: c.script,
	})
	if bytes.ContainsRune(src, placeholder) {
		blocks = c.lost.blocks(blocks)
	}
	return blocks, int(c.lost), err
}

// fragment converts HTML to blocks.
func (l *linker) fragment(ctx context.Context, source []byte) []millrace.Block {
	base := l.base
	if l.s.kind == Plain {
		base = l.own
	}
	blocks, err := extract.Fragment(ctx, source, base.String(), &extract.Options{Rules: l.s.rules})
	if err != nil {
		return nil
	}
	if l.s.kind == Plain {
		l.relink(blocks)
	}
	return blocks
}

// relink replaces links to files in the folder with links to the pages of these files.
func (l *linker) relink(blocks []millrace.Block) {
	spans := func(list []millrace.Span) {
		for i := range list {
			list[i].URL = l.pageOf(list[i].URL)
		}
	}
	for i := range blocks {
		b := &blocks[i]
		b.URL = l.pageOf(b.URL)
		spans(b.Spans)
		l.relink(b.Blocks)
		for i := range b.Items {
			spans(b.Items[i].Spans)
			l.relink(b.Items[i].Blocks)
		}
		for _, row := range b.Rows {
			for i := range row {
				spans(row[i].Spans)
			}
		}
	}
}

// pageOf returns the URL of a page, given the URL of its file. It returns other URLs unchanged.
func (l *linker) pageOf(u string) string {
	target, fragment, ok := strings.Cut(u, "#")
	id := canon.Relative(l.s.base, target)
	if !isMarkdown(target) || !strings.HasPrefix(id, "/") {
		return u
	}
	name, err := url.PathUnescape(id)
	if err != nil {
		return u
	}
	page := l.document(name)
	if page == "" {
		return u
	}
	if ok {
		page += "#" + fragment
	}
	return page
}
