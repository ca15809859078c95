package search

import (
	"iter"
	"strings"
)

// Token is one term at one place of a text.
type Token struct {
	// Term is the form that is compared: letters, digits and marks only, at most
	// MaxTerm bytes.
	Term string
	// Stop: the word is so common in its language that it says nothing alone.
	Stop bool
	// Extra: the term is another form of what the tokens before it stand for, so
	// that it can be found in that form too: the whole of a compound such as
	// max_connections, or the last character of a run of Chinese. An index keeps
	// it; a question does not need it to be there.
	Extra      bool
	Start, End int // byte offsets in the text
}

// MaxTerm is the length of the longest term, in bytes. A longer word is cut and
// ends in a hash of the whole.
const MaxTerm = 64

// Analyzer makes terms of texts. It is cheap to make, and remembers the words
// that it has seen, up to a bound; one Analyzer is for one goroutine at a time.
type Analyzer struct {
	lexicons map[string]*lexicon
}

// NewAnalyzer returns an Analyzer that has seen nothing.
func NewAnalyzer() *Analyzer { return &Analyzer{lexicons: map[string]*lexicon{}} }

// Tokens yields the terms of a text in a language, a BCP 47 tag of which the
// first subtag counts, in the order of the text. "" is read as English.
func (a *Analyzer) Tokens(text, lang string) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		s := segmenter{text: text, lex: a.lexicon(lang), yield: yield}
		s.run()
	}
}

// lexicon returns what is known of a language; those without a stemmer of their
// own share one.
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

// distinct leaves out the languages whose words are read as those of another
// one before are.
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
