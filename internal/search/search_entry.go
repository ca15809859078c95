package search

import (
	"iter"
	"maps"
	"strings"
)

// Format is the version of the content of an [Entry]: analysis, weights, profiles. An index with
// another version must be rebuilt.
const Format = 5

// Text is the searchable text of a passage.
type Text struct {
	Title    string // title of the page
	Language string // language of the page, BCP 47, or "" if unknown
	Headings []string
	Text     string
}

// Joined returns all fields of t as one text, for an embedder.
func (t Text) Joined() string {
	return strings.TrimSpace(strings.Join(append([]string{t.Title}, t.Headings...), "\n") + "\n\n" + t.Text)
}

// Entry is a passage as an index stores it.
type Entry struct {
	// Terms of each field, separated by single spaces.
	Title, Headings, Text string
	Profile               Profile
	// Length is the number of words without stop words. A word in the title counts three times, and
	// one in a heading twice.
	Length int
}

// Indexer creates the entries of passages. It is fastest if it gets the passages of a page one
// after the other. It is not safe for concurrent use.
type Indexer struct {
	analyzer *Analyzer
	profiler profiler
	title    field // title of the last passage, which the next passage usually also has
	headings field
	text     field
	seen     map[string]bool
	content  []string // result of the last call of Content
	extra    []string // extra forms found by the last call of analyze
}

// field is an analyzed part of a passage.
type field struct {
	raw, language string
	joined        string
	terms         []string
	length        int // number of terms without stop words and extra forms
}

// NewIndexer returns an Indexer.
func NewIndexer() *Indexer { return &Indexer{analyzer: NewAnalyzer(), seen: make(map[string]bool)} }

// Entry returns the entry of a passage.
func (x *Indexer) Entry(t Text) Entry {
	x.analyze(&x.title, t.Title, t.Language)
	x.analyze(&x.headings, strings.Join(t.Headings, "\n"), t.Language)
	x.analyze(&x.text, t.Text, t.Language)
	x.profiler.reset()
	for _, f := range []struct {
		*field
		weight uint32
	}{{&x.title, titleWeight}, {&x.headings, headingWeight}, {&x.text, textWeight}} {
		for _, term := range f.terms {
			x.profiler.add(term, f.weight)
		}
	}
	return Entry{
		Title: x.title.joined, Headings: x.headings.joined, Text: x.text.joined,
		Profile: x.profiler.profile(), Length: titleWeight*x.title.length + headingWeight*x.headings.length + textWeight*x.text.length,
	}
}

// Terms yields each distinct term of the entry that Entry last returned, in any order.
func (x *Indexer) Terms() iter.Seq[string] {
	clear(x.seen)
	for _, f := range []*field{&x.title, &x.headings, &x.text} {
		for _, term := range f.terms {
			x.seen[term] = true
		}
	}
	return maps.Keys(x.seen)
}

func (x *Indexer) analyze(f *field, raw, language string) {
	if f.raw == raw && f.language == language {
		return
	}
	f.raw, f.language, f.length = raw, language, 0
	f.terms, x.extra = f.terms[:0], x.extra[:0]
	for t := range x.analyzer.Tokens(raw, language) {
		if t.Extra {
			x.extra = append(x.extra, t.Term)
			continue
		}
		f.terms = append(f.terms, t.Term)
		if !t.Stop {
			f.length++
		}
	}
	// Put extra forms after all words, so that they do not interrupt phrases.
	f.terms = append(f.terms, x.extra...)
	f.joined = strings.Join(f.terms, " ")
}

// Content returns the terms of a passage without stop words, for [Model.Vector] and [Fit].
// The slice is valid until the next call.
func (x *Indexer) Content(t Text) []string {
	terms := x.content[:0]
	for _, part := range []string{t.Title, strings.Join(t.Headings, "\n"), t.Text} {
		for tok := range x.analyzer.Tokens(part, t.Language) {
			if !tok.Stop && !tok.Extra {
				terms = append(terms, tok.Term)
			}
		}
	}
	x.content = terms
	return terms
}
