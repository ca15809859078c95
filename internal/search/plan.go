package search

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/millrace/millrace"
)

// Phrase is a sequence of consecutive terms.
type Phrase struct {
	Field Field // AnyField or TitleField
	Terms []string
}

// Match is a condition on passages.
type Match struct {
	All    [][]Phrase // the passage contains at least one phrase of each list
	Head   bool       // phrases of All with AnyField must be in the title or a heading
	Not    []Phrase   // the passage contains none of these phrases
	URL    []string   // texts in lower case, each of which is part of the page's absolute URL
	NotURL []string   // texts in lower case, none of which is part of the page's absolute URL
}

// and returns the condition that both m and o hold.
func (m Match) and(o Match) Match {
	m.All = append(slices.Clip(m.All), o.All...)
	m.Not = append(slices.Clip(m.Not), o.Not...)
	m.URL = append(slices.Clip(m.URL), o.URL...)
	m.NotURL = append(slices.Clip(m.NotURL), o.NotURL...)
	return m
}

// none reports whether m has no condition that an index can look up.
func (m Match) none() bool { return len(m.All) == 0 && len(m.URL) == 0 }

// wanted is a word of a question.
type wanted struct {
	text     string   // as typed
	terms    []string // forms in the languages of the site
	hashes   []uint32
	times    int     // number of occurrences in the question
	n        int     // number of passages with the word; a passage with several forms may count several times
	weight   float64 // computed from rarity and times
	filter   bool    // another condition already requires the word, so it counts in the ranking but is not looked up
	quoted   bool    // the word is part of a phrase
	compound bool    // the word is a whole compound; its parts are looked up
	letter   string  // term of a single letter, whose pairs are also looked up; "" for other words
}

// count adds the number of passages with each form of the word to w.n, up to passages. It drops
// forms that no passage has, but keeps at least one form.
func (w *wanted) count(ix Index, passages int) error {
	terms, hashes := w.terms[:0:0], w.hashes[:0:0]
	for i, t := range w.terms {
		n, err := ix.Frequency(t)
		if err != nil {
			return err
		}
		if n > 0 {
			terms, hashes = append(terms, t), append(hashes, w.hashes[i])
			w.n = min(w.n+n, passages)
		}
	}
	if len(terms) == 0 {
		terms, hashes = w.terms[:1], w.hashes[:1]
	}
	w.terms, w.hashes = terms, hashes
	return nil
}

func (w *wanted) phrases() []Phrase {
	p := make([]Phrase, len(w.terms))
	for i, t := range w.terms {
		p[i] = Phrase{Terms: []string{t}}
	}
	return p
}

// phrase is a preferred phrase of a question: passages with it rank higher, but it is not required.
type phrase struct {
	passages []int64 // passages that contain the phrase, sorted
	weight   float64 // computed from rarity
}

// plan describes how to answer a question.
type plan struct {
	words    []*wanted // words without repeats; stop words only if there are no other words
	filter   Match     // condition on every passage
	optional Match     // phrases and exclusions: a condition only if some passage contains the whole question
	phrases  []phrase  // preferred phrases
	excluded []int64   // passages with an excluded word or phrase, if exclusions are not a condition; sorted
	terms    []string
	total    float64 // sum of the weights of words and phrases
	trial    Trial
	note     error // reports that some words are ignored, or nil
}

// maxAsked is the maximum number of words of a question. If there are more, the plan keeps the
// rarest words that the site contains, and prefers repeated ones.
const maxAsked = 64

// common is a share of passages. A stop word of a language other than the site's main language
// counts as a stop word only if more than this share of the passages contain it. For example,
// "die" is a stop word in German, but not in English.
const common = 0.02

