package tct

import (
	"strings"

	"github.com/millrace/millrace"
)

// carry00 returns what a reader makes of the page's document, nil for a page that has
// no document.
func carry00(site millrace.Site, p *millrace.Page) *millrace.Page { return draft00.Carry(site, p) }

// headed returns the content of a document: its text, with the title as the first
// paragraph, since the fingerprint is of the content alone.
func headed(title, text string) string {
	line := strings.Join(strings.Fields(title), " ")
	if text == "" {
		return line
	}
	return line + "\n\n" + text
}

// unheaded is the inverse of headed. It returns content that does not start with
// the title as it is.
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
