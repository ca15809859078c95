package jsonio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Reader walks one JSON value of any size. Limits.Value bounds its memory, whatever the size
// of the input.
//
//	r := jsonio.NewReader(body, nil)
//	for name, err := range r.Members() {
//		switch {
//		case err != nil:
//			return err
//		case name == "version":
//			err = r.Decode(&version)
//		case name == "items":
//			for _, err := range r.Elements() {
//				if err != nil {
//					return err
//				}
//				var it item
//				err = r.Decode(&it)
//				...
//			}
//		}
//	}
//
// At each step there is one current value: at first the whole document, then the value of the
// current member or element. Exactly one call consumes it: Members, Elements, Decode, Raw or
// Skip. A loop skips what its body did not consume. After the outermost value, only white
// space may follow.
//
// The walk can continue after two kinds of errors. One is a value that does not fit the type
// of Decode, Members or Elements. The other is a value that is too long for Decode or Raw,
// unless it contains a single string that is too long. After any other error, every call
// returns that error again. A Reader is for one goroutine.
type Reader struct {
	src     *source
	dec     *jsontext.Decoder
	limits  Limits
	waiting bool // there is a current value
	err     error
}

// NewReader returns a Reader over r. limits may be nil.
func NewReader(r io.Reader, limits *Limits) *Reader {
	l := limits.resolve(1 << 30)
	src := newSource(r, l.Size)
	return &Reader{src: src, dec: jsontext.NewDecoder(src), limits: l, waiting: true}
}

// Members walks the current object and returns the name of each member. The object may have at
// most 1,000 members, with names of at most 4,096 bytes.
func (r *Reader) Members() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := r.open('{'); err != nil {
			yield("", err)
			return
		}
		depth := r.dec.StackDepth()
		for {
			name, more, err := r.name()
			if err != nil {
				yield("", err)
				return
			}
			if !more || !yield(name, nil) {
				return
			}
			if err := r.leave(depth); err != nil {
				yield("", err)
				return
			}
		}
	}
}

// Elements walks the current array and returns the index of each element, from 0.
func (r *Reader) Elements() iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		if err := r.open('['); err != nil {
			yield(0, err)
			return
		}
		depth := r.dec.StackDepth()
		for i := 0; ; i++ {
			r.budget()
			switch r.dec.PeekKind() {
			case ']':
				if err := r.token(); err != nil {
					yield(i, err)
				}
				return
			case 0:
				// token returns the error that PeekKind has found.
				yield(i, r.token())
				return
			}
			if i >= r.limits.Count {
				yield(i, r.limit(r.next(), "json-count", "the array has more than %d elements", r.limits.Count))
				return
			}
			r.waiting = true
			if !yield(i, nil) {
				return
			}
			if err := r.leave(depth); err != nil {
				yield(i, err)
				return
			}
		}
	}
}

// Decode reads the current value into v, a pointer.
func (r *Reader) Decode(v any) error {
	data, err := r.value()
	if err != nil {
		return err
	}
	if err = json.Unmarshal(data, v, validated); err != nil {
		err = decodeError(r.start(data), data, err)
	}
	if r.close() != nil {
		return r.err
	}
	return err
}

// Raw returns a copy of the bytes of the current value, which is valid JSON without duplicate
// names. For a value that is too long, it returns an error. With the error, it returns the bytes
// if it has read them; otherwise the value stays current.
func (r *Reader) Raw() (Raw, error) {
	data, err := r.value()
	if err != nil {
		return slices.Clone(data), err
	}
	data = slices.Clone(data)
	if err := r.close(); err != nil {
		return nil, err
	}
	return data, nil
}

// Skip skips the current value, of any size.
func (r *Reader) Skip() error {
	if err := r.take(); err != nil {
		return err
	}
	return r.skip(r.dec.StackDepth())
}

// value returns the bytes of the current value, valid until the next read. If they are
// too long, it may return them with an error.
func (r *Reader) value() ([]byte, error) {
	if err := r.take(); err != nil {
		return nil, err
	}
	r.budget()
	depth := r.dec.StackDepth()
	data, err := r.dec.ReadValue()
	if err != nil && errors.Is(r.src.err, errValue) {
		// The decoder has consumed nothing of the value, so the value can still be skipped.
		r.src.err, r.waiting = nil, true
		return nil, limitError(r.next(), "json-value", "the value is longer than %d bytes", r.limits.Value)
	}
	if err != nil {
		return nil, r.fail(err)
	}
	if len(data) > r.limits.Value {
		return data, limitError(r.start(data), "json-value", "the value is longer than %d bytes", r.limits.Value)
	}
	if i := tooDeep(data, r.limits.Depth-depth); i >= 0 {
		return nil, r.limit(r.start(data).in(data, int64(i), ""), "json-depth", "nesting is deeper than %d levels", r.limits.Depth)
	}
	return data, nil
}

// take checks that there is a current value.
func (r *Reader) take() error {
	if r.err == nil && !r.waiting {
		return errors.New("jsonio: no current value to read")
	}
	r.waiting = false
	return r.err
}

// open consumes the opening bracket of the current value.
func (r *Reader) open(want jsontext.Kind) error {
	if err := r.take(); err != nil {
		return err
	}
	r.budget()
	have := r.dec.PeekKind()
	if have != want && kindNames[have] != "" {
		r.waiting = true
		return formatError(r.next(), "json-type", fmt.Sprintf("want %s, got %s", kindNames[want], kindNames[have]), nil)
	}
	if err := r.token(); err != nil {
		return err
	}
	if r.dec.StackDepth() > r.limits.Depth {
		return r.limit(r.last(), "json-depth", "nesting is deeper than %d levels", r.limits.Depth)
	}
	return nil
}

