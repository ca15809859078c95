package canon

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// AppendMember appends a member of an object, with a string as its value. name must not need
// escapes.
func AppendMember(dst []byte, name, value string) []byte {
	dst = append(append(append(dst, '"'), name...), '"', ':')
	return AppendString(dst, value)
}

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

// plain returns the index of the first byte of s that needs an escape, which is a control
// character, a quote or a backslash. If there is no such byte, it returns len(s). It examines eight
// bytes at a time: in each lane of w, the high bit of the three terms means "below 0x20", "is a
// quote" and "is a backslash". A borrow can only mark a lane above a correctly marked one, so the
// lowest mark is always correct.
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

// AppendNumber appends a number in the form of RFC 8785, section 3.2.2.3, as ECMAScript does: the
// shortest digits that read back as f, with an exponent below 1e-6 and from 1e21 on. It writes null
// for NaN and the infinities, which JSON lacks.
func AppendNumber(dst []byte, f float64) []byte {
	switch abs := math.Abs(f); {
	case math.IsNaN(f), math.IsInf(f, 0):
		return append(dst, "null"...)
	case f == 0: // also minus zero
		return append(dst, '0')
	case abs >= 1e-6 && abs < 1e21:
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// strconv writes at least two digits of exponent, ECMAScript as few as possible.
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// CompareNames compares two member names in the order of RFC 8785, section 3.2.3: by UTF-16 code
// units. This order differs from byte order only if one character is above U+FFFF and the other is
// from U+E000 to U+FFFF.
func CompareNames(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	if i == n {
		return len(a) - len(b)
	}
	// A lead byte from 0xF0 on starts a surrogate pair, which is 0xD800 to 0xDFFF in UTF-16
	// and so sorts before 0xEE and 0xEF. Otherwise, the first bytes that differ have the order of
	// the code points.
	x, y := a[i], b[i]
	if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
		return int(y) - int(x)
	}
	return int(x) - int(y)
}
