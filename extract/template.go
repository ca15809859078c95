package extract

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// Template is what the pages of a site have in common, as [Learner] found it.
// It is plain data, to be kept as JSON.
//
// Its root is used on a page that has exactly one such element, if that holds
// 80 % of the words that the page alone leads to, and those are at least a
// fifth of its own. Its repeated parts are left out where they stand once, and
// only if that leaves a text. All that it does is in [Result.Dropped] and
// [Result.Kept] with the reason "template". It decides what is content before
// rules do: RulesOptions.Keep brings a part back.
type Template struct {
	Pages     int        `json:"pages"`          // distinct pages that it was learned from
	Root      string     `json:"root,omitempty"` // selector of the element that holds the content; "" = none in common
	RootPages int        `json:"root_pages"`     // how many of the pages it fits
	Differs   int        `json:"differs"`        // on how many of them the page alone leads to another root
	Repeated  []Repeated `json:"repeated"`       // parts that are no content, though a page alone does not tell
}

// Repeated is a part that comes back from page to page.
type Repeated struct {
	Selector string `json:"selector"` // leads to it on one of the pages
	Text     string `json:"text"`     // how it begins
	Words    int    `json:"words"`
	Pages    int    `json:"pages"` // of those learned from
	Hash     string `json:"hash"`  // of its text and its element's form
}

// maxRepeated is the most parts that a template has.
const maxRepeated = 200

// fingerprint is the same for templates that correct the same; "" = nothing.
func (t *Template) fingerprint() string {
	if t == nil || !t.hasRoot() && len(t.Repeated) == 0 {
		return ""
	}
	h := fnv.New64a()
	if t.hasRoot() {
		fmt.Fprintf(h, "%q", t.Root)
	}
	hashes := make([]string, 0, len(t.Repeated))
	for _, r := range t.Repeated {
		hashes = append(hashes, r.Hash)
	}
	slices.Sort(hashes)
	fmt.Fprintf(h, "%q", hashes)
	return strconv.FormatUint(h.Sum64(), 36)
}

// hasRoot reports whether the root corrects anything.
func (t *Template) hasRoot() bool { return t.Root != "" && t.Differs > 0 }

// learned is a template made ready. The zero value corrects nothing.
type learned struct {
	root  *selection      // nil = none
	path  []pathStep      // the same, where it is one of the first elements by their places
	parts map[uint64]bool // by hash
	exact bool            // texts are compared by all that they say
}

// compile gives nil for a template that corrects nothing.
func (t *Template) compile() (*learned, error) {
	if t.fingerprint() == "" {
		return nil, nil //nolint:nilnil // there is nothing to correct
	}
	site := &learned{parts: map[uint64]bool{}, exact: len(t.Repeated) > 0}
	if t.hasRoot() {
		site.root = &selection{}
		if err := site.root.add(t.Root, 0); err != nil {
			return nil, fmt.Errorf("extract: %w: the root %q of a template is no CSS selector that is supported: %w", millrace.ErrInvalid, t.Root, err)
		}
		site.path = parsePath(t.Root)
	}
	for _, r := range t.Repeated {
		h, err := strconv.ParseUint(r.Hash, 36, 64)
		if err != nil || len(site.parts) > maxRepeated {
			return nil, fmt.Errorf("extract: %w: a template with a repeated part of the hash %q, or more than %d", millrace.ErrInvalid, r.Hash, maxRepeated)
		}
		site.parts[h] = true
	}
	return site, nil
}

const fromTemplate = "template"

// learnedRoot takes the root of the site's template, where it agrees with the
// page's own.
func (l *located) learnedRoot() {
	if l.c.site == nil || l.c.site.root == nil {
		return
	}
	boxes := l.c.boxes
	at, own := l.only(l.c.site), l.at
	switch {
	case at <= 0 || at == own || l.isDropped(at) || !agrees(at, own, boxes[at].end, boxes[own].end, boxes[at].words, boxes[own].words):
		return
	case at < own:
		if more := boxes[at].words - boxes[own].words; more > 0 {
			l.kept = append(l.kept, Kept{Selector: selector(boxes[at].n), Reason: fromTemplate, Words: int(more)})
		}
	default:
		for i := own + 1; i < boxes[own].end && i != at; {
			if b := &boxes[i]; i < at && at < b.end {
				i++
			} else {
				if b.drop == "" {
					b.drop = fromTemplate
				}
				i = b.end
			}
		}
		for i := boxes[at].end; i < boxes[own].end; i = boxes[i].end {
			if boxes[i].drop == "" {
				boxes[i].drop = fromTemplate
			}
		}
	}
	l.at = at
}

