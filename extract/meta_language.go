package extract

import (
	"strings"

	"github.com/RadhiFadlillah/whatlanggo"
	"golang.org/x/text/language"

	"github.com/millrace/millrace"
)

// language sets the language that the document declares.
func (m *meta) language() {
	for _, p := range []struct{ source, value string }{
		{"html lang", attr(m.c.html, "lang")},
		{"html xml:lang", attr(m.c.html, "xml:lang")},
		{"meta content-language", m.firstNamed("content-language")},
		{"meta og:locale", m.firstNamed("og:locale")},
		{"json-ld inLanguage", m.first("language", "json-ld inLanguage")},
	} {
		if tag := languageTag(p.value); tag != "" {
			m.page.Language = tag
			m.res.Sources["language"] = p.source
			return
		}
	}
	delete(m.res.Sources, "language")
}

// languageTag returns s as a BCP 47 tag in canonical form, or "" if s is not a tag.
func languageTag(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), ",")
	tag, err := language.Parse(s)
	if err != nil || tag.IsRoot() || strings.HasPrefix(s, "x-") {
		return ""
	}
	return tag.String()
}

// Limits of language detection. Shorter texts give unreliable results, and longer ones do not
// improve them.
const (
	minSample = 200
	maxSample = 1500
)

// detectLanguage detects the language of a page from its content. If there is too little text, or
// several languages are possible, it returns "".
func detectLanguage(blocks []millrace.Block) string {
	var b strings.Builder
	sample(&b, blocks)
	text := b.String()
	if len(text) < minSample {
		return ""
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxSample)], "")
	if tag := byFunctionWords(text); tag != "" {
		return tag
	}
	info := whatlanggo.Detect(text)
	if !info.IsReliable() {
		return ""
	}
	return info.Lang.Iso6391()
}

// functionWords are the most frequent function words by language. They make up about a third of the
// words in prose.
var functionWords = [...]struct{ tag, words string }{
	{"en", "the of and to in is that for it with as on are be by this was or from at which not have an can if"},
	{"de", "der die und das den von zu mit sich des auf für ist im dem nicht ein eine als auch es an werden aus wird"},
	{"fr", "le la les de des et en un une du est pour que dans qui par sur au avec ne pas plus ce il sont"},
	{"es", "el la los las de y en que un una del por con para es se no su al como más lo o este"},
	{"it", "il la di e che un una in per è del della con non si da le dei al sono come nel gli i"},
	{"pt", "o a os as de e que em um uma do da para com não por se no na dos ao como é mais"},
	{"nl", "de het een en van in is dat op te met voor niet zijn die aan er om ook door als bij of naar"},
}

// languagesOf maps each function word to its languages, as bits in the order of functionWords.
var languagesOf = func() map[string]uint8 {
	m := map[string]uint8{}
	for i := range functionWords {
		for word := range strings.FieldsSeq(functionWords[i].words) {
			m[word] |= 1 << i
		}
	}
	return m
}()

// byFunctionWords returns the language of a text in clear cases, which are most cases, or else "". A
// case is clear if the function words of one language are frequent, and those of all other languages
// are rare. byFunctionWords is about a hundred times faster than whatlanggo.
func byFunctionWords(text string) string {
	var counts [len(functionWords)]int
	n := 0
	for word := range strings.FieldsSeq(text) {
		word = strings.Trim(word, ".,;:!?()\"'“”„»«…")
		if word == "" || isDigit(word[0]) {
			continue
		}
		n++
		if len(word) > 6 { // length of the longest function word: "werden"
			continue
		}
		for i, set := 0, languagesOf[strings.ToLower(word)]; set != 0; i, set = i+1, set>>1 {
			counts[i] += int(set & 1)
		}
	}
	best, second := 0, 0
	for i, c := range counts {
		if c > counts[best] || i == 0 {
			best = i
		}
	}
	for i, c := range counts {
		if i != best {
			second = max(second, c)
		}
	}
	share := 5
	if best == 0 {
		share = 7 // other languages have few of the function words of English, so a smaller share suffices
	}
	if n < 30 || counts[best]*share < n || second*5 > counts[best]*2 {
		return ""
	}
	return functionWords[best].tag
}

// sample collects the prose of blocks, without code and tables, for language detection.
func sample(b *strings.Builder, blocks []millrace.Block) {
	for i := range blocks {
		if b.Len() >= maxSample {
			return
		}
		if blocks[i].Type != "code" && blocks[i].Type != "math" {
			b.WriteString(blocks[i].Text)
			b.WriteByte('\n')
		}
		for k := range blocks[i].Items {
			b.WriteString(blocks[i].Items[k].Text)
			b.WriteByte('\n')
			if b.Len() >= maxSample {
				return
			}
		}
		sample(b, blocks[i].Blocks)
	}
}
