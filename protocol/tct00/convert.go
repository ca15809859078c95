package tct00

import (
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/tct"
)

// carry gives what a reader makes of the page's document, nil for a page that
// has none.
func carry(site millrace.Site, p *millrace.Page) *millrace.Page {
	d := documentOf(site, p)
	if d == nil {
		return nil
	}
	return d.page()
}

// tag gives the ETag of the page's document, "" for a page that has none.
func tag(site millrace.Site, p *millrace.Page) (string, error) {
	d := documentOf(site, p)
	if d == nil {
		return "", nil
	}
	return hashPrefix + tct.Fingerprint(d.Content), nil
}

// documentOf gives the document of a page of a View, nil for one that has none.
// Its content starts with the title, which the fingerprint would not know of.
func documentOf(site millrace.Site, p *millrace.Page) *document {
	d := (*document)(tct.Of(site, p))
	if d != nil {
		d.Content = headed(d.Title, d.Content)
	}
	return d
}

// page gives what the document says.
func (d *document) page() *millrace.Page {
	m := tct.Document(*d)
	m.Content = unheaded(d.Title, d.Content)
	return m.Page()
}

// headed gives a text with the title as its first paragraph.
func headed(title, text string) string {
	line := strings.Join(strings.Fields(title), " ")
	if text == "" {
		return line
	}
	return line + "\n\n" + text
}

// unheaded is the inverse of headed. A text that does not start so is given as
// it is.
func unheaded(title, content string) string {
	line := strings.Join(strings.Fields(title), " ")
	rest, ok := strings.CutPrefix(content, line)
	switch {
	case line == "" || !ok || rest != "" && !strings.HasPrefix(rest, "\n\n"):
		return content
	case rest == "":
		return ""
	}
	return rest[2:]
}
