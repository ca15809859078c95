package extract

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// features are the names of the features of a unit, in order. A name ends with % if the value is a
// fraction in thousandths.
var features = slices.Concat(
	[]string{
		"words", "links %", "number of links", "words outside of links", "sentences", "commas %", "length of words", "digits %", "signs %", "sentences %",
		"tag", "level of heading",
		"texts before", "texts after", "place among the texts %", "place among the words %", "words of the page", "texts of the page", "links of the page %", "prose of the page %",
		"texts after the title",
	},
	of("the parent: "), of("the second ancestor: "), of("the third ancestor: "), of("the fourth ancestor: "),
	[]string{
		"children of the parent", "texts in the parent", "depth", "paragraph score", "paragraph score %",
		"kept by the rules", "reason of the rules", "distance from the root", "text in the root %", "kind of the page", "links in the root %",
	},
	beside("the second text before: "), beside("the text before: "), beside("the text after: "), beside("the second text after: "),
	[]string{
		"words nearby", "links nearby %", "prose nearby %",
		"last heading announces texts elsewhere", "level of the last heading", "texts since the last heading", "words since the last heading", "last heading kept by the rules",
		"announces texts elsewhere",
		"texts of this form", "words of this form", "links in texts of this form %", "texts of this form kept by the rules %",
	},
	markNames[:],
)

func of(what string) []string {
	return []string{what + "words", what + "links %", what + "prose", what + "kept by the rules %", what + "prose of the page %"}
}

func beside(what string) []string {
	return []string{what + "words", what + "links %", what + "level of heading", what + "kept by the rules", what + "sentences"}
}

// permille returns part/of in thousandths, or -1 if of is not positive.
func permille(part, of int32) int {
	if of <= 0 {
		return -1
	}
	return int(int64(part) * 1000 / int64(of))
}

func bit(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

var kindNumbers = []millrace.PageKind{"", millrace.Article, millrace.Documentation, millrace.Forum, millrace.Product, millrace.Listing, millrace.Collection, millrace.Archive}

var tagNumbers = []atom.Atom{
	atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Pre, atom.Blockquote, atom.Dl, atom.Dd, atom.Dt, atom.Ul, atom.Ol, atom.Table,
	atom.Figure, atom.Figcaption, atom.Li, atom.Td, atom.Th, atom.Div, atom.Section, atom.Article,
}

// sample appends the features of a unit.
func (k *classifier) sample(x []int16, i int) []int16 {
	add := func(values ...int) {
		for _, v := range values {
			x = append(x, int16(max(min(v, math.MaxInt16), math.MinInt16)))
		}
	}
	boxes, u := k.l.c.boxes, &k.units[i]
	b, page, count := &boxes[u.at], &k.areas[0], len(k.units)
	add(int(u.words), permille(u.links, u.words), int(u.anchors), int(u.words-u.links), int(u.ends), permille(u.commas, u.words), int(u.bytes)*10/int(max(u.words, 1)),
		permille(u.digits, u.bytes), permille(u.signs, u.bytes), permille(u.ends, u.words), slices.Index(tagNumbers, b.tag), int(u.level))
	title := -1000
	if k.titleAt >= 0 {
		title = i - k.titleAt
	}
	add(i, count-i, permille(int32(i), int32(count)), permille(u.before, page.words), int(page.words), count, permille(page.links, page.words), permille(page.prose, page.words),
		title)
	p := b.parent
	for range 4 {
		if p < 0 {
			add(-1, -1, -1, -1, -1)
			continue
		}
		a := &k.areas[p]
		add(int(a.words), permille(a.links, a.words), int(a.prose), permille(a.kept, a.units), permille(a.prose, page.prose))
		p = boxes[p].parent
	}
	if p = b.parent; p >= 0 {
		add(int(k.areas[p].inner), int(k.areas[p].units))
	} else {
		add(-1, -1)
	}
	score := k.paragraphScore(u)
	add(int(k.areas[u.at].depth), int(score), permille(score, k.maxScore))
	root := &boxes[k.l.at]
	add(bit(u.kept), k.reason(u), int(k.areas[u.at].away), permille(root.plain(), page.words), slices.Index(kindNumbers, k.l.kind), permille(k.areas[k.l.at].links, k.areas[k.l.at].words))
	for _, j := range []int{i - 2, i - 1, i + 1, i + 2} {
		if j < 0 || j >= count {
			add(-1, -1, -1, -1, -1)
			continue
		}
		s := &k.units[j]
		add(int(s.words), permille(s.links, s.words), int(s.level), bit(s.kept), int(s.ends))
	}
	var words, links, prose int32
	for j := max(i-4, 0); j <= min(i+4, count-1); j++ {
		words, links = words+k.units[j].words, links+k.units[j].links
		if k.units[j].ends > 0 {
			prose += k.units[j].words
		}
	}
	add(int(words), permille(links, words), permille(prose, words))
	if u.heading >= 0 {
		h := &k.units[u.heading]
		add(bit(h.announces), int(h.level), i-int(u.heading), int(u.before-h.before), bit(h.kept))
	} else {
		add(-1, -1, -1, -1, -1)
	}
	add(bit(u.announces), int(u.alike.units), int(u.alike.words), permille(u.alike.links, u.alike.words), permille(u.alike.kept, u.alike.units))
	for _, distance := range k.areas[u.at].near {
		add(int(distance))
	}
	return x
}

// reason returns the number of the reason why the rules leave out a unit, or 0 if they keep it.
func (k *classifier) reason(u *unit) int {
	why := k.areas[u.at].why
	if why == "" && (u.at < k.l.at || u.at >= k.l.c.boxes[k.l.at].end) {
		return 12
	}
	return reasonNumber(why)
}

// reasonNumber converts a reason of the rules to a number.
func reasonNumber(reason string) int {
	kind, rest, _ := strings.Cut(reason, " ")
	switch kind {
	case "":
		return 0
	case "heading":
		return 1
	case "class":
		return 2
	case "links":
		if rest != "" {
			return 3
		}
		return 4
	case "comments", "reviews":
		return 5
	case "tag":
		switch rest {
		case "header":
			return 6
		case "aside":
			return 7
		case "form":
			return 8
		}
		return 9
	case "role":
		return 10
	}
	return 11
}

// explain returns a Reason that names up to three features that count most against a unit, with
// their values.
func (k *classifier) explain(i int) string {
	x := k.sample(nil, i)
	by := boxForest.Explain(x)
	var parts []string
	for range 3 {
		at := 0
		for f, v := range by {
			if v < by[at] {
				at = f
			}
		}
		if by[at] >= 0 {
			break
		}
		by[at] = 0
		name, isShare := strings.CutSuffix(features[at], " %")
		value := strconv.Itoa(int(x[at]))
		if isShare {
			value = strconv.Itoa(int(x[at])/10) + " %"
		}
		parts = append(parts, name+" "+value)
	}
	return classified + " (" + strings.Join(parts, ", ") + ")"
}

// classified is the prefix of the Reason of subtrees that the classifier alone leaves out.
const classified = "classifier"
