package search

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SnippetLength is the maximum length of a snippet in code points, without its ellipses.
const SnippetLength = 240

// maxMatches limits the work for a text that repeats a word very often.
const maxMatches = 1 << 13

// match is an occurrence of a term in a text.
type match struct {
	start, end int // byte offsets
	at         int // number of code points before start
	term       string
	weight     float64
}

// Snippet returns the part of a text whose terms have the highest total weight. The part starts and
// ends at the boundary of a sentence if one is near, else between words. "…" replaces omitted text,
// and white space becomes single spaces. marks are pairs of byte offsets of the found words in the
// snippet, in order and without overlaps. terms contains the weights of terms of [Analyzer.Tokens]
// in the language of the text. If no term occurs, the snippet is the start of the text.
func (a *Analyzer) Snippet(text, lang string, terms map[string]float64) (snippet string, marks [][2]int) {
	found := a.matches(text, lang, terms)
	slices.SortStableFunc(found, func(a, b match) int { return cmp.Compare(a.start, b.start) })
	first, last := bestWindow(found)
	start, end := 0, 0
	if len(found) > 0 {
		start, end = found[first].start, found[last].end
	}
	start, end = extend(text, start, end)
	return render(text, start, end, found)
}

func (a *Analyzer) matches(text, lang string, terms map[string]float64) []match {
	var found []match
	if len(terms) == 0 {
		return nil
	}
	letters := false
	for term := range terms {
		letters = letters || isLetter(term)
	}
	at, counted := 0, 0
	for t := range a.Tokens(text, lang) {
		w, ok := terms[t.Term]
		if !ok && letters {
			s := segmenter{text: t.Term}
			if r, _ := s.runeAt(0); isDense(r) { // mark the first letter of a pair
				t.Term = t.Term[:s.cluster(0)]
				s.text = text
				t.End = s.cluster(t.Start)
				w, ok = terms[t.Term]
			}
		}
		if !ok {
			continue
		}
		if t.Start >= counted {
			at += utf8.RuneCountInString(text[counted:t.Start])
		} else { // a whole compound, which starts before its last part
			at -= utf8.RuneCountInString(text[t.Start:counted])
		}
		counted = t.Start
		found = append(found, match{start: t.Start, end: t.End, at: at, term: t.Term, weight: w})
		if len(found) == maxMatches {
			break
		}
	}
	return found
}

// bestWindow returns the first and the last match of the best part of limited length. Of
// equally good parts it returns the earliest. A term adds its weight once, and a little for
// each repeat.
func bestWindow(found []match) (first, last int) {
	const again = 0.05
	times := map[string]int{}
	score, best := 0.0, -1.0
	i := 0
	for j, m := range found {
		if times[m.term]++; times[m.term] == 1 {
			score += m.weight
		} else {
			score += again * m.weight
		}
		for i < j && m.at+(m.end-m.start) > found[i].at+SnippetLength {
			if times[found[i].term]--; times[found[i].term] == 0 {
				score -= found[i].weight
			} else {
				score -= again * found[i].weight
			}
			i++
		}
		if score > best+1e-9 {
			first, last, best = i, j, score
		}
	}
	// Drop matches at the edges that are repeated inside, to leave space for whole sentences.
	clear(times)
	for _, m := range found[first:min(last+1, len(found))] {
		times[m.term]++
	}
	for ; first < last && times[found[last].term] > 1; last-- {
		times[found[last].term]--
	}
	for ; first < last && times[found[first].term] > 1; first++ {
		times[found[first].term]--
	}
	return first, last
}

// extend extends a part of a text to the length of a snippet. It first moves the start back to
// the start of a sentence or word, if one is near. Then it moves the end forward over whole
// sentences, or else over words.
func extend(text string, start, end int) (int, int) {
	if head(text, SnippetLength) == text {
		return 0, len(text)
	}
	left := SnippetLength - utf8.RuneCountInString(text[start:end])
	if left < 0 {
		return start, start + len(head(text[start:end], SnippetLength))
	}
	back, used := backward(text, start, left, left/3, 1)
	start, left = back, left-used
	end = forward(text, end, left)
	if end == len(text) && start > 0 { // use the space that is left after the end
		left = SnippetLength - utf8.RuneCountInString(text[start:end])
		start, _ = backward(text, start, left, 0, left)
	}
	return start, end
}

