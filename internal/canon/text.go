package canon

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// Normalize returns the canonical text of TCT draft-01, section 1.6.4: NFKC, full case
// folding, no control characters except tab, line feed and carriage return, each run of
// white space as one space, none at the ends. U+00A0 counts as white space, because
// NFKC makes it a plain space. A byte that is not UTF-8 counts as U+FFFD.
//
// The steps run once, in the order of the draft. For a few characters (such as U+0345)
// the result is therefore not in NFKC, and a second call would change it.
func Normalize(s string) string {
	if isASCII(s) {
		return collapse(s, true)
	}
	return collapse(fold(norm.NFKC.String(ValidUTF8(s))), false)
}

// NormalizeLower returns the normalized text of TCT draft-00, section 4.1: full lower-casing,
// independent of the language; each run of Unicode's White_Space as one space, none at the ends;
// U+201C and U+201D as ", U+2018 and U+2019 as '. A byte that is not UTF-8 counts as U+FFFD.
func NormalizeLower(s string) string {
	if strings.Contains(s, "\u0130") || strings.Contains(s, "\u03a3") { // İ becomes two characters; the lower case of Σ depends on the next character
		s = cases.Lower(language.Und).String(ValidUTF8(s))
	}
	b := make([]byte, 0, len(s)+len(s)/16)
	space := false
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			i++
			switch {
			case c == ' ' || '\t' <= c && c <= '\r':
				space = true
				continue
			case 'A' <= c && c <= 'Z':
				c += 'a' - 'A'
			}
			if space && len(b) > 0 {
				b = append(b, ' ')
			}
			space = false
			b = append(b, c)
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case unicode.IsSpace(r):
			space = true
			continue
		case r == 0x201C || r == 0x201D:
			r = '"'
		case r == 0x2018 || r == 0x2019:
			r = '\''
		default:
			r = unicode.ToLower(r)
		}
		if space && len(b) > 0 {
			b = append(b, ' ')
		}
		space = false
		b = utf8.AppendRune(b, r)
	}
	return string(b)
}

// fold does full case folding (CaseFolding.txt, statuses C and F), independent of the
// language. The library folds the Cherokee letters U+13A0 to U+13F5 to lower case, but Unicode
// folds lower case to these letters, so they bypass the library.
func fold(s string) string {
	caser := cases.Fold()
	i := strings.IndexFunc(s, isUpperCherokee)
	if i < 0 {
		return caser.String(s)
	}
	var b strings.Builder
	b.Grow(len(s))
	for i >= 0 {
		b.WriteString(caser.String(s[:i]))
		s = s[i:]
		end := strings.IndexFunc(s, func(r rune) bool { return !isUpperCherokee(r) })
		if end < 0 {
			end = len(s)
		}
		b.WriteString(s[:end])
		s = s[end:]
		i = strings.IndexFunc(s, isUpperCherokee)
	}
	b.WriteString(caser.String(s))
	return b.String()
}

func isUpperCherokee(r rune) bool { return 0x13A0 <= r && r <= 0x13F5 }

// collapse drops control characters, joins white space and trims; lower also folds
// ASCII letters. A control character inside a run of white space does not split the
// run.
func collapse(s string, lower bool) string {
	b := make([]byte, 0, len(s))
	space := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			space = true
			continue
		case c < ' ' || c == 0x7F:
			continue
		case c == 0xC2 && i+1 < len(s) && s[i+1] < 0xA0: // U+0080 to U+009F
			i++
			continue
		case c == 0xC2 && i+1 < len(s) && s[i+1] == 0xA0: // U+00A0
			i++
			space = true
			continue
		case lower && 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		if space && len(b) > 0 {
			b = append(b, ' ')
		}
		space = false
		b = append(b, c)
	}
	return string(b)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// ValidUTF8 returns s with U+FFFD for every byte that is not part of valid
// UTF-8, as [AppendString] writes it.
func ValidUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// FolderName returns the display name of a folder in a URL: "Getting started" for
// "getting-started".
func FolderName(segment string) string {
	s := segment
	if plain, err := url.PathUnescape(s); err == nil {
		s = plain
	}
	s = strings.Join(strings.FieldsFunc(ValidUTF8(s), func(r rune) bool { return r == '-' || r == '_' || unicode.IsSpace(r) }), " ")
	if s == "" {
		return segment
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
