package search

import (
	"iter"
	"strings"
)

// Token is a term at a position of a text.
type Token struct {
	// Term is the normalized form: letters, digits and marks only, at most MaxTerm bytes.
	Term string
	// Stop reports whether the word is a stop word of its language.
	Stop bool
	// Extra reports whether the term is another form of the preceding tokens: the whole of a
	// compound such as max_connections, or the last character of a run of Chinese. An index
	// contains such a term, but a question does not require it.
	Extra      bool
	Start, End int // byte offsets in the text
}

// MaxTerm is the maximum length of a term in bytes. A longer word is truncated and ends in a
// hash of the whole word.
const MaxTerm = 64

// Analyzer extracts terms from texts. It caches a limited number of words. It is not safe
// for concurrent use.
type Analyzer struct {
	lexicons map[string]*lexicon
}

// NewAnalyzer returns an Analyzer with an empty cache.
func NewAnalyzer() *Analyzer { return &Analyzer{lexicons: map[string]*lexicon{}} }

// Tokens yields the terms of a text in order. lang is a BCP 47 tag; Tokens uses only its first
// subtag. If lang is empty, the language is English.
func (a *Analyzer) Tokens(text, lang string) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		s := segmenter{text: text, lex: a.lexicon(lang), yield: yield}
		s.run()
	}
}

// lexicon returns the lexicon of a language. Languages with neither a stemmer nor a stop list share
// one of two lexicons; see otherLatin.
func (a *Analyzer) lexicon(lang string) *lexicon {
	lang, _, _ = strings.Cut(lang, "-")
	lang, _, _ = strings.Cut(lang, "_")
	lang = canonicalLanguage(strings.ToLower(lang))
	l := a.lexicons[lang]
	if l == nil {
		l = newLexicon(lang)
		a.lexicons[lang] = l
	}
	return l
}

// distinct drops languages that share their lexicon with an earlier language.
func (a *Analyzer) distinct(languages []string) []string {
	var out []string
	seen := make(map[*lexicon]bool)
	for _, lang := range languages {
		if l := a.lexicon(lang); !seen[l] {
			seen[l] = true
			out = append(out, lang)
		}
	}
	return out
}
