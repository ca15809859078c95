package scp

import (
	"strconv"
	"time"

	"github.com/millrace/millrace/internal/canon"
)

// appendPage appends the line of a page, with its line end. Members stand in
// the order of the specification's example.
func appendPage(dst []byte, p *page) []byte {
	dst = append(dst, `{"url":`...)
	dst = canon.AppendString(dst, p.URL)
	dst = member(dst, "title", p.Title)
	dst = member(dst, "description", p.Description)
	dst = optional(dst, "author", p.Author)
	if !p.Published.IsZero() {
		dst = instant(dst, "published", p.Published)
	}
	dst = instant(dst, "modified", p.Modified)
	dst = member(dst, "language", p.Language)
	if p.Canonical != p.URL {
		dst = optional(dst, "canonical", p.Canonical)
	}
	if len(p.Schema) > 0 {
		dst = append(append(dst, `,"schema":`...), p.Schema...)
	}
	dst = append(dst, `,"content":`...)
	dst = appendArray(dst, p.Content, appendBlock)
	return append(dst, '}', '\n')
}

func appendBlock(dst []byte, b *block) []byte {
	dst = append(append(append(dst, `{"type":"`...), b.Type...), '"')
	switch b.Type {
	case textBlock:
		dst = member(dst, "text", b.Text)
	case headingBlock:
		dst = member(number(dst, "level", b.Level), "text", b.Text)
	case linkBlock:
		dst = member(member(dst, "url", b.URL), "text", b.Text)
		if len(b.Rel) > 0 {
			dst = appendStrings(append(dst, `,"rel":`...), b.Rel)
		}
	case imageBlock:
		dst = member(member(dst, "url", b.URL), "alt", b.Text)
	case listBlock:
		dst = strconv.AppendBool(append(dst, `,"ordered":`...), b.Ordered)
		dst = appendStrings(append(dst, `,"items":`...), b.Items)
	case codeBlock:
		dst = member(optional(dst, "language", b.Language), "code", b.Text)
	case tableBlock:
		dst = appendArray(append(dst, `,"rows":`...), b.Rows, func(dst []byte, row *[]string) []byte {
			return appendStrings(dst, *row)
		})
	case quoteBlock:
		dst = optional(member(dst, "text", b.Text), "citation", b.Citation)
	case videoBlock, audioBlock:
		dst = appendMedia(dst, b.Media)
	}
	return append(dst, '}')
}

func appendMedia(dst []byte, m *media) []byte {
	dst = member(dst, "name", m.Name)
	if len(m.Sources) == 0 {
		dst = member(dst, "url", m.URL)
	} else {
		dst = appendArray(append(dst, `,"url":`...), m.Sources, func(dst []byte, s *source) []byte {
			dst = canon.AppendString(append(dst, `{"href":`...), s.Href)
			return append(member(dst, "mediaType", s.MediaType), '}')
		})
	}
	dst = optional(dst, "duration", m.Duration)
	if m.Width > 0 {
		dst = number(dst, "width", m.Width)
	}
	if m.Height > 0 {
		dst = number(dst, "height", m.Height)
	}
	if m.Icon != "" {
		dst = append(canon.AppendString(append(dst, `,"icon":{"type":"Image","url":`...), m.Icon), '}')
	}
	dst = optional(dst, "summary", m.Summary)
	dst = optional(dst, "attributedTo", m.AttributedTo)
	dst = optional(dst, "partOf", m.PartOf)
	if len(m.Captions) > 0 {
		dst = appendArray(append(dst, `,"captions":`...), m.Captions, func(dst []byte, c *caption) []byte {
			dst = canon.AppendString(append(dst, `{"language":`...), c.Language)
			return append(member(member(dst, "url", c.URL), "label", c.Label), '}')
		})
	}
	if len(m.Chapters) > 0 {
		dst = appendArray(append(dst, `,"chapters":`...), m.Chapters, func(dst []byte, c *chapter) []byte {
			dst = strconv.AppendInt(append(dst, `{"time":`...), int64(c.Time), 10)
			return append(member(dst, "title", c.Title), '}')
		})
	}
	return optional(dst, "transcript", m.Transcript)
}

func appendArray[T any](dst []byte, list []T, element func([]byte, *T) []byte) []byte {
	dst = append(dst, '[')
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = element(dst, &list[i])
	}
	return append(dst, ']')
}

func appendStrings(dst []byte, list []string) []byte {
	return appendArray(dst, list, func(dst []byte, s *string) []byte { return canon.AppendString(dst, *s) })
}

// member appends a member that is not the first of its object.
func member(dst []byte, name, value string) []byte {
	return canon.AppendString(named(dst, name), value)
}

// optional is member for what is left out when it is empty.
func optional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return member(dst, name, value)
}

func number(dst []byte, name string, value int) []byte {
	return strconv.AppendInt(named(dst, name), int64(value), 10)
}

// instant writes a time in UTC, with as much of a second as it has.
func instant(dst []byte, name string, t time.Time) []byte {
	dst = append(named(dst, name), '"')
	return append(t.UTC().AppendFormat(dst, time.RFC3339Nano), '"')
}

func named(dst []byte, name string) []byte {
	return append(append(append(dst, ',', '"'), name...), '"', ':')
}
