package extract

import (
	"errors"
	"fmt"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// Limits of all selectors of a site together. They limit the time per page.
const (
	maxSelector  = 1000 // maximum number of bytes of a selector
	maxCompounds = 4096 // maximum number of compounds
	maxJoins     = 256  // maximum number of compounds that are followed by another compound
	maxHas       = 8    // maximum number of alternatives in :has
)

// selection matches many selectors in one pass over a document, in linear time. Whether an element
// matches depends only on the element, its position, and the matches of its parent and of its
// previous sibling. Only pseudo-classes for which this is true are supported.
type selection struct {
	compounds []compound
	joins     int
	has       []hasTest
	ordinal   bool // some test needs the position of an element among its siblings
	named     bool // some test needs the position among the siblings with the same name
}

// compound is one part of a selector, such as the li.x in "ul > li.x".
type compound struct {
	tests []test
	join  byte // combinator before the compound: ' ', '>', '+' or '~'. If zero, this is the first compound.
	bit   int  // index in a joinSet; -1 = no compound follows
	rule  int  // rule that the compound completes, if no compound follows
}

// test reports whether an element satisfies one simple selector.
type test func(*place) bool

// place is an element with its position among its siblings. Positions start at 1.
type place struct {
	n           *html.Node
	index, of   int
	same, ofTag int // position, and number of siblings, among those with the same name
	found       []map[*html.Node]bool
}

// joinSet is the set of matched compounds that are followed by another compound.
type joinSet [maxJoins / 64]uint64

func (s *joinSet) add(bit int)      { s[bit/64] |= 1 << (bit % 64) }
func (s *joinSet) has(bit int) bool { return s[bit/64]&(1<<(bit%64)) != 0 }

func (s *joinSet) union(o *joinSet) {
	for i := range s {
		s[i] |= o[i]
	}
}

// hasTest is one alternative of :has.
type hasTest struct {
	tests []test
	child bool // the match must be a child, not any descendant
}

// add parses a group of selectors. An element that matches one of them matches the rule.
func (s *selection) add(text string, rule int) error {
	if len(text) > maxSelector {
		return fmt.Errorf("the selector is longer than %d bytes", maxSelector)
	}
	p := &selectorParser{s: s, text: text}
	for {
		if err := p.complex(rule); err != nil {
			return err
		}
		if p.at == len(p.text) {
			return nil
		}
		p.at++ // skip the comma
	}
}

func (s *selection) addCompound(st compound) error {
	if len(s.compounds) == maxCompounds || s.joins > maxJoins {
		return errors.New("too many selectors")
	}
	s.compounds = append(s.compounds, st)
	return nil
}

// selectorParser parses one selector. It passes simple selectors to cascadia.
type selectorParser struct {
	s    *selection
	text string
	at   int
}

func (p *selectorParser) space() bool {
	from := p.at
	for p.at < len(p.text) && isSpace(p.text[p.at]) {
		p.at++
	}
	return p.at > from
}

// peek returns the next byte, or 0 at the end.
func (p *selectorParser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// complex parses compounds up to a comma or the end.
func (p *selectorParser) complex(rule int) error {
	p.space()
	st := compound{bit: -1, rule: rule}
	for {
		tests, err := p.tests()
		if err != nil {
			return err
		}
		st.tests = tests
		spaced := p.space()
		c := p.peek()
		join := byte(' ')
		switch {
		case c == 0 || c == ',':
			if c == ',' && p.at == len(p.text)-1 {
				return errors.New("the selector ends with a comma")
			}
			return p.s.addCompound(st)
		case c == '>' || c == '+' || c == '~':
			join = c
			p.at++
			p.space()
		case !spaced:
			return fmt.Errorf("unexpected %q", p.text[p.at:])
		}
		st.bit = p.s.joins
		p.s.joins++
		if err := p.s.addCompound(st); err != nil {
			return err
		}
		st = compound{join: join, bit: -1, rule: rule}
	}
}

// tests parses the simple selectors of one compound.
func (p *selectorParser) tests() (tests []test, err error) {
	from := p.at
	for p.at < len(p.text) {
		start := p.at
		switch c := p.peek(); {
		case c == '*' && p.at == from:
			p.at++
			continue
		case c == '.' || c == '#':
			p.at++
			p.name()
		case c == '[':
			if err := p.bracketed(']'); err != nil {
				return nil, err
			}
		case c == ':':
			t, err := p.pseudo()
			if err != nil {
				return nil, err
			}
			tests = append(tests, t)
			continue
		case isNameByte(c) && p.at == from:
			p.name()
		default:
			if p.at == from {
				return nil, fmt.Errorf("unexpected %q", p.text[p.at:])
			}
			return tests, nil
		}
		sel, err := cascadia.Parse(p.text[start:p.at])
		if err != nil {
			return nil, err
		}
		tests = append(tests, func(e *place) bool { return sel.Match(e.n) })
	}
	if p.at == from {
		return nil, errors.New("the selector is empty")
	}
	return tests, nil
}

func isNameByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '\\' || c >= 0x80
}

// name advances past a name, which may contain escapes.
func (p *selectorParser) name() {
	for p.at < len(p.text) && isNameByte(p.text[p.at]) {
		if p.text[p.at] == '\\' {
			if p.at++; p.at < len(p.text) && isHex(p.text[p.at]) {
				for i := 0; i < 6 && p.at < len(p.text) && isHex(p.text[p.at]); i++ {
					p.at++
				}
				if p.at < len(p.text) && isSpace(p.text[p.at]) {
					p.at++
				}
				continue
			}
		}
		p.at = min(p.at+1, len(p.text))
	}
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// bracketed advances past the bracket that closes the current one.
func (p *selectorParser) bracketed(end byte) error {
	quote := byte(0)
	for depth, open := 0, p.text[p.at]; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '\\':
			p.at++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == open:
			depth++
		case c == end:
			if depth--; depth == 0 {
				p.at++
				return nil
			}
		}
	}
	p.at = len(p.text)
	return fmt.Errorf("missing %q", string(end))
}

