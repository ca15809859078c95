package web

import (
	"regexp"
	"strings"

	"github.com/millrace/millrace/internal/kit"
)

// maxLLMs is the maximum number of characters that an llms.txt should have, so that a model can
// read it at once.
const maxLLMs = 50_000

// llmsDoc is a parsed llms.txt (llmstxt.org, Format).
type llmsDoc struct {
	Title    string
	Summary  string // block quote below the title
	Links    []llmsLink
	Problems []llmsProblem // lines that violate the format
}

// llmsLink is one entry in a list of files.
type llmsLink struct {
	Name, URL, Notes string
	Line             int
}

// llmsProblem is a line that violates the format.
type llmsProblem struct {
	Line int
	Rule string // last segment of the checker's rule ID
	Text string
}

// llmsEntry matches an entry in a list of files: a link, with optional notes after a colon. The URL
// may be in angle brackets, and may contain brackets.
var llmsEntry = regexp.MustCompile(`^[-*+] +\[((?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]\((<[^<>]*>|(?:[^\s()]|\([^\s()]*\))*)\)(?:\s*:\s*(.*))?$`)

// decodeLLMs parses an llms.txt. If the document has no title, which is required, it returns nil.
func decodeLLMs(body []byte) *llmsDoc {
	doc := &llmsDoc{}
	fence, section, quoted := "", false, false
	problem := func(line int, rule, text string) {
		doc.Problems = append(doc.Problems, llmsProblem{line, rule, kit.Short(strings.TrimSpace(text))})
	}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(body), "\uFEFF")) {
		n++
		line = strings.TrimRight(line, " \t\r\n")
		trimmed := strings.TrimLeft(line, " ")
		if mark := fenceOf(trimmed); fence != "" || mark != "" {
			if doc.Title == "" {
				return nil
			}
			quoted = quoted || doc.Summary != ""
			switch {
			case fence == "":
				fence = mark
			case mark != "" && strings.HasPrefix(mark, fence) && strings.Trim(trimmed, mark[:1]) == "":
				fence = ""
			}
			continue
		}
		level, text := headingOf(trimmed)
		switch {
		case trimmed == "":
		case doc.Title == "":
			if level != 1 || text == "" {
				return nil
			}
			doc.Title = text
		case level == 1:
			problem(n, "one-title", line)
		case level == 2:
			section = true
		case level > 2 && !section:
			problem(n, "no-other-headings", line)
		case level > 2: // a list may contain subsections
		case strings.HasPrefix(trimmed, ">") && !section && !quoted:
			if text := strings.TrimSpace(trimmed[1:]); text != "" {
				doc.Summary = strings.TrimSpace(doc.Summary + " " + text)
			}
			continue
		case section && isItem(line):
			m := llmsEntry.FindStringSubmatch(line)
			if m == nil {
				problem(n, "file-list", line)
				continue
			}
			doc.Links = append(doc.Links, llmsLink{m[1], strings.Trim(m[2], "<>"), m[3], n})
		}
		quoted = quoted || doc.Summary != "" && trimmed != ""
	}
	if doc.Title == "" {
		return nil
	}
	return doc
}

// headingOf returns the level and the text of an ATX heading, or level 0 if the line is not a
// heading.
func headingOf(line string) (level int, text string) {
	rest := strings.TrimLeft(line, "#")
	if level = len(line) - len(rest); level == 0 || level > 6 || rest != "" && !strings.HasPrefix(rest, " ") {
		return 0, ""
	}
	return level, strings.TrimSpace(strings.TrimRight(rest, "#"))
}

// fenceOf returns the marks that open a code block, or "" if the line does not open one.
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, c)
		if n := len(line) - len(rest); n >= 3 && (c == "~" || !strings.Contains(rest, "`")) {
			return line[:n]
		}
	}
	return ""
}

// isItem reports whether a line starts a list item.
func isItem(line string) bool {
	return len(line) > 1 && strings.ContainsRune("-*+", rune(line[0])) && line[1] == ' '
}
