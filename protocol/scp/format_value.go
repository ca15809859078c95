package scp

import (
	"time"
)

// isLanguage is the pattern of language, which is this, since its optional
// parts are cases of its last: ^[a-z]{2,3}(-[0-9A-Za-z]+)*$.
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

// isName is the pattern of id and section: ^[a-zA-Z0-9-_]+$.
func isName(s string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && s[i] != '-' && s[i] != '_' {
			return false
		}
	}
	return s != ""
}

// isDuration is the pattern of duration:
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

// digits gives where the digits that start at i end.
func digits[T string | []byte](s T, i int) int {
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return i
}

// isURI reports whether s has only characters of RFC 3986, and escapes that are
// some.
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

// isWeb reports whether s starts like a URL of http or https, with a host.
func isWeb[T string | []byte](s T) bool {
	n := schemeLen(s)
	return n > 0 && len(s) > n && s[n] != '/' && s[n] != '?' && s[n] != '#' && s[n] != ':' && s[n] != '@'
}

// schemeLen gives the length of "http://" or "https://" in any case, else 0.
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

// parseTime reads a date-time of RFC 3339. A leap second becomes the last one
// before it.
func parseTime[T string | []byte](s T) (t time.Time, ok bool) {
	if len(s) < len("2006-01-02T15:04:05Z") || s[4] != '-' || s[7] != '-' || s[10]|0x20 != 't' || s[13] != ':' || s[16] != ':' {
		return t, false
	}
	year, month, day := 100*two(s, 0)+two(s, 2), two(s, 5), two(s, 8)
	hour, minute, sec := two(s, 11), two(s, 14), two(s, 17)
	if two(s, 0) < 0 || two(s, 2) < 0 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) ||
		hour < 0 || hour > 23 || minute < 0 || minute > 59 || sec < 0 || sec > 60 {
		return t, false
	}
	i, nano := 19, 0
	if s[i] == '.' {
		end := digits(s, i+1)
		if end == i+1 {
			return t, false
		}
		for scale := int(1e8); i+1 < end; i++ {
			nano += scale * int(s[i+1]-'0')
			scale /= 10
		}
		i = end
	}
	offset := 0
	switch {
	case i < len(s) && s[i]|0x20 == 'z' && i+1 == len(s):
	case i+6 == len(s) && (s[i] == '+' || s[i] == '-') && s[i+3] == ':':
		h, m := two(s, i+1), two(s, i+4)
		if h < 0 || h > 23 || m < 0 || m > 59 {
			return t, false
		}
		offset = 60*h + m
		if s[i] == '-' {
			offset = -offset
		}
	default:
		return t, false
	}
	if sec == 60 {
		if of := (60*hour + minute - offset + 2*24*60) % (24 * 60); of != 24*60-1 {
			return t, false
		}
		sec = 59
	}
	t = time.Date(year, time.Month(month), day, hour, minute, sec, nano, time.UTC)
	return t.Add(-time.Duration(offset) * time.Minute), true
}

// two reads two digits, -1 if they are none.
func two[T string | []byte](s T, i int) int {
	a, b := s[i]-'0', s[i+1]-'0'
	if a > 9 || b > 9 {
		return -1
	}
	return int(10*a + b)
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}
