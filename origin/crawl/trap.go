package crawl

import (
	"slices"
	"strconv"
	"strings"
)

// traps bounds what endless sites can cost: calendars, facets, session ids in
// paths. Addresses are grouped by their shape, and each group has a budget of
// pages that bring nothing new, neither text nor links to other groups. A
// group whose pages do bring something is never at its end, however many there
// are; only facets are. What a sitemap names needs no budget.
type traps struct {
	base   string // of the site
	groups map[string]*group
}

// group is what is known of one shape.
type group struct {
	fruit, waste int32
	kinds        int32 // of a path with any parameters: the sets of them
	// seen are the lines of the pages so far, as a Bloom filter of one hash.
	// It is made once the group has some pages, and cleared when it is half
	// full: it finds lines that repeat often.
	seen []uint64
	set  int
}

const (
	maxGroups  = 10_000 // more shapes share one
	shapeWaste = 200    // pages of one shape that bring nothing new
	pathWaste  = 1000   // pages of one path, whatever its parameters
	fewPages   = 30     // before texts are compared
	seenBits   = 1 << 14
	newEighth  = 8 // a page is new if more than one of so many of its lines is

	// A path that is asked with so many sets of parameters has facets, which
	// make new pages of old texts. With several parameters at once it is asked
	// so many times for each set, and so many in all.
	manyKinds  = 12
	facets     = 3
	facetPages = 50
	facetsAll  = 2000
)

// shapes returns the groups of an address: that of its shape, and that of its
// path with any parameters ("" if it has none). The first of several names of
// the path counts, the others do not, and digits are all the same.
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
		// The names of scripts are few and mean something.
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

// apart reports whether two shapes have nothing in common: their paths differ,
// or no parameter of one is one of the other.
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

// fold writes a name with every run of digits as one 0.
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

// admit reports whether an address may still be asked for.
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

// note counts a page of an address.
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

// novel reports whether the lines of a page are new to the group of its
// address, and remembers them.
func (t *traps) novel(u string, lines []uint64) bool {
	if len(lines) == 0 {
		return false
	}
	shape, any := t.shapes(u)
	if any != "" {
		shape = any // facets mix what pages of other parameters say
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
