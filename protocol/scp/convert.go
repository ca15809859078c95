package scp

import (
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
)

// fields are the fields that the reader sets in Page.Known.
const fields = millrace.FieldTitle | millrace.FieldDescription | millrace.FieldAuthor | millrace.FieldPublished |
	millrace.FieldModified | millrace.FieldLanguage | millrace.FieldSchema | millrace.FieldContent

// carry returns the page that a reader gets from the line of p, or nil if p has no line.
func carry(site millrace.Site, p *millrace.Page) *millrace.Page {
	w := pageOf(site, p)
	if w == nil {
		return nil
	}
	return w.page()
}

// tag returns "1" for a page that has a line, so the store can list these pages.
func tag(site millrace.Site, p *millrace.Page) (string, error) {
	if pageOf(site, p) == nil {
		return "", nil
	}
	return "1", nil
}

// pageOf converts a page of a View to its line. It returns nil for archives, forum pages, pages on
// another origin, pages without a valid URL, and pages whose line would exceed the limit.
func pageOf(site millrace.Site, p *millrace.Page) *page {
	if p.Kind == millrace.Archive || p.Kind == millrace.Forum {
		return nil
	}
	u, err := canon.URL(canon.Absolute(site.Base, p.URL))
	if err != nil || !kit.SameOrigin(site.Base, u) {
		return nil
	}
	w := &page{
		URL:       u,
		Title:     kit.Title(p, u),
		Author:    canon.ValidUTF8(p.Author),
		Published: kit.Second(p.Published),
		Modified:  kit.Second(p.Modified),
		Language:  languageOf(p.Language, site.Language),
		Schema:    schemaOf(p.Schema),
		Content:   contentOf(p.Blocks),
	}
	w.Description = firstOf(canon.ValidUTF8(p.Description), canon.ValidUTF8(p.Summary), w.Title)
	if w.Modified.IsZero() {
		w.Modified = w.Published
	}
	if w.Modified.IsZero() {
		w.Modified = time.Unix(0, 0).UTC()
	}
	if len(w.Content) == 0 {
		w.Content = []block{{Type: textBlock, Text: w.Title}}
	}
	if w.size() > maxLine/6 && len(appendPage(nil, w)) > maxLine {
		return nil
	}
	return w
}

// page converts the line to a page. As in Delta Application, url identifies the page; canonical is
// ignored.
func (w *page) page() *millrace.Page {
	return &millrace.Page{
		URL:         w.URL,
		Title:       w.Title,
		Description: w.Description,
		Author:      w.Author,
		Published:   kit.Second(w.Published),
		Modified:    kit.Second(w.Modified),
		Language:    w.Language,
		Schema:      schemas(w.Schema),
		Blocks:      blocksOf(w.Content),
		Known:       fields,
		Detail:      millrace.DetailBlocks,
		Version:     w.Modified.UTC().Format(time.RFC3339Nano),
	}
}

// size returns a lower bound of the line's length. The line is at most about six times as long,
// because JSON encodes a byte in at most six bytes.
func (w *page) size() int {
	n := len(w.URL) + len(w.Title) + len(w.Description) + len(w.Author) + len(w.Schema)
	for i := range w.Content {
		b := &w.Content[i]
		n += 16 + len(b.Text) + len(b.URL) + len(b.Language) + len(b.Citation)
		for _, s := range b.Rel {
			n += 1 + len(s)
		}
		for _, s := range b.Items {
			n += 1 + len(s)
		}
		for _, row := range b.Rows {
			n++
			for _, s := range row {
				n += 1 + len(s)
			}
		}
		if m := b.Media; m != nil {
			n += len(m.Name) + len(m.URL) + len(m.Icon) + len(m.Summary) + len(m.AttributedTo) + len(m.PartOf) + len(m.Transcript)
			for _, s := range m.Sources {
				n += 8 + len(s.Href) + len(s.MediaType)
			}
			for _, c := range m.Captions {
				n += 8 + len(c.Language) + len(c.URL) + len(c.Label)
			}
			for _, c := range m.Chapters {
				n += 8 + len(c.Title)
			}
		}
	}
	return n
}

// languageOf returns the first tag that is valid, or that is valid once "_" is replaced by "-" and
// the language is in lower case. If there is no such tag, it returns "und".
func languageOf(tags ...string) string {
	for _, t := range tags {
		if isLanguage(t) {
			return t
		}
		first, rest, more := strings.Cut(strings.ReplaceAll(t, "_", "-"), "-")
		t = strings.ToLower(first)
		if more {
			t += "-" + rest
		}
		if isLanguage(t) {
			return t
		}
	}
	return "und"
}

func firstOf(values ...string) string {
	for _, v := range values {
		if !blank(v) {
			return v
		}
	}
	return ""
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
