package canon

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// AppendString appends s as a JSON string in the form of RFC 8785, section
// 3.2.2.2. A byte that is not part of valid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	s = ValidUTF8(s)
	dst = slices.Grow(dst, len(s)+2)
	dst = append(dst, '"')
	for {
		i := plain(s)
		dst = append(dst, s[:i]...)
		if i == len(s) {
			return append(dst, '"')
		}
		dst = appendEscape(dst, s[i])
		s = s[i+1:]
	}
}

// plain gives the length of the part of s before the first byte that needs an
// escape: a control character, a quote or a backslash. It looks at eight bytes
// at a time: in each lane of w, the high bit of the three terms says "below
// 0x20", "is a quote" and "is a backslash". A borrow can only mark a lane above
// one that is marked rightly, so that the lowest mark is always true.
func plain(s string) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		quote, slash := w^'"'*ones, w^'\\'*ones
		if marks := ((w-' '*ones)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs; marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

func appendEscape(dst []byte, c byte) []byte {
	const hexDigits = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// AppendNumber appends a number in the form of RFC 8785, section 3.2.2.3, that
// is of ECMAScript: the shortest digits that read back as f, an exponent below
// 1e-6 and from 1e21 on. NaN and the infinities, which JSON cannot say, become
// null.
func AppendNumber(dst []byte, f float64) []byte {
	switch abs := math.Abs(f); {
	case math.IsNaN(f), math.IsInf(f, 0):
		return append(dst, "null"...)
	case f == 0: // minus zero too
		return append(dst, '0')
	case abs >= 1e-6 && abs < 1e21:
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// strconv writes at least two digits of exponent, ECMAScript as few as it can.
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// CompareNames compares two member names in the order of RFC 8785, section
// 3.2.3: by UTF-16 code units. It differs from the order of bytes only where
// a character over U+FFFF meets one from U+E000 on.
func CompareNames(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	if i == n {
		return len(a) - len(b)
	}
	// A lead byte from 0xF0 on starts a surrogate pair, which is 0xD800 to
	// 0xDFFF in UTF-16 and so sorts before 0xEE and 0xEF. Inside a character
	// the bytes that differ have the order of the code points.
	x, y := a[i], b[i]
	if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
		return int(y) - int(x)
	}
	return int(x) - int(y)
}

// Object writes one JSON object in canonical form at the end of a buffer:
//
//	var o canon.Object
//	o.Begin(dst)
//	o.String("canonical_url", page)
//	o.Raw("structured_data", jcs)
//	dst = o.End()
//
// Members are best written in the order of [CompareNames], which costs
// nothing; End sorts them otherwise. Of two members with one name the later
// wins. Names are escaped like strings. The zero value is ready, and one
// Object can write many objects one after the other with no more memory.
type Object struct {
	dst    []byte
	start  int // of '{' in dst
	spans  []span
	sorted bool
}

// span is one member: its bytes in dst without the comma before it.
type span struct {
	name     string
	from, to int
}

// Begin starts an object at the end of dst, which belongs to the Object until
// End.
func (o *Object) Begin(dst []byte) {
	o.start, o.dst = len(dst), dst
	o.dst = append(o.dst, '{')
	o.spans = o.spans[:0]
	o.sorted = true
}

// String writes a member that is a string.
func (o *Object) String(name, value string) {
	o.begin(name)
	o.dst = AppendString(o.dst, value)
	o.end()
}

// Int writes a member that is a whole number. Over 2^53 it is rounded to a
// double, as RFC 8785 has it.
func (o *Object) Int(name string, value int64) {
	o.begin(name)
	const exact = 1 << 53
	if -exact <= value && value <= exact {
		o.dst = strconv.AppendInt(o.dst, value, 10)
	} else {
		o.dst = AppendNumber(o.dst, float64(value))
	}
	o.end()
}

// Bool writes a member that is true or false.
func (o *Object) Bool(name string, value bool) {
	o.begin(name)
	o.dst = strconv.AppendBool(o.dst, value)
	o.end()
}

// Strings writes a member that is an array of strings.
func (o *Object) Strings(name string, values []string) {
	o.begin(name)
	o.dst = append(o.dst, '[')
	for i, v := range values {
		if i > 0 {
			o.dst = append(o.dst, ',')
		}
		o.dst = AppendString(o.dst, v)
	}
	o.dst = append(o.dst, ']')
	o.end()
}

// Raw writes a member from a value in canonical form, such as [JCS] gives.
func (o *Object) Raw(name string, value []byte) {
	o.begin(name)
	o.dst = append(o.dst, value...)
	o.end()
}

// Append writes a member whose value the function appends, in canonical form,
// to the buffer that it is given.
func (o *Object) Append(name string, value func(dst []byte) []byte) {
	o.begin(name)
	o.dst = value(o.dst)
	o.end()
}

// End closes the object and gives the buffer back.
func (o *Object) End() []byte {
	if !o.sorted {
		o.sort()
	}
	dst := o.dst
	o.dst = nil
	return append(dst, '}')
}

func (o *Object) begin(name string) {
	name = ValidUTF8(name)
	if n := len(o.spans); n > 0 {
		o.dst = append(o.dst, ',')
		if o.sorted && CompareNames(o.spans[n-1].name, name) >= 0 {
			o.sorted = false
		}
	} else if o.spans == nil {
		o.spans = make([]span, 0, 12)
	}
	o.spans = append(o.spans, span{name: name, from: len(o.dst)})
	o.dst = AppendString(o.dst, name)
	o.dst = append(o.dst, ':')
}

func (o *Object) end() { o.spans[len(o.spans)-1].to = len(o.dst) }

func (o *Object) sort() {
	written := bytes.Clone(o.dst[o.start:])
	slices.SortStableFunc(o.spans, func(a, b span) int { return CompareNames(a.name, b.name) })
	o.dst = o.dst[:o.start+1]
	for i, s := range o.spans {
		if i+1 < len(o.spans) && o.spans[i+1].name == s.name {
			continue
		}
		if len(o.dst) > o.start+1 {
			o.dst = append(o.dst, ',')
		}
		o.dst = append(o.dst, written[s.from-o.start:s.to-o.start]...)
	}
}
