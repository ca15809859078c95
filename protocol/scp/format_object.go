package scp

import (
	"math/bits"

	"github.com/millrace/millrace/internal/canon"
)

// object is the schema of a JSON object that is parsed into a T. The parser, the writer and the
// checker use the same schemas.
type object[T any] struct {
	rule    string // checker rule of the members that have none of their own
	says    string // text of that rule
	members []member[T]
	needs   uint32 // bit i is set if members[i] is required
}

// member is a member of an object. Its name is part of key.
type member[T any] struct {
	name  string
	key   string // name as written, with its quotes, the comma and the colon
	needs bool   // whether the member is required
	rule  string // checker rule. If empty, the rule of the object.
	says  string // text of the rule
	read  func(p *parser, to *T)
	text  func(to *T) *string // used in place of read for a string without restrictions
	write func(dst []byte, from *T) []byte
}

// duplicateName is the reason for rejecting an object with two members of the same name.
const duplicateName = "duplicate name"

// form defines how values of one type are read, validated and written.
type form[V any] struct {
	read  func(p *parser, v *V)
	write func(dst []byte, v *V) []byte
}

func objectOf[T any](rule, says string, members ...member[T]) *object[T] {
	o := &object[T]{rule: rule, says: says, members: members}
	for i := range members {
		if members[i].needs {
			o.needs |= 1 << i
		}
	}
	return o
}

// optional returns an optional member. It is not written if it is empty.
func optional[T, V any](name string, f *form[V], at func(*T) *V) member[T] {
	m := member[T]{
		name: name, key: `,"` + name + `":`,
		read:  func(p *parser, to *T) { f.read(p, at(to)) },
		write: func(dst []byte, from *T) []byte { return f.write(dst, at(from)) },
	}
	if any(f) == any(textForm) {
		m.text, _ = any(at).(func(*T) *string)
	}
	return m
}

// required returns a required member.
func required[T, V any](name string, f *form[V], at func(*T) *V) member[T] {
	m := optional(name, f, at)
	m.needs = true
	return m
}

// read returns a member that f validates and that is never written.
func read[T any](name string, f func(p *parser)) member[T] {
	return member[T]{name: name, key: `,"` + name + `":`, read: func(p *parser, _ *T) { f(p) }}
}

// withRule returns the member with a checker rule.
func (m member[T]) withRule(rule, says string) member[T] {
	m.rule, m.says = rule, says
	return m
}

// rules yields the rules of the members that have their own.
func (o *object[T]) rules(yield func(id, sentence string) bool) {
	for i := range o.members {
		if m := &o.members[i]; m.rule != "" && !yield(m.rule, m.says) {
			return
		}
	}
}

// expect checks whether the input continues with a member that may follow in the order of the
// schema, without spaces and escapes. If so, it moves to the value and returns the index of the
// member. Otherwise, it returns -1. Members usually have this order, and comparing names is much
// faster than parsing a name.
func (o *object[T]) expect(p *parser, first bool, next int) int {
	skip := 0 // length of the comma
	if first {
		skip = 1
	}
	data := p.data[p.pos:]
	for i := next; i < len(o.members); i++ {
		m := &o.members[i]
		if key := m.key[skip:]; len(data) >= len(key) && string(data[:len(key)]) == key {
			p.pos += len(key)
			return i
		}
		if m.needs {
			break
		}
	}
	return -1
}

// find returns the index of a member, or -1 if the schema does not define it. It starts at next,
// because members usually have the order of the schema.
func (o *object[T]) find(name []byte, next int) int {
	for i := next; i < len(o.members); i++ {
		if o.members[i].name == string(name) {
			return i
		}
	}
	for i := range o.members[:next] {
		if o.members[i].name == string(name) {
			return i
		}
	}
	return -1
}

// read reads a whole object. If the value is not an object, or lacks a required member, read
// rejects the page.
func (o *object[T]) read(p *parser, to *T) {
	if p.peek() != '{' {
		p.wrong("an object")
		return
	}
	at := p.pos
	p.pos++
	o.finish(p, at, o.rest(p, to, true, 0))
}

// finish rejects the page if the object at position at lacks a required member.
func (o *object[T]) finish(p *parser, at int, seen uint32) {
	if missing := o.missing(seen); !p.failed && missing != nil {
		p.refuse(at, "missing member "+missing[0].name)
	}
}

// missing returns the required members that are not in seen.
func (o *object[T]) missing(seen uint32) (out []*member[T]) {
	for i := range o.members {
		if o.needs&^seen&(1<<i) != 0 {
			out = append(out, &o.members[i])
		}
	}
	return out
}

// rest reads the remaining members of an open object and adds them to seen, which it returns. first
// reports whether no member has been read yet.
func (o *object[T]) rest(p *parser, to *T, first bool, seen uint32) uint32 {
	p.depth++
	rule, next, end := p.rule, bits.TrailingZeros32(^seen), 0
	for {
		i := o.expect(p, first, next)
		if i < 0 {
			name, more := p.member(first)
			if !more {
				break
			}
			i = o.find(name, next)
		}
		first = false
		if i < 0 {
			p.value()
		} else {
			m := &o.members[i]
			next = i + 1
			if p.rule = rule; m.rule != "" {
				p.rule = m.rule
				p.applies(m.rule)
			}
			if seen&(1<<i) != 0 {
				p.refuse(p.pos, duplicateName)
			}
			seen |= 1 << i
			if p.before = end; m.text != nil {
				*m.text(to) = p.str()
			} else {
				m.read(p, to)
			}
		}
		if p.failed {
			return seen
		}
		end = p.pos
	}
	p.rule = rule
	p.depth--
	return seen
}

// write appends an object.
func (o *object[T]) write(dst []byte, from *T) []byte {
	at := len(dst)
	for i := range o.members {
		m := &o.members[i]
		if m.write == nil {
			continue
		}
		start := len(dst)
		dst = append(dst, m.key...)
		value := len(dst)
		if dst = m.write(dst, from); !m.needs && isEmpty(dst[value:]) {
			dst = dst[:start]
		}
	}
	dst[at] = '{' // replaces a comma
	return append(dst, '}')
}

// isEmpty reports whether a JSON value is empty or zero.
func isEmpty(b []byte) bool {
	switch string(b) {
	case "", `""`, "0", "[]", `"0001-01-01T00:00:00Z"`:
		return true
	}
	return false
}

// listOf returns the form of an array of objects.
func listOf[E any](o *object[E]) *form[[]E] {
	return &form[[]E]{
		func(p *parser, v *[]E) { readElements(p, o, v) },
		func(dst []byte, v *[]E) []byte { return appendArray(dst, *v, o.write) },
	}
}

// readElements reads an array of objects, and drops those with an invalid URL. It returns the
// number of all elements and the number of remaining ones. If the value is not an array, all is -1.
func readElements[E any](p *parser, o *object[E], v *[]E) (all, good int) {
	*v = nil
	outer := p.invalidURL
	if !p.array(func() {
		var e E
		all++
		p.invalidURL = false
		if o.read(p, &e); p.invalidURL {
			p.counts.dropped++
			return
		}
		if good++; p.keep {
			*v = append(*v, e)
		}
	}) {
		all = -1
	}
	p.invalidURL = outer
	return all, good
}

func appendArray[E any](dst []byte, list []E, element func([]byte, *E) []byte) []byte {
	dst = append(dst, '[')
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = element(dst, &list[i])
	}
	return append(dst, ']')
}

func appendString(dst []byte, s *string) []byte { return canon.AppendString(dst, *s) }
