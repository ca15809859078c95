package scp

import (
	"github.com/millrace/millrace"
)

// blocksOf converts content blocks to blocks.
func blocksOf(content []block) []millrace.Block {
	if len(content) == 0 {
		return nil
	}
	out := make([]millrace.Block, len(content))
	for i := range content {
		content[i].block(&out[i])
	}
	return out
}

func (b *block) block(out *millrace.Block) {
	out.Text = b.Text
	switch b.Type {
	case textBlock:
		out.Type = millrace.TextBlock
	case headingBlock:
		out.Type, out.Level = millrace.HeadingBlock, b.Level
	case linkBlock:
		out.Type, out.URL, out.Rel = millrace.LinkBlock, b.URL, b.Rel
	case imageBlock:
		out.Type, out.URL, out.Alt, out.Text = millrace.ImageBlock, b.URL, b.Text, ""
	case listBlock:
		out.Type, out.Ordered = millrace.ListBlock, b.Ordered
		out.Items = make([]millrace.Item, len(b.Items))
		for i, t := range b.Items {
			out.Items[i].Text = t
		}
	case codeBlock:
		out.Type, out.Language = millrace.CodeBlock, b.Language
	case tableBlock:
		out.Type = millrace.TableBlock
		out.Rows = tableOf(b.Rows)
	case quoteBlock:
		out.Type, out.Cite, out.Text = millrace.QuoteBlock, b.Citation, ""
		out.Blocks = millrace.TextBlocks(b.Text)
	case videoBlock:
		out.Type = millrace.VideoBlock
		b.Media.block(out)
	case audioBlock:
		out.Type = millrace.AudioBlock
		b.Media.block(out)
	}
}

// tableOf converts rows to cells, with a single allocation.
func tableOf(rows [][]string) [][]millrace.Cell {
	n := 0
	for _, row := range rows {
		n += len(row)
	}
	cells, out := make([]millrace.Cell, n), make([][]millrace.Cell, len(rows))
	for i, row := range rows {
		out[i] = cells[:len(row):len(row)]
		cells = cells[len(row):]
		for j, t := range row {
			out[i][j].Text = t
		}
	}
	return out
}

func (m *media) block(out *millrace.Block) {
	out.Title, out.Caption, out.URL, out.Poster = m.Name, m.Summary, m.URL, m.Icon
	for _, s := range m.Sources {
		if out.URL == "" {
			out.URL = s.Href
		}
		out.Sources = append(out.Sources, millrace.MediaSource{URL: s.Href, Type: s.MediaType})
	}
	for _, c := range m.Captions {
		out.Tracks = append(out.Tracks, millrace.Track{URL: c.URL, Kind: "captions", Language: c.Language, Label: c.Label})
	}
	if m.Duration == "" && m.Width == 0 && m.Height == 0 && m.AttributedTo == "" && m.PartOf == "" &&
		len(m.Chapters) == 0 && m.Transcript == "" {
		return
	}
	out.Media = &millrace.Media{
		Duration: m.Duration, Width: m.Width, Height: m.Height, Creator: m.AttributedTo, Series: m.PartOf, Transcript: m.Transcript,
	}
	for _, c := range m.Chapters {
		out.Media.Chapters = append(out.Media.Chapters, millrace.Chapter(c))
	}
}
