package crawl

import (
	"slices"
	"strconv"
	"strings"
)

// traps limits the cost of endless sites, such as calendars, facets, and session IDs in paths. It
// groups addresses by their shape. Each group has a budget of pages without new text or links to
// other groups. Pages with new text or links increase the budget. Facets also have a fixed limit.
// Addresses in sitemaps need no budget.
type traps struct {
	base   string // base of the site
	groups map[string]*group
}

// group contains the counts for one shape.
type group struct {
	fruit, waste int32 // numbers of pages with and without new content
	kinds        int32 // number of parameter sets, if the group is for a path with any parameters
	// seen contains the lines of the previous pages, as a Bloom filter with one hash function. It
	// is created after fewPages pages. It is cleared when it is half full, because it only needs to
	// detect lines that are repeated often.
	seen []uint64
	set  int // number of bits set in seen
}

const (
	maxGroups  = 10_000 // maximum number of groups; all further shapes of one depth share a group
	shapeWaste = 200    // maximum number of pages of one shape without new content
	pathWaste  = 1000   // maximum number of pages of one path, with any parameters, without new content
	fewPages   = 30     // number of pages in a group before texts are compared
	seenBits   = 1 << 14
	newEighth  = 8 // a page is new if more than 1/8 of its lines are new

	// A path with more than manyKinds parameter sets has facets, which combine the same texts into
	// new pages. An address of this path with at least facets parameters has fixed limits:
	// facetPages for each parameter set and facetsAll in total.
	manyKinds  = 12
	facets     = 3
	facetPages = 50
	facetsAll  = 2000
)

// shapes returns the groups of an address: the group of its shape, and the group of its path with
// any parameters ("" if the address has no parameters). The shape consists of the first path
// segment, in which every number is replaced by 0, the depth of the path, and the parameter names.
// For a path of one segment, the name counts only if it is that of a script.
func (t *traps) shapes(u string) (shape, any string) {
	p, query, asks := strings.Cut(strings.TrimPrefix(u, t.base), "?")
	var b strings.Builder
	first, rest, more := strings.Cut(p, "/")
	if more && rest != "" {
		fold(&b, first)
		for range strings.Count(strings.TrimSuffix(rest, "/"), "/") + 1 {
			b.WriteString("/*")
		}
	} else if p != "" {
		// Sites have few scripts, whose names distinguish their pages.
		if strings.Contains(p, ".php") || strings.Contains(p, ".asp") || strings.Contains(p, ".cgi") || strings.Contains(p, ".jsp") {
			b.WriteString(p)
		} else {
			b.WriteString("*")
		}
	}
	if !asks {
		return b.String(), ""
	}
	b.WriteByte('?')
	any = b.String()
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		fold(&b, name)
		b.WriteByte('&')
	}
	return b.String(), any
}

// unrelated reports whether two shapes are unrelated: their paths differ, or both have parameters,
// but none in common.
func unrelated(a, b string) bool {
	p, names, _ := strings.Cut(a, "?")
	q, others, _ := strings.Cut(b, "?")
	if p != q {
		return true
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "&"), "&") {
		if name == "" || others == "" || slices.Contains(strings.Split(others, "&"), name) {
			return false
		}
	}
	return true
}

// fold writes a name, and replaces each sequence of digits with 0.
func fold(b *strings.Builder, s string) {
	digit := false
	for i := range len(s) {
		if d := '0' <= s[i] && s[i] <= '9'; !d {
			b.WriteByte(s[i])
		} else if !digit {
			b.WriteByte('0')
		}
		digit = '0' <= s[i] && s[i] <= '9'
	}
}

func (t *traps) group(name string) *group {
	g := t.groups[name]
	if g == nil && len(t.groups) >= maxGroups {
		name = strconv.Itoa(strings.Count(name, "/"))
		g = t.groups[name]
	}
	if g == nil {
		g = &group{}
		t.groups[name] = g
	}
	return g
}

// admit reports whether the budget of an address allows another fetch.
func (t *traps) admit(shape, any string) bool {
	g := t.group(shape)
	if g.waste >= shapeWaste+2*g.fruit {
		return false
	}
	if any == "" {
		return true
	}
	all := t.group(any)
	if all.kinds > manyKinds && strings.Count(shape, "&") >= facets &&
		(g.waste+g.fruit >= facetPages || all.waste+all.fruit >= facetsAll) {
		return false
	}
	return all.waste < pathWaste+2*all.fruit
}

// note counts a page in the groups of its address.
func (t *traps) note(u string, fruitful bool) {
	shape, any := t.shapes(u)
	g := t.group(shape)
	if any != "" {
		all := t.group(any)
		if g.waste+g.fruit == 0 {
			all.kinds++
		}
		all.count(fruitful)
	}
	g.count(fruitful)
}

func (g *group) count(fruitful bool) {
	if fruitful {
		g.fruit++
	} else {
		g.waste++
	}
}

// isNew reports whether the lines of a page are new to the group of its address, and stores the
// lines.
func (t *traps) isNew(u string, lines []uint64) bool {
	if len(lines) == 0 {
		return false
	}
	shape, any := t.shapes(u)
	if any != "" {
		shape = any // facets combine content of pages with other parameters
	}
	g := t.group(shape)
	if g.seen == nil {
		if g.fruit+g.waste < fewPages {
			return true
		}
		g.seen = make([]uint64, seenBits/64)
	}
	if g.set > seenBits/2 {
		clear(g.seen)
		g.set = 0
	}
	fresh := 0
	for _, h := range lines {
		bit := mix(h) % seenBits
		if g.seen[bit/64]&(1<<(bit%64)) == 0 {
			g.seen[bit/64] |= 1 << (bit % 64)
			g.set++
			fresh++
		}
	}
	return fresh*newEighth > len(lines)
}
