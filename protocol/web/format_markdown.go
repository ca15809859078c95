package web

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/commonmark"
)

// carried is the set of fields that are known if the front matter contains the page's URL.
const carried = millrace.FieldTitle | millrace.FieldDescription | millrace.FieldAuthor | millrace.FieldPublished |
	millrace.FieldModified | millrace.FieldLanguage | millrace.FieldSection | millrace.FieldTags | millrace.FieldKind |
	millrace.FieldContent

// encodeMarkdown returns a page as Markdown: front matter, the title as a heading unless the
// content starts with it, and the content. Values in the front matter are JSON, which is also valid
// YAML.
func encodeMarkdown(p *millrace.Page) []byte {
	var b bytes.Buffer
	b.WriteString("---\n")
	text := func(name, value string) {
		if value != "" {
			b.WriteString(name + ": ")
			b.Write(canon.AppendString(nil, value))
			b.WriteByte('\n')
		}
	}
	when := func(name string, t time.Time) {
		if !t.IsZero() {
			b.WriteString(name + ": " + t.UTC().Format(time.RFC3339) + "\n")
		}
	}
	text("title", p.Title)
	text("description", p.Description)
	text("url", p.URL)
	text("author", p.Author)
	when("published", p.Published)
	when("modified", p.Modified)
	text("language", p.Language)
	text("section", p.Section)
	text("kind", string(p.Kind))
	for i, tag := range p.Tags {
		b.WriteString([]string{"tags: [", ", "}[min(i, 1)])
		b.Write(canon.AppendString(nil, tag))
	}
	if len(p.Tags) > 0 {
		b.WriteString("]\n")
	}
	b.WriteString("---\n")
	blocks := p.Blocks
	if p.Title != "" && !titled(blocks, p.Title) {
		blocks = append([]millrace.Block{{Type: millrace.HeadingBlock, Level: 1, Text: p.Title}}, blocks...)
	}
	if body := millrace.Markdown(blocks); body != "" {
		b.WriteString("\n" + body)
	}
	// Markdown is UTF-8, and parsers do not accept a NUL.
	return bytes.ReplaceAll([]byte(canon.ValidUTF8(b.String())), []byte{0}, nil)
}

// titled reports whether the first block is a heading with the title.
func titled(blocks []millrace.Block, title string) bool {
	return len(blocks) > 0 && blocks[0].Type == millrace.HeadingBlock && blocks[0].Level <= 1 &&
		commonmark.Heading(blocks[0].Text) == commonmark.Heading(title)
}

// decodeMarkdown parses the Markdown of a page that was fetched from a URL, which is the base of
// its links. Page.Known has the content and the fields in the front matter. If the front matter
// contains the member url, Page.Known has all fields that the protocol carries. A heading that
// repeats the title is not part of the content. The error is [millrace.ErrTooLarge], the error of the
// context, or a [*millrace.FormatError] without a URL.
func decodeMarkdown(ctx context.Context, body []byte, at string) (*millrace.Page, error) {
	if i := firstInvalid(body); i >= 0 {
		line := bytes.Count(body[:i], []byte("\n")) + 1
		return nil, &millrace.FormatError{Protocol: Name, Position: fmt.Sprintf("line %d", line), Reason: "the text is not UTF-8"}
	}
	body = bytes.ReplaceAll(bytes.TrimPrefix(body, []byte("\uFEFF")), []byte{0}, []byte("\uFFFD"))
	p := &millrace.Page{URL: at, Known: millrace.FieldContent, Detail: millrace.DetailBlocks}
	text := readMatter(p, body)
	base, err := url.Parse(p.URL)
	if err != nil {
		return nil, &millrace.FormatError{Protocol: Name, Reason: "the page has no URL", Err: err}
	}
	if p.Blocks, err = commonmark.Page(ctx, text, base); err != nil {
		return nil, err
	}
	switch {
	case p.Title == "" && len(p.Blocks) > 0 && p.Blocks[0].Type == millrace.HeadingBlock && p.Blocks[0].Level == 1 && !p.Known.Has(carried):
		p.Title, p.Known = cleanLine(p.Blocks[0].Text), p.Known|millrace.FieldTitle
		p.Blocks = p.Blocks[1:]
	case p.Title != "" && titled(p.Blocks, p.Title):
		p.Blocks = p.Blocks[1:]
	}
	return p, nil
}
