package scp

import (
	"math/bits"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/canon"
)

// Members of a page that are required, and one that makes a line be something
// else.
const (
	hasURL = 1 << iota
	hasTitle
	hasDescription
	hasModified
	hasLanguage
	hasContent
	hasAuthor
	hasPublished
	hasCanonical
	hasSchema
	hasCollection

	required = hasURL | hasTitle | hasDescription | hasModified | hasLanguage | hasContent
)

// pageNames are the names of the members, in the order of the bits.
var pageNames = []string{"url", "title", "description", "modified", "language", "content", "author", "published", "canonical", "schema", "collection"}

// parsePage reads a line into p.page, whose content holds until the next. It
// gives false for what is fatal to the file (p.fatal); what the page alone is
// refused for is in p.skip.
func (p *parser) parsePage(line []byte) bool {
	p.reset(line)
	p.page = page{Content: p.page.Content[:0]}
	if p.peek() != '{' {
		if !p.value(1) || !p.end() {
			return false
		}
		return p.fail(0, "Page Schema", "a page is an object")
	}
	start := p.pos
	p.pos++
	seen := 0
	for name, more := p.member(true); more; name, more = p.member(false) {
		at, bit := p.pos, 0
		switch string(name) {
		case "url":
			bit = hasURL
			p.url()
		case "title":
			bit = hasTitle
			p.page.Title, _ = p.str()
		case "description":
			bit = hasDescription
			p.page.Description, _ = p.str()
		case "author":
			bit = hasAuthor
			p.page.Author, _ = p.str()
		case "published":
			bit = hasPublished
			p.page.Published = p.time()
		case "modified":
			bit = hasModified
			p.page.Modified = p.time()
		case "language":
			bit = hasLanguage
			p.language()
		case "canonical":
			bit = hasCanonical
			var ok bool
			if p.page.Canonical, ok = p.link("page/canonical"); !ok {
				p.counts.canonical++
			}
		case "schema":
			bit = hasSchema
			p.schema()
		case "content":
			bit = hasContent
			p.content()
		case "collection":
			bit = hasCollection
			p.value(2)
		default:
			p.value(2)
		}
		if p.failed {
			return false
		}
		if seen&bit != 0 {
			p.refuse(at, "Page Fields", twice)
		}
		if seen |= bit; bit != 0 {
			p.has("page/", pageNames[bits.TrailingZeros(uint(bit))])
		}
	}
	if p.failed || !p.end() {
		return false
	}
	if p.has("page/required", ""); seen&required == required {
		return true
	}
	if seen&hasCollection != 0 && seen&required == 0 {
		p.fail(start, "Structure", "there is a second line of metadata")
		p.fatal.rule = "format/pages"
		return false
	}
	for i, name := range pageNames {
		if required&^seen&(1<<i) != 0 {
			p.missing(start, "Error Handling", name)
			break
		}
	}
	return false
}

// token reads a string, or refuses the page and goes past what is there instead.
func (p *parser) token() (s span, ok bool) {
	if p.peek() == '"' {
		return p.quoted()
	}
	p.wrong("a string")
	return s, false
}

// wrong refuses the page for a value that is not of its type, and reads it.
func (p *parser) wrong(want string) {
	p.refuse(p.pos, "Page Object Schema", "want "+want)
	// Known members are at most six levels deep, so that this only says a bit
	// early that something nests too deep.
	p.value(6)
}

func (p *parser) str() (string, bool) {
	s, ok := p.token()
	if !ok {
		return "", false
	}
	return p.string(s), true
}

// url reads the URL of the page.
func (p *parser) url() {
	s, ok := p.token()
	if !ok {
		return
	}
	raw := string(p.bytes(s))
	if !strings.HasPrefix(raw, "http://") && !strings.HasPrefix(raw, "https://") {
		p.refuse(s.from, "Error Handling", "the URL is not one of http or https")
		p.page.URL = raw
		return
	}
	u, err := canon.URL(raw)
	switch {
	case err != nil:
		p.refuse(s.from, "Error Handling", err.Error())
		u = raw
	case !isURI(raw) || !isWeb(raw):
		p.odd(s.from, "page/url", "Page Object Schema", "it is no URL of http or https")
	}
	p.page.URL = u
}

func (p *parser) time() time.Time {
	s, ok := p.token()
	if !ok {
		return time.Time{}
	}
	t, ok := parseTime(p.bytes(s))
	if !ok {
		p.refuse(s.from, "Page Object Schema", "it is no date-time of RFC 3339")
	}
	return t
}

func (p *parser) language() {
	s, ok := p.token()
	if !ok {
		return
	}
	if !isLanguage(p.bytes(s)) {
		p.refuse(s.from, "Page Object Schema", "it is no language tag")
	}
	p.page.Language = p.string(s)
}

func (p *parser) schema() {
	if p.peek() != '{' {
		p.wrong("an object")
		return
	}
	from, spaced := p.pos, p.spaced
	p.spaced = false
	if p.value(2) && p.keep {
		p.page.Schema = compact(p.data[from:p.pos], p.spaced)
	}
	p.spaced = p.spaced || spaced
}

// content reads the blocks of the page, of which it keeps those that are known.
func (p *parser) content() {
	p.peek()
	at, n := p.pos, 0
	p.has("limits/blocks", "")
	if p.array(func() {
		if n++; n > p.limits.MaxBlocks {
			if n == p.limits.MaxBlocks+1 {
				p.refuse(p.pos, sectionLimits, "the page has too many blocks")
			}
			p.value(3)
		} else {
			p.block()
			p.within = ""
		}
	}) && n == 0 {
		p.refuse(at, "Page Object Schema", "the content is empty")
	}
}
