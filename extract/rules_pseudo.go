package extract

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/andybalholm/cascadia"
)

// pseudo parses a pseudo-class with its argument.
func (p *selectorParser) pseudo() (test, error) {
	start := p.at
	p.at++
	from := p.at
	p.name()
	name, inner := strings.ToLower(p.text[from:p.at]), ""
	called := p.peek() == '('
	if called {
		from = p.at + 1
		if err := p.bracketed(')'); err != nil {
			return nil, err
		}
		inner = p.text[from : p.at-1]
	}
	switch name {
	case "not", "is", "where":
		if called {
			return p.anyOf(inner, name == "not")
		}
	case "has":
		if called {
			return p.having(inner)
		}
	case "first-child", "last-child", "only-child", "first-of-type", "last-of-type", "only-of-type",
		"nth-child", "nth-last-child", "nth-of-type", "nth-last-of-type":
		return p.nth(name, inner)
	case "empty", "root", "link", "checked", "containsown", "matchesown":
		// These pseudo-classes depend only on the element or its children.
		sel, err := cascadia.Parse(p.text[start:p.at])
		if err != nil {
			return nil, err
		}
		return func(e *place) bool { return sel.Match(e.n) }, nil
	}
	return nil, fmt.Errorf("%s is not supported", p.text[start:p.at])
}

// compounds parses a list of compounds, such as those of :not.
func (p *selectorParser) compounds(inner string, each func(sub *selectorParser) error) error {
	sub := &selectorParser{s: p.s, text: inner}
	for {
		sub.space()
		if err := each(sub); err != nil {
			return err
		}
		sub.space()
		switch sub.peek() {
		case 0:
			return nil
		case ',':
			sub.at++
		default:
			return fmt.Errorf("%q must select one element", inner)
		}
	}
}

// anyOf parses the argument of :is and :where, or of :not if not is set.
func (p *selectorParser) anyOf(inner string, not bool) (test, error) {
	var list [][]test
	err := p.compounds(inner, func(sub *selectorParser) error {
		tests, err := sub.tests()
		list = append(list, tests)
		return err
	})
	return func(e *place) bool {
		for _, tests := range list {
			if e.passes(tests) {
				return !not
			}
		}
		return not
	}, err
}

// having parses the argument of :has. Each alternative selects a descendant, or a child if it starts
// with >.
func (p *selectorParser) having(inner string) (test, error) {
	var list []int
	err := p.compounds(inner, func(sub *selectorParser) error {
		child := sub.peek() == '>'
		if child {
			sub.at++
			sub.space()
		}
		tests, err := sub.tests()
		if err == nil && len(p.s.has) == maxHas {
			err = errors.New("too many :has")
		}
		list = append(list, len(p.s.has))
		p.s.has = append(p.s.has, hasTest{tests, child})
		return err
	})
	return func(e *place) bool {
		for _, i := range list {
			if e.found[i][e.n] {
				return true
			}
		}
		return false
	}, err
}

// nth parses a pseudo-class for the position among siblings.
func (p *selectorParser) nth(name, inner string) (test, error) {
	p.s.ordinal = true
	name, ofType := strings.CutSuffix(name, "of-type")
	p.s.named = p.s.named || ofType
	name = strings.TrimSuffix(strings.TrimSuffix(name, "child"), "-")
	a, b := 0, 1
	if strings.HasPrefix(name, "nth") {
		var err error
		if a, b, err = parseNth(inner); err != nil {
			return nil, err
		}
	}
	last := name == "last" || name == "nth-last"
	return func(e *place) bool {
		i, of := e.index, e.of
		if ofType {
			i, of = e.same, e.ofTag
		}
		if name == "only" {
			return of == 1
		}
		if last {
			i = of - i + 1
		}
		if i -= b; a == 0 {
			return i == 0
		}
		return i%a == 0 && i/a >= 0
	}, nil
}

// parseNth parses a position among siblings: an+b, odd or even.
func parseNth(s string) (a, b int, err error) {
	s = strings.ToLower(strings.Join(strings.Fields(s), ""))
	switch s {
	case "odd":
		return 2, 1, nil
	case "even":
		return 2, 0, nil
	}
	step, rest, ok := strings.Cut(s, "n")
	if !ok {
		step, rest = "0", s
	}
	switch step {
	case "", "+":
		step = "1"
	case "-":
		step = "-1"
	}
	if a, err = strconv.Atoi(step); err == nil && (rest != "" || !ok) {
		b, err = strconv.Atoi(rest)
	}
	if err != nil || max(a, -a, b, -b) > 1_000_000 {
		return 0, 0, fmt.Errorf("%q is not a position among siblings", s)
	}
	return a, b, nil
}
