package crawl

import (
	"strconv"
	"strings"
)

// traps bounds what endless sites can cost: calendars, facets, session ids in
// paths. Addresses are grouped by their shape, and each group has a budget of
// pages that bring nothing new, neither text nor links to other groups. A
// group whose pages do bring something is never at its end, however many there
// are. What a sitemap names needs no budget.
type traps struct {
	base   string // of the site
	groups map[string]*group
}

// group is what is known of one shape.
type group struct {
	fruit, waste int32
	// seen are the text samples of the pages so far, as bits. It is made once
	// the group has some pages, and is started anew when it is half full, so
	// that it tells texts that come again and again.
	seen []uint64
	set  int
}

const (
	maxGroups  = 10_000 // more shapes share one
	shapeWaste = 200    // pages of one shape that bring nothing new
	pathWaste  = 1000   // pages of one path, whatever its parameters
	fewPages   = 30     // before texts are compared
	seenBits   = 1 << 14
	newEighth  = 8 // a text is new if one of so many of its samples is
)

// shapes gives the groups of an address: that of its shape, and that of its
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
	if g := t.group(shape); g.waste >= shapeWaste+2*g.fruit {
		return false
	}
	if any != "" {
		if g := t.group(any); g.waste >= pathWaste+2*g.fruit {
			return false
		}
	}
	return true
}

// note counts a page of an address.
func (t *traps) note(u string, fruitful bool) {
	shape, any := t.shapes(u)
	t.count(shape, fruitful)
	if any != "" {
		t.count(any, fruitful)
	}
}

func (t *traps) count(name string, fruitful bool) {
	if g := t.group(name); fruitful {
		g.fruit++
	} else {
		g.waste++
	}
}

// novel reports whether a text is new to the group of an address, and
// remembers it.
func (t *traps) novel(u string, s *sketch) bool {
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
	fresh, all := 0, 0
	for i, least := range s.fine {
		if least == 0 {
			continue
		}
		all++
		bit := mix(uint64(i)<<32|uint64(least)) % seenBits
		if g.seen[bit/64]&(1<<(bit%64)) == 0 {
			g.seen[bit/64] |= 1 << (bit % 64)
			g.set++
			fresh++
		}
	}
	return fresh*newEighth > all
}