// name reads the name of the next member, or the end of the object.
func (r *Reader) name() (string, bool, error) {
	r.budget()
	if r.dec.PeekKind() == '}' {
		return "", false, r.token()
	}
	tok, err := r.dec.ReadToken()
	if err != nil {
		return "", false, r.fail(err)
	}
	name := tok.String()
	if err := r.bounded(len(name)); err != nil {
		return "", false, err
	}
	r.waiting = true
	return name, true, nil
}

// bounded checks the limits of the open object, after a name of n bytes.
func (r *Reader) bounded(n int) error {
	if n > maxName {
		return r.limit(r.last(), "json-name", "a name is longer than %d bytes", maxName)
	}
	if _, length := r.dec.StackIndex(r.dec.StackDepth()); length > 2*maxMembers {
		return r.limit(r.last(), "json-members", "an object has more than %d members", maxMembers)
	}
	return nil
}

// leave skips what a loop body has not consumed of its value. depth is the number of brackets that
// were open before the value.
func (r *Reader) leave(depth int) error {
	switch {
	case r.err != nil:
		return r.err
	case r.dec.StackDepth() > depth:
		r.waiting = false
		return r.skip(depth)
	case r.waiting:
		return r.Skip()
	}
	return nil
}

// skip reads tokens, at least one, until no more than depth brackets are open.
func (r *Reader) skip(depth int) error {
	for {
		r.budget()
		before := r.dec.InputOffset()
		tok, err := r.dec.ReadToken()
		if err != nil {
			return r.fail(err)
		}
		open := r.dec.StackDepth()
		if open > r.limits.Depth {
			return r.limit(r.last(), "json-depth", "nesting is deeper than %d levels", r.limits.Depth)
		}
		if open <= depth {
			break
		}
		if kind, length := r.dec.StackIndex(open); kind == '{' && length%2 == 1 {
			n := 0
			if r.dec.InputOffset()-before > maxName { // may be a long name, or white space
				n = len(tok.String())
			}
			if err := r.bounded(n); err != nil {
				return err
			}
		}
	}
	return r.close()
}

// token reads a bracket. After the last one, it checks the end of the input.
func (r *Reader) token() error {
	if _, err := r.dec.ReadToken(); err != nil {
		return r.fail(err)
	}
	r.waiting = false
	return r.close()
}

// close checks that only white space follows the outermost value.
func (r *Reader) close() error {
	if r.dec.StackDepth() > 0 {
		return nil
	}
	r.budget()
	if r.dec.PeekKind() != 0 {
		r.err = formatError(r.next(), "json-trailing", "data follows the value", nil)
	} else if _, err := r.dec.ReadToken(); err != io.EOF {
		return r.fail(err)
	}
	return r.err
}

// budget allows the source to read one more value.
func (r *Reader) budget() {
	r.src.stop = r.dec.InputOffset() + int64(r.limits.Value) + slack
}

// at returns the position of an offset in unread input.
func (r *Reader) at(offset int64) position {
	unread := r.dec.UnreadBuffer()
	if ahead := offset - r.dec.InputOffset(); ahead > 0 {
		unread = unread[min(ahead, int64(len(unread))):]
	}
	return position{line: 1 + r.src.lines - int64(bytes.Count(unread, []byte("\n"))), offset: offset}
}

// start returns the position where data, the value just read, starts.
func (r *Reader) start(data []byte) position {
	at := r.last()
	at.line -= int64(bytes.Count(data, []byte("\n")))
	at.offset -= int64(len(data))
	return at
}

// last returns the position after the last token.
func (r *Reader) last() position {
	at := r.at(r.dec.InputOffset())
	at.pointer = r.dec.StackPointer()
	return at
}

// next returns the position where the next value starts.
func (r *Reader) next() position {
	unread := r.dec.UnreadBuffer()
	gap := len(unread) - len(bytes.TrimLeft(unread, " \t\r\n,:"))
	at := r.at(r.dec.InputOffset() + int64(gap))
	depth := r.dec.StackDepth()
	if depth == 0 {
		return at
	}
	at.pointer = r.dec.StackPointer()
	if kind, n := r.dec.StackIndex(depth); kind == '[' {
		if n > 0 {
			at.pointer = at.pointer.Parent()
		}
		at.pointer += jsontext.Pointer(fmt.Sprintf("/%d", n))
	}
	return at
}

// limit ends the walk with the error for an exceeded limit.
func (r *Reader) limit(at position, code, format string, args ...any) error {
	r.err = limitError(at, code, format, args...)
	return r.err
}

// fail ends the walk with an error of the decoder or the source.
func (r *Reader) fail(err error) error {
	switch e, ok := errors.AsType[*jsontext.SyntacticError](err); {
	case errors.Is(r.src.err, errSize):
		return r.limit(r.next(), "json-size", "the input is longer than %d bytes", r.limits.Size)
	case errors.Is(r.src.err, errValue):
		return r.limit(r.next(), "json-value", "a value is longer than %d bytes", r.limits.Value)
	case r.src.err != nil:
		r.err = fmt.Errorf("read JSON: %w", r.src.err)
	case ok:
		at := r.at(e.ByteOffset)
		at.pointer = e.JSONPointer
		r.err = formatError(at, "", "", syntaxCause(e, r.src.head))
	case err == io.EOF:
		r.err = formatError(r.at(r.dec.InputOffset()), "", "", errCut)
	default:
		r.err = err
	}
	return r.err
}
