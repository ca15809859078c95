package extract

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// layouts are the machine-readable formats of a time.
var layouts = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 MST",
	"2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly, time.RFC1123, time.RFC1123Z, "20060102",
}

// parseTime parses a declared date. It rejects a year alone. A date without a time of day becomes
// that day at 00:00 UTC, and a time without a zone is in UTC.
func parseTime(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if len(s) < 8 || len(s) > 60 {
		return time.Time{}, false
	}
	for _, l := range layouts {
		// Skip layouts that cannot match: every layout starts with a digit or a weekday.
		if isDigit(l[0]) != isDigit(s[0]) {
			continue
		}
		if t, err := time.Parse(l, s); err == nil && plausibleYear(t.Year()) {
			return t.Truncate(time.Second), true
		}
	}
	d, ok := findDate(s, 0, "")
	return d.day, ok
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// plausibleYear reports whether a year may be that of a web page, and not a placeholder.
func plausibleYear(y int) bool { return y >= 1980 && y < 2200 }

// foundDate is a date in a text: the day at 00:00 UTC, and the offsets of the date.
type foundDate struct {
	day        time.Time
	start, end int
}

// findDate returns the first date in s[from:]. It reads dates with the name of a month, dates in the
// order of ISO 8601 or with dots, and dates with Chinese, Japanese or Korean characters between the
// numbers. 3/4/2020 is a date only in a language that writes the day first, or if one of the numbers
// cannot be a month. A date must include its year.
func findDate(s string, from int, lang string) (foundDate, bool) {
	if !hasYear(s[from:]) {
		return foundDate{}, false
	}
	toks := tokens(s, from)
	for i := range toks {
		for _, form := range []func([]token, string) (y, m, d, n int){isoForm, numericForm, dayFirstForm, monthFirstForm, wideForm} {
			y, m, d, n := form(toks[i:], lang)
			if n == 0 || !plausibleYear(y) || m < 1 || m > 12 || d < 1 {
				continue
			}
			t := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC)
			if t.Day() != d {
				continue
			}
			return foundDate{day: t, start: toks[i].start, end: toks[i+n-1].end}, true
		}
	}
	return foundDate{}, false
}

// hasYear reports whether a text contains a number of four digits. Most texts contain none and need
// no further check.
func hasYear(s string) bool {
	n := 0
	for i := range len(s) {
		if isDigit(s[i]) {
			n++
			continue
		}
		if n == 4 {
			return true
		}
		n = 0
	}
	return n == 4
}

// token is a run of digits or of letters, and the text before it.
type token struct {
	start, end int
	num, width int    // value and number of the digits; width is 0 for letters
	word       string // the letters in lower case, or "" for digits
	gap        string // text between the previous token and this one
}

// tokens returns the tokens that start in the first 300 bytes of s[from:].
func tokens(s string, from int) []token {
	var out []token
	last := from
	limit := min(len(s), from+300)
	for i := from; i < limit; {
		r, size := utf8.DecodeRuneInString(s[i:])
		start := i
		switch {
		case r >= '0' && r <= '9':
			n := 0
			for i < len(s) && isDigit(s[i]) {
				if i-start < 9 {
					n = n*10 + int(s[i]-'0')
				}
				i++
			}
			out = append(out, token{start: start, end: i, num: n, width: i - start, gap: s[last:start]})
		case unicode.IsLetter(r) || r == 'º' || r == '°':
			wide := isWide(r)
			for i < len(s) {
				r, size := utf8.DecodeRuneInString(s[i:])
				if !(unicode.IsLetter(r) || unicode.Is(unicode.Mn, r) || r == 'º' || r == '°') || isWide(r) != wide {
					break
				}
				i += size
			}
			out = append(out, token{start: start, end: i, word: strings.ToLower(s[start:i]), gap: s[last:start]})
		default:
			i += size
			continue
		}
		last = i
	}
	return out
}

