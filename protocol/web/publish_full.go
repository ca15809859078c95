package web

import (
	"context"
	"fmt"
	"iter"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

const fullPath = "/llms-full.txt"

// fullDocument returns the Markdown of all pages, one after the other, ordered by URL.
func (p *publisher) fullDocument(v millrace.View) *millrace.Document {
	site := v.Site()
	parts := &millrace.Parts{
		Version: site.Base + " " + site.EndpointBase, Separator: []byte("\n---\n\n"),
		After: func(ctx context.Context, key string) iter.Seq2[millrace.Part, error] {
			return func(yield func(millrace.Part, error) bool) {
				for page, err := range v.Scan(ctx, millrace.Scan{After: key, WithBlocks: true}) {
					if err != nil {
						yield(millrace.Part{}, fmt.Errorf("%s: %s: %w", Name, fullPath, err))
						return
					}
					if missing(site, page) != "" {
						continue
					}
					body := canon.ValidUTF8(pageText(reduce(site, page)))
					if !yield(millrace.Part{Key: canon.Relative(site.Base, page.URL), Body: []byte(body)}, nil) {
						return
					}
				}
			}
		},
		Changed: func(u string) []string { return []string{canon.Relative(site.Base, u)} },
	}
	return &millrace.Document{Path: fullPath, Header: listHeader(), Large: true, Subject: millrace.Subject{PageCount: int64(site.Pages)}, Parts: parts, Write: parts.Write}
}

// pageText returns a page as a part of a file: its title, URL and content.
func pageText(p *millrace.Page) string {
	blocks := p.Blocks
	title := millrace.Block{Type: millrace.HeadingBlock, Level: 1, Text: p.Title}
	switch {
	case titled(blocks, p.Title):
		title, blocks = blocks[0], blocks[1:]
	case p.Title == "":
		title.Text = p.URL
	}
	source := millrace.Block{Type: millrace.TextBlock, Text: "Source: " + p.URL}
	return canon.Visible(millrace.Markdown(append([]millrace.Block{title, source}, blocks...)))
}