// agrees reports whether a learned root may stand for a page's own: what each
// spans, from its begin to its end, and its words.
func agrees(at, own, atEnd, ownEnd, words, ownWords int32) bool {
	if at <= own && ownEnd <= atEnd {
		return ownWords*5 >= words
	}
	return own <= at && atEnd <= ownEnd && words*5 >= ownWords*4
}

// only gives the box of the one element that the root of a template means, -1
// if there is none or more than one.
func (l *located) only(site *learned) int32 {
	s, boxes := site.root, l.c.boxes
	if s.joins == 0 && !s.ordinal && len(s.has) == 0 && len(s.compounds) == 1 {
		found, at := int32(-1), place{}
		for i := range boxes {
			if at.n = boxes[i].n; at.passes(s.compounds[0].tests) {
				if found >= 0 {
					return -1
				}
				found = int32(i)
			}
		}
		return found
	}
	var node *html.Node
	switch {
	case l.c.body.Parent == nil: // it is none of the document's
	case site.path != nil:
		node = follow(l.c.body, site.path)
	default:
		count := 0
		s.walk(l.c.body.Parent, func(n *html.Node, rule int) bool {
			if rule >= 0 {
				count++
				node = n
			}
			return true
		})
		if count > 1 {
			node = nil
		}
	}
	for i := range boxes {
		if boxes[i].n == node {
			return int32(i)
		}
	}
	return -1
}

// learnedParts leaves out of the root what the site's template has.
func (l *located) learnedParts() {
	if l.c.site == nil || len(l.c.site.parts) == 0 {
		return
	}
	boxes := l.c.boxes
	var found []int32
	times := map[uint64]int{}
	for i := range l.parts(l.at) {
		if h := boxes[i].part(); l.c.site.parts[h] {
			found = append(found, i)
			times[h]++
		}
	}
	if len(found) == 0 {
		return
	}
	total, taken, end := int32(0), int32(0), int32(0)
	for i := l.at; i < boxes[l.at].end; i++ {
		if b := &boxes[i]; b.drop == "" || i == l.at {
			total += b.own
		} else {
			i = b.end - 1
		}
	}
	for _, i := range found {
		if times[boxes[i].part()] == 1 && i >= end {
			taken, end = taken+boxes[i].words, boxes[i].end
		}
	}
	// A page that has little else may be the one that the part is made of.
	if left := total - taken; left < minLeft && left*4 < total {
		return
	}
	end = 0
	for _, i := range found {
		if times[boxes[i].part()] == 1 && i >= end {
			boxes[i].drop, end = fromTemplate, boxes[i].end
		}
	}
}

// minLeft is the number of words that are a text by themselves.
const minLeft = 30

// parts yields the boxes inside one that may be a part of a template, those
// inside others as well: groups that hold no code, table or call-out, and are
// no text themselves. Whether they hold two texts or more is [located.grouped].
func (l *located) parts(at int32) func(func(int32) bool) {
	return func(yield func(int32) bool) {
		boxes := l.c.boxes
		for i := at + 1; i < boxes[at].end; i++ {
			b := &boxes[i]
			if b.drop != "" {
				i = b.end - 1
				continue
			}
			switch b.tag {
			case atom.P, atom.Pre, atom.Li, atom.Dd, atom.Dt, atom.Blockquote, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Figure:
				i = b.end - 1
				continue
			case atom.Table:
				if !isLayoutTable(b.n) {
					i = b.end - 1
				}
				continue
			case atom.Tbody, atom.Tr, atom.Td, atom.Th, atom.Main, atom.Summary, atom.Details:
				continue
			case atom.Ul, atom.Ol, atom.Dl:
				if b.links*2 <= b.words { // facts; links are a menu
					continue
				}
			}
			if b.flags&(hasBlock|hasTable) == 0 && b.end > i+1 && b.words > 0 && !yield(i) {
				return
			}
		}
	}
}

// grouped reports whether a box holds two texts or more, and not only headings
// or one at its end, which are those of what follows.
func (l *located) grouped(at int32) bool {
	boxes := l.c.boxes
	texts, headings, last := 0, 0, false
	for i := at; i < boxes[at].end; i++ {
		b := &boxes[i]
		if b.drop != "" {
			i = b.end - 1
			continue
		}
		if b.n == l.c.titleNode {
			return false
		}
		if b.own > 0 {
			texts++
			if last = tagLevel(b.tag) > 0; last {
				headings++
			}
		}
	}
	return texts >= 2 && headings < texts && !last && calloutKind(boxes[at].n) == "" && !l.holdsNotes(boxes[at].n)
}

// part gives the hash of a box as a part of a template.
func (b *box) part() uint64 {
	h := b.sign
	for _, s := range []string{b.n.Data, firstClass(b.n)} {
		h = sign(h, s, 100)
	}
	return h
}