// isWide reports whether a letter is Chinese, Japanese or Korean.
func isWide(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

func isYear(t token) bool { return t.width == 4 }
func isDay(t token) bool  { return t.width == 1 || t.width == 2 }

// isoForm parses 2006-01-02, 2006/01/02 or 2006.01.02.
func isoForm(t []token, _ string) (y, m, d, n int) {
	if len(t) < 3 || !isYear(t[0]) || !isDay(t[1]) || !isDay(t[2]) || t[1].gap != t[2].gap {
		return
	}
	switch t[1].gap {
	case "-", "/", ".", ". ":
		return t[0].num, t[1].num, t[2].num, 3
	}
	return
}

// numericForm parses 2.1.2006, and 2/1/2006 or 1/2/2006 if the order is clear.
func numericForm(t []token, lang string) (y, m, d, n int) {
	if len(t) < 3 || !isDay(t[0]) || !isDay(t[1]) || !isYear(t[2]) || t[1].gap != t[2].gap || strings.HasSuffix(t[0].gap, t[1].gap) && t[0].gap != "" && t[1].gap != " " && len(t[0].gap) == 1 {
		return
	}
	a, b := t[0].num, t[1].num
	switch t[1].gap {
	case ".", ". ":
		return t[2].num, b, a, 3
	case "/", "-", " / ":
		switch {
		case a > 12 || a == b || dayFirst(lang):
			return t[2].num, b, a, 3
		case b > 12:
			return t[2].num, a, b, 3
		}
	}
	return
}

// dayFirst reports whether a language writes the day before the month. For en and en-US the order
// is unknown, because sites of all English-speaking countries use them.
func dayFirst(lang string) bool {
	switch base, region, _ := strings.Cut(lang, "-"); base {
	case "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "uk", "cs", "sk", "da", "nb", "no", "fi", "tr", "el", "ro", "bg", "ca", "id", "vi":
		return true
	case "en":
		return region == "GB" || region == "AU" || region == "NZ" || region == "IE" || region == "IN"
	}
	return false
}

// dayFirstForm parses 2 January 2006, 2nd of January, 2006, 2. Januar 2006, 2 de enero de 2006
// or 02-Jan-2006.
func dayFirstForm(t []token, lang string) (y, m, d, n int) {
	if len(t) < 3 || !isDay(t[0]) {
		return
	}
	i := 1
	if isOrdinal(t[i].word) {
		i++
	}
	if i < len(t) && (t[i].word == "of" || t[i].word == "de") {
		i++
	}
	if i+1 >= len(t) || !isGap(t[i].gap) {
		return
	}
	m = month(t[i].word, lang)
	i++
	if i < len(t) && (t[i].word == "de" || t[i].word == "del") {
		i++
	}
	if m == 0 || i >= len(t) || !isYear(t[i]) || !isGap(t[i].gap) {
		return 0, 0, 0, 0
	}
	return t[i].num, m, t[0].num, i + 1
}

// monthFirstForm parses January 2, 2006, Jan. 2nd 2006 or Jan-02-2006.
func monthFirstForm(t []token, lang string) (y, m, d, n int) {
	if len(t) < 3 || t[0].width > 0 || !isDay(t[1]) || !isGap(t[1].gap) {
		return
	}
	i := 2
	if isOrdinal(t[i].word) {
		i++
	}
	if i >= len(t) || !isYear(t[i]) || !isGap(t[i].gap) {
		return
	}
	if m = month(t[0].word, lang); m == 0 {
		return
	}
	return t[i].num, m, t[1].num, i + 1
}

// wideForm parses 2006年1月2日, or the same in Korean.
func wideForm(t []token, _ string) (y, m, d, n int) {
	if len(t) < 6 || !isYear(t[0]) || !isDay(t[2]) || !isDay(t[4]) {
		return
	}
	for i, marks := range []string{1: "年년", 3: "月월", 5: "日일号號"} {
		if r, _ := utf8.DecodeRuneInString(t[i].word); marks != "" && !strings.ContainsRune(marks, r) {
			return
		}
	}
	return t[0].num, t[2].num, t[4].num, 6
}

func isOrdinal(s string) bool {
	switch s {
	case "st", "nd", "rd", "th", "er", "º", "°", "ª", "e":
		return true
	}
	return false
}

// isGap reports whether a text may separate two parts of a date.
func isGap(s string) bool {
	switch strings.TrimSpace(s) {
	case "", ",", ".", "-", ".,", "/", "\u2013":
		return len(s) <= 6
	}
	return false
}

// month returns the number of a month for its name or abbreviation, or 0 if s is not one. It knows
// no Croatian names, because "listopada" is October in Croatian but November in Polish. "out" is
// October only in Portuguese.
func month(s, lang string) int {
	if strings.HasPrefix(lang, "hr") || s == "out" && !strings.HasPrefix(lang, "pt") {
		return 0
	}
	return months[s]
}

// monthNames are the names and abbreviations of the months in English, German, French, Spanish,
// Italian, Portuguese, Dutch, Polish, Russian and the Scandinavian languages. They include
// inflected forms that follow a day.
var monthNames = [12]string{
	"january jan januar jänner janvier janv enero ene gennaio gen janeiro januari stycznia styczeń sty января январь янв",
	"february feb februar februari février févr fév febrero febbraio fevereiro fev lutego luty lut февраля февраль фев",
	"march mar märz mär mars marzo março maart mrt marca marzec марта март мар marts",
	"april apr avril avr abril abr aprile kwietnia kwiecień kwi апреля апрель апр",
	"may mai mayo maggio mag maio mei maja maj мая май",
	"june jun juni juin junio giugno giu junho czerwca czerwiec cze июня июнь июн",
	"july jul juli juillet juil julio luglio lug julho lipca lipiec lip июля июль июл",
	"august aug août agosto ago augustus sierpnia sierpień sie августа август авг augusti",
	"september sept sep septembre septiembre setiembre settembre set setembro września wrzesień wrz сентября сентябрь сен сент",
	"october oct oktober okt octobre octubre ottobre ott outubro out października październik paź октября октябрь окт",
	"november nov novembre noviembre novembro listopada listopad ноября ноябрь ноя нояб",
	"december dec dezember dez décembre déc diciembre dic dicembre dezembro grudnia grudzień gru декабря декабрь дек desember",
}

// months maps each name to the number of its month.
var months = func() map[string]int {
	m := map[string]int{}
	for i, names := range monthNames {
		for name := range strings.FieldsSeq(names) {
			m[name] = i + 1
		}
	}
	return m
}()
