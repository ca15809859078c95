package web

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

const fullPath = "/llms-full.txt"

// fullDocument gives the Markdown of all pages, one after the other, in the order
// of their URLs. It is as large as the site.
func (p *publisher) fullDocument(v millrace.View) *millrace.Document {
	return &millrace.Document{
		Path: fullPath, Header: listHeader(), Large: true, Names: int64(v.Site().Pages),
		Write: func(ctx context.Context, w io.Writer) error {
			out := bufio.NewWriterSize(w, 64<<10)
			site := v.Site()
			first := true
			for page, err := range v.Scan(ctx, millrace.Scan{Bodies: true}) {
				if err != nil {
					return fmt.Errorf("%s: %s: %w", Name, fullPath, err)
				}
				if missing(site, page) != "" {
					continue
				}
				if !first {
					_, _ = out.WriteString("\n---\n\n") // an error stays until Flush
				}
				first = false
				_, _ = out.WriteString(canon.ValidUTF8(whole(reduce(site, page))))
			}
			return out.Flush()
		},
	}
}

// whole gives a page as a part of a file: its title, where it is, and what it
// says.
func whole(p *millrace.Page) string {
	blocks := p.Blocks
	title := millrace.Block{Type: millrace.HeadingBlock, Level: 1, Text: p.Title}
	switch {
	case titled(blocks, p.Title):
		title, blocks = blocks[0], blocks[1:]
	case p.Title == "":
		title.Text = p.URL
	}
	source := millrace.Block{Type: millrace.TextBlock, Text: "Source: " + p.URL}
	return millrace.Markdown(append([]millrace.Block{title, source}, blocks...))
}
