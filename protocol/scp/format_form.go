package scp

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/canon"
)

// The forms of values.
var (
	textForm = &form[string]{func(p *parser, v *string) { *v = p.str() }, appendString}

	nameForm     = matching("want letters, digits, hyphens and underscores", isName)
	kindForm     = matching(`want "snapshot" or "delta"`, func(s []byte) bool { return string(s) == "snapshot" || string(s) == "delta" })
	versionForm  = matching(`want "MAJOR.MINOR"`, func(s []byte) bool { return isVersion(string(s)) })
	languageForm = matching("not a language tag", isLanguage)
	durationForm = matching("not a duration in hours, minutes and seconds", isDuration)

	instantForm = &form[time.Time]{
		func(p *parser, v *time.Time) {
			if s, ok := p.token(); ok {
				if *v, ok = parseTime(p.bytes(s)); !ok {
					p.refuse(s.from, "not an RFC 3339 date-time")
				}
			}
		},
		// The time is written in UTC, with fractions of a second.
		func(dst []byte, v *time.Time) []byte {
			return append(v.UTC().AppendFormat(append(dst, '"'), time.RFC3339Nano), '"')
		},
	}

	urlForm  = &form[string]{(*parser).url, appendString}
	linkForm = &form[string]{func(p *parser, v *string) { p.link(v, "blocks/url") }, appendString}
	// canonicalForm is the form of a canonical URL. An invalid canonical URL does not make the page
	// invalid.
	canonicalForm = &form[string]{
		func(p *parser, v *string) {
			if p.link(v, "page/canonical"); p.invalidURL {
				p.counts.canonical++
				p.invalidURL = false
			}
		},
		appendString,
	}

	boolForm  = &form[bool]{(*parser).bool, func(dst []byte, v *bool) []byte { return strconv.AppendBool(dst, *v) }}
	levelForm = &form[int]{(*parser).level, appendInt}
	// naturalForm is the form of a non-negative integer.
	naturalForm = &form[int]{
		func(p *parser, v *int) {
			p.peek()
			at := p.pos
			if n, _ := p.integer(); n < 0 {
				p.refuse(at, "want a non-negative number")
			} else {
				*v = n
			}
		},
		appendInt,
	}

	textsForm = &form[[]string]{(*parser).strings, appendStrings}
	rowsForm  = &form[[][]string]{
		func(p *parser, v *[][]string) {
			*v = nil
			p.array(func() {
				var row []string
				if p.strings(&row); p.keep {
					*v = append(*v, row)
				}
			})
		},
		func(dst []byte, v *[][]string) []byte { return appendArray(dst, *v, appendStrings) },
	}

	schemaForm  = &form[[]byte]{(*parser).object, func(dst []byte, v *[]byte) []byte { return append(dst, *v...) }}
	contentForm = &form[[]block]{(*parser).content, func(dst []byte, v *[]block) []byte { return appendArray(dst, *v, appendBlock) }}

	// imageForm is the form of an Image. An image with an invalid URL is dropped.
	imageForm = &form[string]{
		func(p *parser, v *string) {
			outer := p.invalidURL
			p.invalidURL = false
			if imageObject.read(p, v); p.invalidURL {
				p.counts.dropped++
			}
			p.invalidURL = outer
		},
		func(dst []byte, v *string) []byte {
			if *v == "" {
				return dst
			}
			return imageObject.write(dst, v)
		},
	}
	// namedForm is the form of a name, or of an object with a name, such as a Person. The text of
	// the specification allows such objects, in contrast to its schema.
	namedForm = &form[string]{
		func(p *parser, v *string) {
			if p.peek() == '{' {
				namedObject.read(p, v)
			} else {
				*v = p.str()
			}
		},
		appendString,
	}

	// checksumForm is the form of the checksum.
	checksumForm = &form[string]{(*parser).checksum, appendString}
)

func appendStrings(dst []byte, v *[]string) []byte { return appendArray(dst, *v, appendString) }
func appendInt(dst []byte, v *int) []byte          { return strconv.AppendInt(dst, int64(*v), 10) }

func appendBlock(dst []byte, b *block) []byte { return kindOf(b.Type).write(dst, b) }

// matching returns the form of a string for which ok is true.
func matching(reason string, ok func([]byte) bool) *form[string] {
	return &form[string]{
		func(p *parser, v *string) {
			s, there := p.token()
			if there && !ok(p.bytes(s)) {
				p.refuse(s.from, reason)
			} else if there {
				*v = p.string(s)
			}
		},
		appendString,
	}
}

// is returns the form of a string with a single allowed value.
func is(value string) *form[string] {
	return &form[string]{
		func(p *parser, _ *string) {
			if s, ok := p.token(); ok && string(p.bytes(s)) != value {
				p.refuse(s.from, "want "+strconv.Quote(value))
			}
		},
		func(dst []byte, _ *string) []byte { return canon.AppendString(dst, value) },
	}
}

