package arch

import (
	"fmt"
	"regexp"
	"strings"
)

// maxWords is the maximum number of words in a sentence of the documentation.
const maxWords = 35

var (
	// blockStart matches lines that begin a paragraph, in addition to those after an empty
	// line.
	blockStart  = regexp.MustCompile(`^\s*(?:[-*] |\d+\. |> )`)
	sentenceEnd = regexp.MustCompile(`[.!?:]["')*_]*\s`)
)

// checkSentences finds long sentences in README and docs/, and cells of tables with more than one
// sentence.
func checkSentences(t *tree) []string {
	var problems []string
	for name, text := range t.texts() {
		if name != "README.md" && !(strings.HasPrefix(name, "docs/") && strings.HasSuffix(name, ".md")) {
			continue
		}
		for _, block := range blocks(text) {
			for _, s := range sentenceEnd.Split(block, -1) {
				if n := len(strings.Fields(s)); n > maxWords {
					problems = append(problems, fmt.Sprintf("%s: a sentence has %d words, want at most %d: %.60s", name, n, maxWords, strings.Join(strings.Fields(s), " ")))
				}
			}
		}
		if !strings.HasPrefix(name, guides) {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if m := twoSentences.FindString(line); m != "" && strings.HasPrefix(line, "|") {
				problems = append(problems, fmt.Sprintf("%s:%d: a cell has more than one sentence: %q", name, i+1, m))
			}
		}
	}
	return problems
}

// twoSentences matches the place in a line where a sentence begins after another.
var twoSentences = regexp.MustCompile(`[a-z]{2}[.!?] [A-Z]\w*`)

// blocks returns the paragraphs and items of a page, without code, headings and tables.
func blocks(md string) []string {
	var out []string
	open, fenced := false, false
	for line := range strings.Lines(md) {
		if strings.HasPrefix(line, "```") {
			open, fenced = false, !fenced
			continue
		}
		switch {
		case fenced, strings.TrimSpace(line) == "", strings.HasPrefix(line, "#"), strings.HasPrefix(line, "|"), strings.HasPrefix(line, "<!--"):
			open = false
		case !open && strings.HasPrefix(line, "    "):
		case !open || blockStart.MatchString(line):
			out, open = append(out, line), true
		default:
			out[len(out)-1] += line
		}
	}
	return out
}
