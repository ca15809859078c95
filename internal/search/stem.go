package search

import (
	"encoding/binary"
	"hash/fnv"
	"math/bits"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/irish"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/blevesearch/snowballstem/turkish"
)

// lexicon analyzes and caches the words of one language.
type lexicon struct {
	lang  string
	stem  func(*snowballstem.Env) bool // If nil, use light.
	latin bool                         // the language is, or may be, written in Latin letters
	stops map[string]bool
	env   *snowballstem.Env
	// A cache of two generations: when young is full, it becomes old, and old is dropped.
	young, old map[string]analyzed
	// A cache of the latest words. Each word has one possible index; see recentIndex.
	recent [maxRecent]analyzed
}

type analyzed struct {
	raw  string // the word as a separate string, not a substring of the text
	term string // "" for a word without letters and digits
	stop bool
}

// recentIndex returns the index of a word in recent, from its first and last bytes and its length.
func recentIndex(raw string) uint32 {
	var h uint64
	if n := len(raw); n >= 8 {
		h = binary.LittleEndian.Uint64([]byte(raw[:8])) ^ bits.RotateLeft64(binary.LittleEndian.Uint64([]byte(raw[n-8:])), 29)
	} else {
		for i := range n {
			h = h<<8 | uint64(raw[i])
		}
	}
	h = (h + uint64(len(raw))) * 0x9E3779B97F4A7C15
	return uint32(h >> (64 - recentBits))
}

const (
	maxLexicon  = 1 << 13 // maximum number of words in a generation
	recentBits  = 12
	maxRecent   = 1 << recentBits
	maxCached   = 32  // maximum size of a cached word in bytes
	maxAnalyzed = 512 // maximum size of an analyzed word in bytes; longer words are truncated
)

// Names for languages with neither a stemmer nor a stop list: those in Latin letters, and those in
// another script, where a word in Latin letters is probably English.
const (
	otherLatin   = "latin"
	otherScripts = "scripts"
)

// canonicalLanguage maps the subtag of a language to the name that this package uses.
func canonicalLanguage(lang string) string {
	switch lang {
	case "", "und", "mul":
		return "en"
	case "nb", "nn":
		return "no"
	case "mo":
		return "ro"
	}
	if stemmer(lang) != nil || stopWords(lang) != "" {
		return lang
	}
	switch lang {
	case "am", "as", "be", "bn", "bo", "dv", "dz", "gu", "hi", "hy", "ja", "ka", "kk", "km", "kn", "ko", "ky", "lo", "mk", "ml", "mn", "mr",
		"my", "ne", "or", "pa", "ps", "sa", "sd", "si", "sr", "te", "tg", "th", "ti", "tt", "ug", "ur", "yi", "yue", "zh":
		return otherScripts
	}
	return otherLatin
}

func newLexicon(lang string) *lexicon {
	l := &lexicon{
		lang: lang, stem: stemmer(lang), latin: true,
		stops: map[string]bool{}, env: snowballstem.NewEnv(""), young: map[string]analyzed{},
	}
	switch lang {
	case "ar", "el", "fa", "he", "ru", "ta", "uk", otherScripts:
		l.latin = false
	}
	for s := range strings.FieldsSeq(stopWords(lang)) {
		l.stops[s] = true
		l.stops[plain(s)] = true
	}
	return l
}

// stemmer returns the Snowball stemmer of a language, or nil if it has none.
func stemmer(lang string) func(*snowballstem.Env) bool {
	switch lang {
	case "ar":
		return arabic.Stem
	case "da":
		return danish.Stem
	case "de":
		return german.Stem
	case "en":
		return english.Stem
	case "es":
		return spanish.Stem
	case "fi":
		return finnish.Stem
	case "fr":
		return french.Stem
	case "ga":
		return irish.Stem
	case "hu":
		return hungarian.Stem
	case "it":
		return italian.Stem
	case "nl":
		return dutch.Stem
	case "no":
		return norwegian.Stem
	case "pt":
		return portuguese.Stem
	case "ro":
		return romanian.Stem
	case "ru":
		return russian.Stem
	case "sv":
		return swedish.Stem
	case "ta":
		return tamil.Stem
	case "tr":
		return turkish.Stem
	}
	return nil
}