// sources reads the location of a recording: one URL, or several URLs with their media types. If no
// URL is valid, the block is dropped.
func sources(o *object[source]) *form[media] {
	return &form[media]{
		func(p *parser, m *media) {
			m.URL, m.Sources = "", nil
			if p.peek() == '"' {
				p.link(&m.URL, "blocks/url")
				return
			}
			at := p.pos
			all, good := readElements(p, o, &m.Sources)
			if all == 0 {
				p.refuse(at, "no URL")
			}
			p.invalidURL = p.invalidURL || all > 0 && good == 0
		},
		func(dst []byte, m *media) []byte {
			if len(m.Sources) == 0 {
				return canon.AppendString(dst, m.URL)
			}
			return appendArray(dst, m.Sources, o.write)
		},
	}
}

// token reads a string. If the next value is not a string, it rejects the page and skips the value.
func (p *parser) token() (s span, ok bool) {
	if p.peek() == '"' {
		return p.quoted()
	}
	p.wrong("a string")
	return s, false
}

// wrong rejects the page because of a value of the wrong type, and skips the value.
func (p *parser) wrong(want string) {
	p.refuse(p.pos, "want "+want)
	p.value()
}

func (p *parser) str() string {
	if s, ok := p.token(); ok {
		return p.string(s)
	}
	return ""
}

func (p *parser) ignore() { p.value() }

// url reads the page's URL.
func (p *parser) url(v *string) {
	s, ok := p.token()
	if !ok {
		return
	}
	*v = string(p.bytes(s))
	if !strings.HasPrefix(*v, "http://") && !strings.HasPrefix(*v, "https://") {
		p.refuse(s.from, "the URL is not http or https")
		return
	}
	u, err := canon.URL(*v)
	if err != nil {
		p.refuse(s.from, err.Error())
		return
	}
	if !isURI(*v) || !isWeb(*v) {
		p.warn(s.from, "page/url", "not an http or https URL")
	}
	*v = u
}

// link reads the URL of a part of a page. If the URL cannot be converted to an http or https URL,
// link sets invalidURL. It reports a URL that is not valid as written under the given rule.
func (p *parser) link(v *string, rule string) {
	p.applies(rule)
	*v = ""
	s, ok := p.token()
	if !ok {
		return // the page is rejected
	}
	if raw := p.bytes(s); isURI(raw) && isWeb(raw) {
		*v = p.string(s)
	} else {
		p.warn(s.from, rule, "not an http or https URL")
		*v = webURL(string(raw))
		p.invalidURL = p.invalidURL || *v == ""
	}
}

func (p *parser) bool(v *bool) {
	switch p.peek() {
	case 't':
		*v = p.literal("true")
	case 'f':
		*v = false
		p.literal("false")
	default:
		p.wrong("true or false")
	}
}

// level reads the level of a heading, clamped to 1 to 6.
func (p *parser) level(v *int) {
	p.applies("blocks/heading-level")
	p.peek()
	at := p.pos
	n, ok := p.integer()
	if *v = min(max(n, 1), 6); ok && *v != n {
		p.counts.clamped++
		p.warn(at, "blocks/heading-level", "want a level from 1 to 6")
	}
}

// integer reads an integer, clamped to the range from -maxInt to maxInt. If ok is false, the page
// is rejected.
func (p *parser) integer() (n int, ok bool) {
	c := p.peek()
	if c != '-' && (c < '0' || c > '9') {
		p.wrong("an integer")
		return 0, false
	}
	at := p.pos
	b, ok := p.number()
	if !ok {
		return 0, false
	}
	if n, err := strconv.Atoi(string(b)); err == nil {
		return min(max(n, -maxInt), maxInt), true
	}
	if !isInteger(b) {
		p.refuse(at, "want an integer")
		return 0, false
	}
	f, _ := strconv.ParseFloat(string(b), 64) // infinite if it is out of range
	return int(min(max(f, -maxInt), maxInt)), true
}

// strings reads an array of strings.
func (p *parser) strings(v *[]string) {
	p.strs = p.strs[:0]
	p.array(func() {
		if s := p.str(); p.keep {
			p.strs = append(p.strs, s)
		}
		p.timedOut()
	})
	*v = append([]string(nil), p.strs...)
}

// object reads an object, and stores its JSON.
func (p *parser) object(v *[]byte) {
	if p.peek() != '{' {
		p.wrong("an object")
		return
	}
	from := p.pos
	p.spaced = false
	if !p.value() || !p.keep {
		return
	}
	if *v = bytes.Clone(p.data[from:p.pos]); p.spaced {
		*v = compact(*v)
	}
}
