package crawl

import (
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace"
)

// reading contains hashes of a page's text.
type reading struct {
	// sketch estimates the similarity of two texts that are no longer available. It is a
	// one-permutation MinHash: pairs of adjacent words are hashed into eight buckets, and sketch
	// contains one byte of the smallest hash in each bucket. The fraction of equal buckets
	// estimates the fraction of common pairs. A text without pairs has the sketch 0.
	sketch uint64
	sum    uint64   // hash of all words
	lines  []uint64 // hashes of the paragraphs, items and rows that are neither headings nor empty
}

// The number of equal buckets, out of eight, in pages that are:
const (
	notWhollyOther = 4 // about half of the text is equal
	nearlySame     = 6
)

// maxLines is the maximum number of lines of a page that are compared.
const maxLines = 256

// read hashes the text of a page. The lines omit text that repeats parts of the page's address:
// numbers if the address contains a date, and the values of parameters if the address contains
// several.
func read(p *millrace.Page, u string) reading {
	f := filter{dates: dated.MatchString(u), sum: fnvStart}
	if _, query, _ := strings.Cut(u, "?"); strings.Contains(query, "&") {
		for pair := range strings.SplitSeq(query, "&") {
			_, value, _ := strings.Cut(pair, "=")
			f.echo = append(f.echo, wordHashes(value)...)
		}
	}
	f.blocks(p.Blocks)
	r := reading{sum: f.sum, lines: f.lines}
	for b, h := range f.least {
		if h != 0 {
			r.sketch |= (h%255 + 1) << (8 * b)
		}
	}
	return r
}

// dated matches addresses that contain a date: /2024/05, /2024-05-12, month=5.
var dated = regexp.MustCompile(`[/=-](19|20)\d\d[/-]?(0?[1-9]|1[0-2])([/-]?[0-3]?\d)?([/&-]|$)|(?i:[?&](year|month|day|week|date)=)`)

// filter hashes text word by word.
type filter struct {
	dates bool     // omit numbers from lines
	echo  []uint64 // hashes of words to omit from lines

	least [8]uint64 // smallest hash of the pairs in each bucket
	sum   uint64
	last  uint64 // hash of the last word
	line  uint64 // hash of the words in the current line. If zero, there are no words yet.
	lines []uint64
}

// blocks hashes a page's text. Each paragraph, item and row is a line.
func (f *filter) blocks(blocks []millrace.Block) {
	for i := range blocks {
		b := &blocks[i]
		f.scan(b.Caption)
		f.scan(b.Title)
		f.scan(b.Text)
		if b.Type == millrace.HeadingBlock {
			f.line = 0
		}
		f.end()
		for j := range b.Items {
			f.scan(b.Items[j].Term)
			f.scan(b.Items[j].Text)
			f.end()
			f.blocks(b.Items[j].Blocks)
		}
		for _, row := range b.Rows {
			for j := range row {
				f.scan(row[j].Text)
			}
			f.end()
		}
		f.blocks(b.Blocks)
	}
}

// end ends a line.
func (f *filter) end() {
	if f.line != 0 && len(f.lines) < maxLines {
		f.lines = append(f.lines, f.line)
	}
	f.line = 0
}

// wordBytes maps the bytes of words to lower case, and separators to 0. All non-ASCII bytes belong
// to words.
var wordBytes = func() (t [256]byte) {
	for i := range t {
		switch c := byte(i); {
		case 'A' <= c && c <= 'Z':
			t[i] = c + 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c >= 0x80:
			t[i] = c
		}
	}
	return t
}()

// scan hashes a part of a line.
func (f *filter) scan(text string) {
	word, digits := fnvStart, true
	for i := range len(text) {
		if b := wordBytes[text[i]]; b != 0 {
			word = (word ^ uint64(b)) * fnvPrime
			digits = digits && b <= '9'
		} else if word != fnvStart {
			f.word(word, digits)
			word, digits = fnvStart, true
		}
	}
	if word != fnvStart {
		f.word(word, digits)
	}
}

func (f *filter) word(word uint64, digits bool) {
	h := mix(f.last*31 ^ word)
	if b := h >> 61; h < f.least[b] || f.least[b] == 0 {
		f.least[b] = h
	}
	f.sum = (f.sum ^ h) * fnvPrime
	f.last = word
	if !(digits && f.dates) && (f.echo == nil || !slices.Contains(f.echo, word)) {
		f.line = (f.line ^ word) * fnvPrime
	}
}

// wordHashes returns the hashes of the words of a text.
func wordHashes(text string) (all []uint64) {
	word := fnvStart
	for i := 0; i <= len(text); i++ {
		if i < len(text) && wordBytes[text[i]] != 0 {
			word = (word ^ uint64(wordBytes[text[i]])) * fnvPrime
		} else if word != fnvStart {
			all = append(all, word)
			word = fnvStart
		}
	}
	return all
}

// similar returns the number of equal buckets of two sketches, scaled to eight. Buckets that are
// empty in both sketches are ignored. The result for equal sketches is 8.
func similar(a, b uint64) int {
	same, all := 0, 0
	for shift := 0; shift < 64; shift += 8 {
		x, y := a>>shift&0xFF, b>>shift&0xFF
		if x|y != 0 {
			all++
		}
		if x == y && x != 0 {
			same++
		}
	}
	if all == 0 {
		return 8
	}
	return same * 8 / all
}