// newPlan returns the plan of a question for a site.
func newPlan(q Query, a *Analyzer, st Statistics, ix Index, trial Trial) (*plan, error) {
	p := &plan{trial: trial}
	b := planner{plan: p, analyzer: a, index: ix, languages: a.distinct(languagesOf(st)), seen: make(map[string]*wanted), stops: make(map[*wanted]stopping), asking: make(map[*wanted]bool)}
	for _, part := range q.Parts {
		if err := b.part(part); err != nil {
			return nil, err
		}
	}
	for _, w := range p.words {
		if err := w.count(ix, st.Passages); err != nil {
			return nil, err
		}
	}
	if !trial.StopWords {
		b.dropStops(st)
	}
	for _, w := range b.compounds {
		if err := w.count(ix, st.Passages); err != nil {
			return nil, err
		}
		if w.n > 0 { // otherwise the site does not contain the compound
			p.words = append(p.words, w)
		}
	}
	slices.SortStableFunc(p.words, func(x, y *wanted) int { return cmp.Compare(x.n, y.n) })
	if n := len(p.words); n > maxAsked {
		p.note = millrace.Coded("query-words", fmt.Errorf("the question has %d words; only the %d rarest are used", n, maxAsked))
		weight := func(w *wanted) float64 {
			if w.n == 0 {
				return 0
			}
			return float64(w.times) * rarity(w.n, st.Passages)
		}
		slices.SortStableFunc(p.words, func(x, y *wanted) int { return cmp.Compare(weight(y), weight(x)) })
		p.words = p.words[:maxAsked]
		slices.SortStableFunc(p.words, func(x, y *wanted) int { return cmp.Compare(x.n, y.n) })
	}
	for _, w := range p.words {
		w.weight = float64(w.times) * rarity(w.n, st.Passages)
		p.total += w.weight
		if !w.compound { // the model has no vectors of whole compounds
			p.terms = append(p.terms, w.terms...)
		}
	}
	return p, nil
}

// languagesOf returns the languages for which Run stems the words of a question.
func languagesOf(st Statistics) []string {
	if len(st.Languages) == 0 {
		return []string{""}
	}
	return st.Languages
}

// rarity returns the weight of a word that n of all passages contain.
func rarity(n, passages int) float64 {
	return math.Log1p((float64(passages-n) + 0.5) / (float64(n) + 0.5))
}

// stopping says which stop list contains a word: that of the site's most common language, or
// only that of another language.
type stopping uint8

const (
	_ stopping = iota
	stopSomewhere
	stopHere
)

type planner struct {
	*plan
	analyzer  *Analyzer
	index     Index
	languages []string
	seen      map[string]*wanted
	compounds []*wanted // compounds, in addition to their words
	stops     map[*wanted]stopping
	asking    map[*wanted]bool // see askingWords
}

func (b *planner) part(p Part) error {
	if p.Field == URLField {
		part := strings.ToLower(p.Text)
		if p.Not {
			b.filter.NotURL = append(b.filter.NotURL, part)
		} else {
			b.filter.URL = append(b.filter.URL, part)
		}
		return nil
	}
	var forms [][]Token
	for _, l := range b.languages {
		forms = append(forms, slices.Collect(b.analyzer.Tokens(p.Text, l)))
	}
	forms, err := b.letter(forms)
	if err != nil {
		return err
	}
	condition := &b.optional
	if p.Field == TitleField {
		condition = &b.filter
	}
	if p.Not || p.Phrase || p.Field == TitleField {
		if phrases := phrasesOf(forms, p.Field); len(phrases) > 0 && p.Not {
			condition.Not = append(condition.Not, phrases...)
			return nil
		} else if len(phrases) > 0 {
			condition.All = append(condition.All, phrases)
		}
		if p.Not {
			return nil
		}
	}
	b.take(p, forms)
	return nil
}

// maxPairs is the maximum number of pairs for a single letter. The plan uses the most common
// pairs.
const maxPairs = 64

