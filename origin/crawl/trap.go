package crawl

import (
	"slices"
	"strconv"
	"strings"
)

// traps limits the cost of endless sites: calendars, facets, session IDs in paths. It groups
// addresses by their shape. Each group has a budget of pages without new text or links to
// other groups. Pages with new text or links increase the budget. Facets also have a fixed
// limit. Addresses in sitemaps need no budget.
type traps struct {
	base   string // base of the site
	groups map[string]*group
}

// group holds the counts of one shape.
type group struct {
	fruit, waste int32
	kinds        int32 // number of sets of parameters, if the shape is a path with any parameters
	// seen holds the lines of the pages so far, as a Bloom filter with one hash. It is created
	// after fewPages pages, and cleared when it is half full, because it only needs to find
	// lines that are repeated often.
	seen []uint64
	set  int
}

const (
	maxGroups  = 10_000 // further shapes share a group
	shapeWaste = 200    // pages of one shape without new content
	pathWaste  = 1000   // pages of one path without new content, with any parameters
	fewPages   = 30     // pages of a group before texts are compared
	seenBits   = 1 << 14
	newEighth  = 8 // a page is new if more than one of this many lines is

	// A path with more than manyKinds sets of parameters has facets, which combine old texts
	// into new pages. If an address of it has at least facets parameters, the limits are
	// facetPages for each set and facetsAll in total.
	manyKinds  = 12
	facets     = 3
	facetPages = 50
	facetsAll  = 2000
)

// shapes returns the groups of an address: that of its shape, and that of its path with any
// parameters ("" if it has none). The shape contains the first path segment, with every number
// as 0, and the depth of the path.
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
		// A site has few scripts, and their names distinguish pages.
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

// apart reports whether two shapes have nothing in common: their paths differ, or they share
// no parameter.
func apart(a, b string) bool {
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

// fold writes a name with every run of digits as 0.
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

// novel reports whether the lines of a page are new to the group of its address, and stores
// them.
func (t *traps) novel(u string, lines []uint64) bool {
	if len(lines) == 0 {
		return false
	}
	shape, any := t.shapes(u)
	if any != "" {
		shape = any // facets mix the content of pages with other parameters
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
