package tct

import (
	"strings"
)

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
