package search

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/millrace/millrace"
)

// Phrase is terms that stand one after the other.
type Phrase struct {
	Field Field // AnyField or TitleField
	Terms []string
}

// Match is a condition on passages.
type Match struct {
	All    [][]Phrase // of each of them at least one
	Head   bool       // those of All that are in any field have to be in the title or a heading
	Not    []Phrase   // none of them
	URL    []string   // each is part of the page's identity, in lower case
	NotURL []string   // none is
}

// none reports whether nothing is asked for.
func (m Match) none() bool { return len(m.All) == 0 && len(m.URL) == 0 }

// wanted is one word of a question.
type wanted struct {
	text   string   // as it was typed
	terms  []string // its forms in the languages of the site
	hashes []uint32
	times  int     // how often the question has it
	n      int     // how many passages have it
	weight float64 // of its rarity, and of how often it is asked for
	filter bool    // a filter holds for it: it counts, but is not looked for
	whole  bool    // it is a compound, whose words are looked for; likewise
	letter string  // the term of a single letter that stands for pairs, else ""
}

// count looks up how many passages have a word, and leaves out the forms that
// none has, such as those of most languages of a site of many; one stays.
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

// plan is what is done for a question.
type plan struct {
	words  []*wanted // each once; those that say something, or all if none does
	filter Match     // holds for every passage that is found
	terms  []string
	total  float64 // of the weights
	trial  Trial
	note   error // a part of the question that is not looked for; nil = all is
}

// maxAsked is how many words of a question are looked for: the rarest of those
// that the site has, where a word counts as often as the question repeats it.
const maxAsked = 64

// common is the share of the passages from which a word on the stop list of a
// language that is not the most common one is a stop word on this site: "die" is
// one in German, and a word in English.
const common = 0.02

// newPlan returns a plan of a question for a site.
func newPlan(q Query, a *Analyzer, st Statistics, ix Index, trial Trial) (*plan, error) {
	p := &plan{trial: trial}
	b := planner{plan: p, analyzer: a, index: ix, languages: a.distinct(languagesOf(st)), seen: make(map[string]*wanted), stops: make(map[*wanted]stopping)}
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
	for _, w := range b.wholes {
		if err := w.count(ix, st.Passages); err != nil {
			return nil, err
		}
		if w.n > 0 { // else the site writes it in another way
			p.words = append(p.words, w)
		}
	}
	slices.SortStableFunc(p.words, func(x, y *wanted) int { return cmp.Compare(x.n, y.n) })
	if n := len(p.words); n > maxAsked {
		p.note = millrace.Coded("query-words", fmt.Errorf("the question has %d words: the %d rarest count", n, maxAsked))
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
		if !w.whole { // which meaning does not know
			p.terms = append(p.terms, w.terms...)
		}
	}
	return p, nil
}

// languagesOf returns the languages that a question is read in.
func languagesOf(st Statistics) []string {
	if len(st.Languages) == 0 {
		return []string{""}
	}
	return st.Languages
}

// rarity is how much it says of a passage that it has a word that n of all the
// passages have.
func rarity(n, passages int) float64 {
	return math.Log1p((float64(passages-n) + 0.5) / (float64(n) + 0.5))
}

// stopping says whether a word is on a stop list: on that of the site's most
// common language, or on one of the others.
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
	wholes    []*wanted // compounds, which count beside their words
	stops     map[*wanted]stopping
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
	if p.Not || p.Phrase || p.Field == TitleField {
		if phrases := phrasesOf(forms, p.Field); len(phrases) > 0 && p.Not {
			b.filter.Not = append(b.filter.Not, phrases...)
			return nil
		} else if len(phrases) > 0 {
			b.filter.All = append(b.filter.All, phrases)
		}
		if p.Not {
			return nil
		}
	}
	b.take(p, forms, p.Phrase || p.Field == TitleField)
	return nil
}

// maxPairs is how many pairs a single letter stands for, the most common.
const maxPairs = 64

// letter adds to a part that is a single letter of a script without spaces the
// pairs that it begins: a text has it alone only at the end of a run.
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

// phrasesOf returns a part as a phrase, in each language in which it is
// another.
func phrasesOf(forms [][]Token, field Field) (phrases []Phrase) {
	for _, tokens := range forms {
		ph := Phrase{Field: field}
		for _, t := range tokens {
			if !t.Extra { // further forms stand behind all words of a text
				ph.Terms = append(ph.Terms, t.Term)
			}
		}
		if len(ph.Terms) == 0 && len(tokens) > 0 {
			ph.Terms = []string{tokens[0].Term} // a letter that has no pair
		}
		if len(ph.Terms) > 0 && !slices.ContainsFunc(phrases, func(o Phrase) bool { return slices.Equal(o.Terms, ph.Terms) }) {
			phrases = append(phrases, ph)
		}
	}
	return phrases
}

// take takes the words of a part, each of which stands for its forms in all
// languages. The whole of a compound such as max_connections counts too, so that
// a passage with its words here and there comes after one that has the name.
func (b *planner) take(p Part, forms [][]Token, filter bool) {
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
				w = &wanted{text: p.Text[t.Start:t.End], times: 1, filter: filter || t.Extra, whole: t.Extra}
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
			old.filter = old.filter && filter
			continue
		}
		b.seen[key] = w
		if w.whole {
			b.wholes = append(b.wholes, w)
			continue
		}
		b.words = append(b.words, w)
	}
}

// dropStops drops the words that say nothing, unless there is nothing else.
func (b *planner) dropStops(st Statistics) {
	kept := slices.DeleteFunc(slices.Clone(b.words), func(w *wanted) bool {
		s := b.stops[w]
		return s == stopHere || s == stopSomewhere && float64(w.n) > common*float64(st.Passages)
	})
	if len(kept) > 0 {
		b.words = kept
	}
}

// weights returns what each form of each word counts.
func (p *plan) weights() map[string]float64 {
	m := make(map[string]float64)
	for _, w := range p.words {
		if w.letter != "" { // of the pairs that it stands for, it alone
			m[w.letter] = max(m[w.letter], w.weight)
			continue
		}
		for _, t := range w.terms {
			m[t] = max(m[t], w.weight)
		}
	}
	return m
}