// letter adds the pairs that start with a single letter of a script without spaces, because a text
// has a single letter as a term only at the end of a run.
func (b *planner) letter(forms [][]Token) ([][]Token, error) {
	if len(forms[0]) != 1 || !isLetter(forms[0][0].Term) {
		return forms, nil
	}
	type pair struct {
		term string
		n    int
	}
	one := forms[0][0]
	var pairs []pair
	err := b.index.Terms(one.Term, func(term string, n int) bool {
		if term != one.Term && n > 0 {
			pairs = append(pairs, pair{term, n})
		}
		return len(pairs) < maxLooks
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(pairs, func(x, y pair) int { return cmp.Compare(y.n, x.n) })
	forms = forms[:1]
	for _, p := range pairs[:min(len(pairs), maxPairs)] {
		t := one
		t.Term = p.term
		forms = append(forms, []Token{t})
	}
	return forms, nil
}

// phrasesOf returns the part as a phrase in each language, without duplicates.
func phrasesOf(forms [][]Token, field Field) (phrases []Phrase) {
	for _, tokens := range forms {
		ph := Phrase{Field: field}
		for _, t := range tokens {
			if !t.Extra { // extra forms follow all words of a text
				ph.Terms = append(ph.Terms, t.Term)
			}
		}
		if len(ph.Terms) == 0 && len(tokens) > 0 {
			ph.Terms = []string{tokens[0].Term} // a letter without a pair
		}
		if len(ph.Terms) > 0 && !slices.ContainsFunc(phrases, func(o Phrase) bool { return slices.Equal(o.Terms, ph.Terms) }) {
			phrases = append(phrases, ph)
		}
	}
	return phrases
}

// take adds the words of a part, each with its forms in all languages. It also adds the
// whole of a compound such as max_connections, so that passages with the name rank higher
// than those with its separate words.
func (b *planner) take(p Part, forms [][]Token) {
	filter := p.Phrase || p.Field == TitleField
	quoted := p.Phrase && p.Field == AnyField
	type place struct{ start, end int }
	at := make(map[place]*wanted)
	var order []*wanted
	for i, tokens := range forms {
		for _, t := range tokens {
			if t.Extra && isLetter(t.Term) {
				continue
			}
			pl := place{t.Start, t.End}
			w := at[pl]
			if w == nil {
				w = &wanted{text: p.Text[t.Start:t.End], times: 1, filter: filter || t.Extra, quoted: quoted && !t.Extra, compound: t.Extra}
				if isLetter(t.Term) {
					w.letter = t.Term
				}
				at[pl] = w
				order = append(order, w)
			}
			if !slices.Contains(w.terms, t.Term) {
				w.terms = append(w.terms, t.Term)
				w.hashes = append(w.hashes, profileHash(t.Term))
			}
			if i < len(b.languages) && slices.Contains(strings.Fields(askingWords(canonicalLanguage(b.languages[i]))), strings.ToLower(w.text)) {
				b.asking[w] = true
			}
			if t.Stop {
				b.stops[w] = max(b.stops[w], stopSomewhere)
				if i == 0 {
					b.stops[w] = stopHere
				}
			}
		}
	}
	for _, w := range order {
		key := strings.Join(w.terms, " ")
		if old := b.seen[key]; old != nil {
			old.times++
			old.filter, old.quoted = old.filter && filter, old.quoted && quoted
			continue
		}
		b.seen[key] = w
		if w.compound {
			b.compounds = append(b.compounds, w)
			continue
		}
		b.words = append(b.words, w)
	}
}

// dropStops removes stop words and then asking words, unless the question has no other words.
func (b *planner) dropStops(st Statistics) {
	for _, drop := range []func(w *wanted) bool{
		func(w *wanted) bool {
			s := b.stops[w]
			return s == stopHere || s == stopSomewhere && float64(w.n) > common*float64(st.Passages)
		},
		func(w *wanted) bool { return b.asking[w] && !w.filter },
	} {
		if rest := slices.DeleteFunc(slices.Clone(b.words), drop); len(rest) > 0 {
			b.words = rest
		}
	}
}

// weights returns the weight of each form of each word.
func (p *plan) weights() map[string]float64 {
	m := make(map[string]float64)
	for _, w := range p.words {
		if w.letter != "" { // the snippet marks only the letter of each pair
			m[w.letter] = max(m[w.letter], w.weight)
			continue
		}
		for _, t := range w.terms {
			m[t] = max(m[t], w.weight)
		}
	}
	return m
}
