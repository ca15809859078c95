package openfeeder

import (
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/chunk"
)

// Limits of a summary, in sentences (3.2) and in characters.
const (
	maxSentences = 3
	maxSummary   = 400
)

// summaryOf returns the first of these that is not empty: the page's summary, its description, the
// beginning of its paragraphs, and the beginning of its lists. Otherwise it returns "". The result
// contains no e-mail addresses.
func summaryOf(p *millrace.Page) string {
	for _, s := range []string{p.Summary, p.Description} {
		if s = summarize(s); s != "" && !canon.HasEmail(s) {
			return s
		}
	}
	var texts, lists []string
	for _, c := range chunk.Parts(p) {
		switch c.Type {
		case chunk.Paragraph, chunk.Quote:
			texts = append(texts, canon.ValidUTF8(c.Text))
		case chunk.List:
			lists = append(lists, canon.ValidUTF8(c.Text))
		}
	}
	if s := canon.Summary(slices.Values(texts), maxSentences, maxSummary); s != "" {
		return s
	}
	return canon.Summary(slices.Values(lists), maxSentences, maxSummary)
}

func summarize(text string) string {
	return canon.Sentences(canon.ValidUTF8(text), maxSentences, maxSummary)
}