// backward returns the start of a snippet whose first match starts at i. It prefers the start of a
// sentence, at most the given number of sentences and most characters before i. If there is no
// such start, it returns the start of a word, at most few characters before i.
func backward(text string, i, most, few, sentences int) (start, used int) {
	start = i
	for at, n, found := i, 0, 0; ; n++ {
		if beginsSentence(text, at) {
			start, used = at, n
			if found++; found >= sentences || at == 0 {
				return start, used
			}
		}
		if found == 0 && n <= few && isEdge(text, at) {
			start, used = at, n
		}
		if n == most {
			return start, used
		}
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
}

// forward returns the end of a snippet that now ends at i and may grow by most characters. It
// prefers the end of the text, then the last end of a sentence in the second half of these
// characters, then the last end of a word.
func forward(text string, i, most int) int {
	word, sentence := i, 0
	for at, n := i, 0; ; n++ {
		if at == len(text) {
			return at
		}
		if isEdge(text, at) {
			word = at
			if 2*n >= most && beginsSentence(text, at) {
				sentence = at
			}
		}
		if n == most {
			break
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	switch {
	case sentence > 0:
		return sentence
	case word == i: // a single long word
		return i + len(head(text[i:], most))
	}
	return word
}

// beginsSentence reports whether a sentence, a line or the text begins at i.
func beginsSentence(text string, i int) bool {
	r, n := utf8.DecodeLastRuneInString(text[:i])
	switch {
	case n == 0 || r == '\n':
		return true
	case isWideEnd(r):
		next, _ := utf8.DecodeRuneInString(text[i:])
		return !isClosing(next) && !isWideEnd(next)
	case !unicode.IsSpace(r):
		return false
	}
	if next, _ := utf8.DecodeRuneInString(text[i:]); unicode.IsSpace(next) || unicode.IsLower(next) {
		return false
	}
	for range 4 {
		text = text[:i]
		if r, n = utf8.DecodeLastRuneInString(text); !unicode.IsSpace(r) && !isClosing(r) {
			break
		}
		i -= n
	}
	switch r {
	case '.', '!', '?', '…', '؟', '۔', '।', '॥', '։', '።':
		return true
	}
	return isWideEnd(r)
}

func isWideEnd(r rune) bool {
	switch r {
	case '。', '！', '？', '｡', '။', '។':
		return true
	}
	return false
}

func isClosing(r rune) bool { return strings.ContainsRune(`"')]}”’»›」』）】`, r) }

// isEdge reports whether a word may start or end at i.
func isEdge(text string, i int) bool {
	before, n := utf8.DecodeLastRuneInString(text[:i])
	after, m := utf8.DecodeRuneInString(text[i:])
	switch {
	case n == 0 || m == 0 || unicode.IsSpace(before) || unicode.IsSpace(after):
		return true
	}
	return (isDense(before) || isDense(after)) && !unicode.IsMark(after) && !isClosing(after) && !isIgnored(after)
}

// render returns a part of a text with its marks.
func render(text string, start, end int, found []match) (string, [][2]int) {
	for start < end {
		r, n := utf8.DecodeRuneInString(text[start:end])
		if !unicode.IsSpace(r) {
			break
		}
		start += n
	}
	end = start + len(strings.TrimRightFunc(text[start:end], unicode.IsSpace))
	var out strings.Builder
	var marks [][2]int
	if strings.TrimSpace(text[:start]) != "" {
		out.WriteString("…")
	}
	at, space := start, false
	// upTo writes the text up to i, and returns the length of the snippet so far.
	upTo := func(i int) int {
		for at < i {
			r, n := utf8.DecodeRuneInString(text[at:])
			at += n
			if unicode.IsSpace(r) || unicode.IsControl(r) {
				space = true
				continue
			}
			if space {
				space = false
				out.WriteByte(' ')
			}
			out.WriteRune(r)
		}
		return out.Len()
	}
	for i := 0; i < len(found); {
		from, to := found[i].start, found[i].end
		for i++; i < len(found) && found[i].start <= to; i++ {
			to = max(to, found[i].end)
		}
		if from, to = max(from, start), min(to, end); from >= to {
			continue
		}
		begin := upTo(from)
		if space {
			space = false
			out.WriteByte(' ')
			begin++
		}
		marks = append(marks, [2]int{begin, upTo(to)})
	}
	upTo(end)
	if strings.TrimSpace(text[end:]) != "" {
		out.WriteString("…")
	}
	return out.String(), marks
}
