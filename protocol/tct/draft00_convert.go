package tct

import (
	"strings"

	"github.com/millrace/millrace"
)

// headed returns the content of a document: the title as the first paragraph, then the text. The
// title is included because the fingerprint covers only the content.
func headed(doc *document, blocks []millrace.Block) string {
	line, text := strings.Join(strings.Fields(doc.Title), " "), textOf(blocks)
	if text == "" {
		return line
	}
	return line + "\n\n" + text
}

// unheaded is the inverse of headed. Content that does not start with the title is returned
// unchanged.
func unheaded(doc *document) ([]millrace.Block, millrace.Detail) {
	line, content := strings.Join(strings.Fields(doc.Title), " "), doc.Content
	rest, ok := strings.CutPrefix(content, line)
	if line != "" && ok && (rest == "" || strings.HasPrefix(rest, "\n\n")) {
		content = strings.TrimPrefix(rest, "\n\n")
	}
	return millrace.TextBlocks(content), millrace.DetailText
}
