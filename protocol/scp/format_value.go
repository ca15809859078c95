package scp

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
)

// isLanguage reports whether s matches ^[a-z]{2,3}(-[0-9A-Za-z]+)*$. The pattern of the schema is
// equivalent, because its last part matches everything that its optional parts match.
func isLanguage[T string | []byte](s T) bool {
	i := 0
	for i < len(s) && 'a' <= s[i] && s[i] <= 'z' {
		i++
	}
	if i != 2 && i != 3 {
		return false
	}
	for i < len(s) {
		if s[i] != '-' {
			return false
		}
		from := i + 1
		for i = from; i < len(s) && isAlnum(s[i]); i++ {
		}
		if i == from {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// isName reports whether s matches the pattern of id and section: ^[a-zA-Z0-9-_]+$.
func isName[T string | []byte](s T) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && s[i] != '-' && s[i] != '_' {
			return false
		}
	}
	return len(s) > 0
}

// isDuration reports whether s matches the pattern of duration:
// ^PT(?=.*[HMS])(\d+H)?(\d+M)?(\d+(\.\d+)?S)?$.
func isDuration[T string | []byte](s T) bool {
	if len(s) < 4 || s[0] != 'P' || s[1] != 'T' {
		return false
	}
	i := 2
	for _, unit := range []byte("HMS") {
		j := digits(s, i)
		if j > i && unit == 'S' && j < len(s) && s[j] == '.' {
			k := digits(s, j+1)
			if k == j+1 {
				return false
			}
			j = k
		}
		if j > i && j < len(s) && s[j] == unit {
			i = j + 1
		}
	}
	return i == len(s) && i > 2
}

// isVersion reports whether s is MAJOR.MINOR.
func isVersion(s string) bool {
	major, minor, _ := strings.Cut(s, ".")
	return isDigits(major) && isDigits(minor)
}

func isDigits(s string) bool { return s != "" && digits(s, 0) == len(s) }

// digits returns the end of the digits that start at i.
func digits[T string | []byte](s T, i int) int {
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return i
}

// isURI reports whether s is not empty, and contains only characters and valid escapes of RFC 3986.
func isURI[T string | []byte](s T) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c <= ' ' || c >= 0x7F:
			return false
		case isAlnum(c):
		case c == '%':
			if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return false
			}
		case c == '"' || c == '<' || c == '>' || c == '\\' || c == '^' || c == '`' || c == '{' || c == '|' || c == '}':
			return false
		}
	}
	return len(s) > 0
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// isWeb reports whether s starts with http:// or https:// and a host.
func isWeb[T string | []byte](s T) bool {
	n := schemeLen(s)
	return n > 0 && len(s) > n && s[n] != '/' && s[n] != '?' && s[n] != '#' && s[n] != ':' && s[n] != '@'
}

// schemeLen returns the length of "http://" or "https://" in any case, else 0.
func schemeLen[T string | []byte](s T) int {
	const scheme = "https"
	i := 0
	for i < len(scheme) && i < len(s) && s[i]|0x20 == scheme[i] {
		i++
	}
	if i < 4 || len(s) < i+3 || s[i] != ':' || s[i+1] != '/' || s[i+2] != '/' {
		return 0
	}
	return i + 3
}

// parseTime parses a date-time of RFC 3339. A leap second becomes the second before it.
func parseTime(s []byte) (t time.Time, ok bool) {
	leap := len(s) > 19 && string(s[17:19]) == "60"
	if leap || bytes.ContainsAny(s, "tz") {
		s = bytes.ToUpper(s)
	}
	if leap {
		copy(s[17:], "59")
	}
	// The time package accepts one-digit hours and fractions after a comma.
	if len(s) < 20 || s[12] == ':' || s[19] == ',' || t.UnmarshalText(s) != nil {
		return time.Time{}, false
	}
	t = t.UTC()
	return t, !leap || t.Hour() == 23 && t.Minute() == 59
}

// isInteger reports whether a JSON number is an integer, such as "1", "1.0" or "10e-1".
func isInteger(b []byte) bool {
	mantissa, exp, _ := bytes.Cut(bytes.ToLower(bytes.TrimPrefix(b, []byte("-"))), []byte("e"))
	digits, fraction, _ := bytes.Cut(mantissa, []byte("."))
	all := slices.Concat(digits, fraction)
	zeros := len(all) - len(bytes.TrimRight(all, "0"))
	if zeros == len(all) {
		return true // zero
	}
	e, err := strconv.Atoi(string(exp))
	if len(exp) > 0 && err != nil { // exponent out of range
		return exp[0] != '-'
	}
	return len(fraction)-e <= zeros
}
