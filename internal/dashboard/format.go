package dashboard

import (
	"fmt"
	"html/template"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/canon"
)

// functions returns the functions of templates, besides the methods of frame.
//
//	count N, short N, bytes N, energy KWH                 formatted figures
//	percent PART WHOLE, took DURATION                     formatted figures
//	share PART WHOLE                                      a width in percent
//	when TIME, day TIME, ago NOW TIME                      times, as <time> elements
//	plural N "page" "pages"                                N with its noun
//	plain TEXT                                             untrusted text: one line, no control characters
//	path N PATH                                            a decoded path of at most N characters
//	protocol NAME                                          its display name
//	cut N TEXT                                             at most N characters
//	version "style"                                        the version of a file
//	dict "name" VALUE …                                    several values for a partial
func functions(files map[string]*file, label func(string) string) template.FuncMap {
	return template.FuncMap{
		"count": count, "short": short, "bytes": size, "energy": energyOf, "percent": percent, "share": share, "took": took, "when": when, "day": day, "ago": ago, "plural": plural,
		"plain": printable, "path": readable, "protocol": label, "cut": cut,
		"version": func(name string) (string, error) {
			if f := files[name]; f != nil {
				return f.version, nil
			}
			return "", fmt.Errorf("file %q not found", name)
		},
		"dict": func(kv ...any) (map[string]any, error) {
			if len(kv)%2 != 0 {
				return nil, fmt.Errorf("dict: %d values are not pairs", len(kv))
			}
			m := map[string]any{}
			for i := 0; i < len(kv); i += 2 {
				name, ok := kv[i].(string)
				if !ok {
					return nil, fmt.Errorf("dict: %v is not a name", kv[i])
				}
				m[name] = kv[i+1]
			}
			return m, nil
		},
	}
}

// toInt64 converts any number to int64.
func toInt64(n any) int64 {
	switch n := n.(type) {
	case int:
		return int64(n)
	case int64:
		return n
	case uint64:
		if n > math.MaxInt64 {
			return math.MaxInt64
		}
		return int64(n)
	case float64:
		return int64(math.Round(n))
	}
	return 0
}

// count formats a number with thousands separators: 12,345.
func count(n any) string {
	s := strconv.FormatInt(toInt64(n), 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "−", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// size formats bytes: 12 B, 3.4 kB, 56 MB.
func size(n any) string {
	v, sign := float64(toInt64(n)), ""
	if v < 0 {
		v, sign = -v, "−"
	}
	unit := 0
	for v >= 999.5 && unit < 5 {
		v, unit = v/1000, unit+1
	}
	form := "%.0f"
	if unit > 0 && v < 9.95 {
		form = "%.1f"
	}
	return sign + fmt.Sprintf(form, v) + " " + []string{"B", "kB", "MB", "GB", "TB", "PB"}[unit]
}

// percent formats a part of a whole, or "–" if the whole is zero.
func percent(part, all any) string {
	p, w := float64(toInt64(part)), float64(toInt64(all))
	if w == 0 {
		return "–"
	}
	switch v := 100 * p / w; {
	case v != 0 && math.Abs(v) < 0.1:
		return "<0.1 %"
	case math.Abs(v) < 9.95:
		return strconv.FormatFloat(v, 'f', 1, 64) + " %"
	case v < 100 && v > 99.5:
		return ">99 %"
	default:
		return strconv.FormatFloat(v, 'f', 0, 64) + " %"
	}
}

// share returns a part of a whole in percent, as the width of a bar.
func share(part, all any) string {
	p, w := float64(toInt64(part)), float64(toInt64(all))
	if w <= 0 || p <= 0 {
		return "0"
	}
	return strconv.FormatFloat(max(min(100*p/w, 100), .5), 'f', 1, 64)
}

// took formats a duration with about two digits.
func took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// when formats a time to the minute, in an element with the exact time.
func when(t time.Time) template.HTML { return timeElement(t, "2006-01-02 15:04") }

// day formats a day.
func day(t time.Time) template.HTML { return timeElement(t, time.DateOnly) }

func timeElement(t time.Time, layout string) template.HTML {
	if t.IsZero() {
		return "–"
	}
	t = t.UTC()
	// Neither text contains characters that are special in HTML.
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `" title="` + t.Format("Mon 2 Jan 2006 15:04:05") + ` UTC">` + t.Format(layout) + `</time>`) //nolint:gosec // see above
}

// ago formats the time between t and now.
func ago(now, t time.Time) template.HTML {
	if t.IsZero() {
		return "never"
	}
	var text string
	d := now.Sub(t)
	switch {
	case d < -time.Minute:
		text = "in " + took(-d)
	case d < time.Minute:
		text = "just now"
	default:
		text = took(d) + " ago"
	}
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `" title="` + t.Format("Mon 2 Jan 2006 15:04:05") + ` UTC">` + text + `</time>`) //nolint:gosec // only digits and fixed words
}

// plural formats a number with its noun.
func plural(n any, one, many string) string {
	if toInt64(n) == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// printable makes untrusted text one line: control and direction characters become
// "�".
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case canon.IsInvisible(r):
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

// readable decodes the percent-encoded non-ASCII letters and digits of a path or URL, and cuts the
// result after n characters.
func readable(n int, path string) string {
	var b strings.Builder
	for i := 0; i < len(path); {
		coded := path[i:]
		coded = coded[:len(codedBytes.FindString(coded))]
		if coded == "" {
			b.WriteByte(path[i])
			i++
			continue
		}
		i += len(coded)
		raw, _ := url.PathUnescape(coded) // coded contains only %XX
		for raw != "" {
			r, size := utf8.DecodeRuneInString(raw)
			if r >= utf8.RuneSelf && r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)) {
				b.WriteRune(r)
			} else {
				b.WriteString(coded[:3*size])
			}
			raw, coded = raw[size:], coded[3*size:]
		}
	}
	return printable(cut(n, b.String()))
}

// codedBytes matches the percent-encoded bytes that readable decodes.
var codedBytes = regexp.MustCompile(`^(?:%[0-9A-Fa-f]{2})+`)

// cut returns the first n characters of a text, followed by "…" if the text is longer.
func cut(n int, s string) string {
	i := 0
	for at := range s {
		if i == n {
			return s[:at] + "…"
		}
		i++
	}
	return s
}