// walk tests the elements below n in document order. It calls visit for each with the first rule
// that the element matches, or -1. visit reports whether to continue inside the element.
func (s *selection) walk(n *html.Node, visit func(n *html.Node, rule int) bool) {
	w := selectionWalk{selection: s, visit: visit}
	w.at.found = make([]map[*html.Node]bool, len(s.has))
	for i := range s.has { // nested :has tests come first
		w.at.found[i] = map[*html.Node]bool{}
		w.mark(n, i)
	}
	var none joinSet
	w.children(n, &none, &none)
}

type selectionWalk struct {
	*selection
	visit func(*html.Node, int) bool
	at    place // the element under test
}

// siblings counts the elements among the children of one node.
type siblings struct {
	at, of int
	names  map[string]*[2]int // position and count, by name
}

func (s *selection) siblings(n *html.Node) (c siblings) {
	if !s.ordinal {
		return c
	}
	if s.named {
		c.names = map[string]*[2]int{}
	}
	for e := range children(n) {
		c.of++
		if s.named {
			if c.names[e.Data] == nil {
				c.names[e.Data] = &[2]int{}
			}
			c.names[e.Data][1]++
		}
	}
	return c
}

// enter makes n the element under test.
func (w *selectionWalk) enter(n *html.Node, s *siblings) {
	s.at++
	w.at.n, w.at.index, w.at.of = n, s.at, s.of
	if w.named {
		of := s.names[n.Data]
		of[0]++
		w.at.same, w.at.ofTag = of[0], of[1]
	}
}

// mark records the elements that satisfy the :has test i.
func (w *selectionWalk) mark(n *html.Node, i int) {
	h := &w.has[i]
	s := w.siblings(n)
	for e := n.FirstChild; e != nil; e = e.NextSibling {
		if e.Type != html.ElementNode {
			continue
		}
		if w.enter(e, &s); w.at.passes(h.tests) {
			found := w.at.found[i]
			for p := n; p != nil && !found[p]; p = p.Parent {
				if found[p] = true; h.child {
					break
				}
			}
		}
		w.mark(e, i)
	}
}

func (e *place) passes(tests []test) bool {
	for _, t := range tests {
		if !t(e) {
			return false
		}
	}
	return true
}

// relatives contains the matches of the relatives of an element.
type relatives struct {
	above, own   *joinSet // matches of the ancestors of an element, and of its parent
	last, before joinSet  // matches of the previous sibling, and of all earlier siblings
	self         joinSet  // matches of the element itself
}

// children tests the children of n. above contains the matches of their ancestors including n; own
// contains the matches of n.
func (w *selectionWalk) children(n *html.Node, above, own *joinSet) {
	r := relatives{above: above, own: own}
	s := w.siblings(n)
	for e := n.FirstChild; e != nil; e = e.NextSibling {
		if e.Type != html.ElementNode {
			continue
		}
		w.enter(e, &s)
		r.self = joinSet{}
		rule := w.tryAll(&r)
		if w.visit(e, rule) {
			inner := *above
			inner.union(&r.self)
			self := r.self
			w.children(e, &inner, &self)
		}
		r.before.union(&r.self)
		r.last = r.self
	}
}

// tryAll tests all compounds. It returns the first rule that a compound completes, or -1.
func (w *selectionWalk) tryAll(r *relatives) int {
	rule := -1
	for i := range w.compounds {
		c := &w.compounds[i]
		if c.bit < 0 && rule >= 0 && rule <= c.rule {
			continue
		}
		joined := c.join == 0
		switch c.join {
		case ' ':
			joined = r.above.has(w.compounds[i-1].bit)
		case '>':
			joined = r.own.has(w.compounds[i-1].bit)
		case '+':
			joined = r.last.has(w.compounds[i-1].bit)
		case '~':
			joined = r.before.has(w.compounds[i-1].bit)
		}
		switch {
		case !joined || !w.at.passes(c.tests):
		case c.bit >= 0:
			r.self.add(c.bit)
		default:
			rule = c.rule
		}
	}
	return rule
}
