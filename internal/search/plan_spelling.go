package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
)

const (
	maxLooks    = 40_000 // maximum number of terms to compare for a question
	minMisspelt = 4      // minimum length of a word to correct; a shorter word has too many neighbors
	farWord     = 8      // minimum length of a word in which two mistakes are allowed
	maxForms    = 8      // maximum number of passages to read to find a form of a word
)

// correct replaces words that the site does not contain with words of similar spelling. Of equally
// similar words, it uses the one in the most passages. It does not change words with digits or
// quoted words. It returns the corrected question; ok reports whether it replaced a word.
func (p *plan) correct(ix Index, a *Analyzer, text string) (corrected string, ok bool, err error) {
	looks := maxLooks
	for _, w := range p.words {
		if w.n > 0 || w.filter || looks <= 0 || strings.ContainsFunc(w.text, unicode.IsNumber) {
			continue
		}
		term, n, err := findTypo(ix, a, w.text)
		if err != nil {
			return "", false, err
		}
		near, far, nearN, err := neighbor(ix, w.terms[0], &looks)
		if err != nil {
			return "", false, err
		}
		if term == "" || far == 1 && nearN > n {
			term = near
		}
		if term == "" {
			continue
		}
		if text, ok, err = replace(ix, a, text, w.text, term, ok); err != nil {
			return "", false, err
		}
	}
	return text, ok, nil
}

// findTypo corrects a word in which two letters are swapped or one letter is superfluous. It
// returns the term of the correct word and the number of passages with the term, or "" if no term
// is found. It is needed because the stems of the misspelled and the correct word may differ a lot,
// such as "standnig" and "stand".
func findTypo(ix Index, a *Analyzer, text string) (term string, best int, err error) {
	r := []rune(text)
	if len(r) < minMisspelt || len(r) > MaxTerm {
		return "", 0, nil
	}
	languages := a.distinct(languagesOf(ix.Statistics()))
	try := func(word []rune) error {
		for _, l := range languages {
			for t := range a.Tokens(string(word), l) {
				n, err := ix.Frequency(t.Term)
				if err != nil {
					return err
				}
				if n > best && !t.Stop {
					term, best = t.Term, n
				}
			}
		}
		return nil
	}
	for i := range r {
		if i+1 < len(r) && r[i] != r[i+1] {
			word := slices.Clone(r)
			word[i], word[i+1] = word[i+1], word[i]
			if err := try(word); err != nil {
				return "", 0, err
			}
		}
		if err := try(slices.Delete(slices.Clone(r), i, i+1)); err != nil {
			return "", 0, err
		}
	}
	return term, best, nil
}

// neighbor returns the site's term with the spelling nearest to term, the distance between the two,
// and the number of passages with the found term. If no term is near enough, best is "". neighbor
// subtracts the number of compared terms from looks.
func neighbor(ix Index, term string, looks *int) (best string, far, n int, err error) {
	r := []rune(term)
	if len(r) < minMisspelt {
		return "", 0, 0, nil
	}
	limit := 1
	if len(r) >= farWord {
		limit = 2
	}
	far = limit + 1
	var d distance
	look := func(t string, passages int) bool {
		*looks--
		if size := utf8.RuneCountInString(t); size >= len(r)-limit && size <= len(r)+limit {
			if between := d.between(r, []rune(t), limit); between < far || between == far && far <= limit && passages > n {
				best, far, n = t, between, passages
			}
		}
		return *looks > 0
	}
	// First compare terms with the same two letters at the start, which are usually correct. Then
	// compare terms with the same first letter, and terms that start with the second letter,
	// because the first may be superfluous or swapped.
	for _, prefixes := range [][]string{{string(r[:2])}, {string(r[:1]), string(r[1:2])}} {
		for _, prefix := range prefixes {
			if err := ix.Terms(prefix, look); err != nil {
				return "", 0, 0, err
			}
		}
		if best != "" {
			break
		}
	}
	return best, far, n, nil
}

// replace replaces a word of the question with a word that has the given term. Because terms are
// stems, replace reads a few passages and uses the nearest form of the word in them.
func replace(ix Index, a *Analyzer, text, old, term string, done bool) (string, bool, error) {
	ids, err := ix.Match(Match{All: [][]Phrase{{{Terms: []string{term}}}}}, maxForms)
	if err != nil {
		return text, done, err
	}
	word, far := "", 0
	var d distance
	typed := []rune(strings.ToLower(old))
	for _, id := range ids {
		var h millrace.Hit
		language, err := ix.Hit(id, &h)
		if err != nil {
			return text, done, err
		}
		for _, part := range []string{h.Text, strings.Join(h.Headings, "\n"), h.Title} {
			for t := range a.Tokens(part, language) {
				if t.Term != term {
					continue
				}
				form := strings.ToLower(part[t.Start:t.End])
				if between := d.between(typed, []rune(form), maxAnalyzed); word == "" || between < far {
					word, far = form, between
				}
			}
		}
	}
	if word == "" {
		return text, done, nil
	}
	return reword(text, old, word), true, nil
}

// reword replaces old wherever it is a separate word. If old is always part of a longer word,
// reword replaces its first occurrence.
func reword(text, old, word string) string {
	var b strings.Builder
	rest, last := text, utf8.RuneError
	for {
		i := strings.Index(rest, old)
		if i < 0 {
			break
		}
		if i > 0 {
			last, _ = utf8.DecodeLastRuneInString(rest[:i])
		}
		b.WriteString(rest[:i])
		rest = rest[i+len(old):]
		if next, _ := utf8.DecodeRuneInString(rest); isTerm(last) || isTerm(next) {
			b.WriteString(old)
		} else {
			b.WriteString(word)
		}
		last, _ = utf8.DecodeLastRuneInString(old)
	}
	if b.WriteString(rest); b.String() != text {
		return b.String()
	}
	return strings.Replace(text, old, word, 1)
}

// distance computes the number of letters that are changed, missing, superfluous or swapped with
// the next letter.
type distance struct{ rows [3][]int }

func (d *distance) between(a, b []rune, limit int) int {
	for i := range d.rows {
		if cap(d.rows[i]) <= len(b) {
			d.rows[i] = make([]int, len(b)+1)
		}
		d.rows[i] = d.rows[i][:len(b)+1]
	}
	before, last, row := d.rows[0], d.rows[1], d.rows[2]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