// word analyzes a word of a text. It caches the result, unless the word is long.
func (l *lexicon) word(raw string) analyzed {
	if len(raw) > maxCached {
		return l.analyze(raw)
	}
	r := &l.recent[recentIndex(raw)]
	if r.raw != raw {
		*r = l.remembered(raw)
	}
	return *r
}

// wordOf is like word, for bytes that are not part of a text.
func (l *lexicon) wordOf(raw []byte) analyzed {
	if len(raw) <= maxCached {
		if r := &l.recent[recentIndex(string(raw))]; r.raw == string(raw) {
			return *r
		}
	}
	return l.word(string(raw))
}

func (l *lexicon) remembered(raw string) analyzed {
	if w, ok := l.young[raw]; ok {
		return w
	}
	w, ok := l.old[raw]
	if !ok {
		w = l.analyze(raw)
		// Clone the word, because a substring would keep the whole text in memory.
		w.raw = strings.Clone(raw)
	}
	if len(l.young) >= maxLexicon {
		l.old, l.young = l.young, make(map[string]analyzed, maxLexicon)
	}
	l.young[w.raw] = w
	return w
}

// analyze returns the term of a word. It applies NFKC and case folding, stems the word, and only
// then removes diacritics, because stemmers need them.
func (l *lexicon) analyze(raw string) analyzed {
	word := raw
	if len(raw) > maxAnalyzed {
		raw = strings.ToValidUTF8(raw[:maxAnalyzed], "")
	}
	folded := l.fold(raw)
	if folded == "" {
		return analyzed{}
	}
	w := analyzed{stop: l.stops[folded]}
	w.term = plain(l.stemmed(folded))
	if len(w.term) > MaxTerm || len(word) > maxAnalyzed {
		w.term = cutTerm(w.term, word)
	}
	return w
}

// cutTerm truncates a term that is too long, and appends a hash of the whole word.
func cutTerm(term, word string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strings.ToLower(word)))
	sum := strconv.FormatUint(h.Sum64(), 36)
	cut := min(len(term), MaxTerm-len(sum))
	for cut > 0 && !utf8.RuneStart(term[cut:][0]) {
		cut--
	}
	return term[:cut] + sum
}

// stemmed returns the stem of a folded word. It does not change long words, words with digits, or
// words in a script that the stemmer does not support.
func (l *lexicon) stemmed(folded string) string {
	script := scriptOf(folded)
	switch {
	case script == noScript || len(folded) > MaxTerm:
		return folded
	case script == latinScript && !l.latin:
		return l.snowball(english.Stem, folded)
	case l.stem != nil && (script == latinScript) == l.latin:
		if l.lang == "ru" {
			folded = plain(folded) // the stemmer does not treat ё as a vowel
		}
		return l.snowball(l.stem, folded)
	case l.stem != nil:
		return folded
	}
	return light(folded)
}

func (l *lexicon) snowball(stem func(*snowballstem.Env) bool, folded string) string {
	l.env.SetCurrent(folded)
	stem(l.env)
	if s := l.env.Current(); s != "" {
		return s
	}
	return folded
}

type script uint8

const (
	noScript script = iota // the word contains digits, or its script has no inflection
	latinScript
	otherScript
)

func scriptOf(folded string) script {
	found := noScript
	for _, r := range folded {
		switch {
		case r < utf8.RuneSelf && r > '9', unicode.Is(unicode.Latin, r):
			if found == noScript {
				found = latinScript
			}
		case unicode.IsNumber(r) || isDense(r):
			return noScript
		case unicode.IsLetter(r):
			found = otherScript
		}
	}
	return found
}

// light is the stemmer for languages without a stemmer of their own. Up to twice, it removes one
// or two final vowels, and the consonant after them if it is a common one. It keeps at least four
// letters.
func light(folded string) string {
	runes := []rune(plain(folded))
	for range 2 {
		n := len(runes)
		if n > 0 && strings.ContainsRune("smhjnмхйвтςσν", runes[n-1]) {
			n--
		}
		v := n
		for v > 0 && n-v < 2 && isVowel(runes[v-1]) {
			v--
		}
		if v == n || v < 4 {
			break
		}
		runes = runes[:v]
	}
	return string(runes)
}

func isVowel(r rune) bool {
	return strings.ContainsRune("aeiouyаеиоуыэюяіїєьαεηιουω", r)
}
