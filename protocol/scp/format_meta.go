package scp

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
)

// place is where the member checksum stands in the first line: all of it with
// the comma that goes with it, and its value with the quotes. Zero: it is not
// there.
type place struct{ from, to, value, end int }

// Members of the metadata.
const (
	metaID = 1 << iota
	metaSection
	metaType
	metaGenerated
	metaVersion
	metaSince
	metaChecksum

	metaRequired = metaID | metaSection | metaType | metaGenerated | metaVersion
)

var metaNames = []string{"id", "section", "type", "generated", "version", "since", "checksum"} // in the order of the bits

// Sections of the specification that errors name.
const (
	metaSectionName = "Collection Metadata Schema"
	sectionVersion  = "Version Compatibility"
	sectionLimits   = "Resource Exhaustion Attacks"
)

// parseMetadata reads the first line. Whatever is wrong with it is fatal.
func (p *parser) parseMetadata(line []byte) (m Metadata, at place, ok bool) {
	keep := p.keep
	p.keep = true
	defer func() { p.keep = keep }()
	p.reset(line)
	if strings.HasPrefix(p.text, "\uFEFF") {
		return m, at, p.syntax(0, "it starts with a byte order mark")
	}
	if p.peek() != '{' {
		if p.value(1) && p.end() {
			p.fail(0, "Structure", "the first line is an object")
		}
		return m, at, false
	}
	start := p.pos
	p.pos++
	found := false
	for name, more := p.member(true); more; name, more = p.member(false) {
		switch {
		case string(name) != "collection":
			p.value(2)
		case found:
			p.fail(p.pos, metaSectionName, twice)
		default:
			found = true
			at = p.collection(&m)
		}
		if p.failed {
			return m, at, false
		}
	}
	if p.failed || !p.end() {
		return m, at, false
	}
	if !found {
		p.missing(start, "Structure", "collection")
		return m, at, false
	}
	return m, at, p.supported(&m)
}

// missing fails for want of a member in the object at a byte.
func (p *parser) missing(at int, section, name string) {
	p.fail(at, section, "the member is required")
	p.fatal.member = name
}

func (p *parser) collection(m *Metadata) (at place) {
	if p.peek() != '{' {
		p.fail(p.pos, metaSectionName, "want an object")
		return at
	}
	start := p.pos
	p.pos++
	seen, comma := 0, 0
	for name, more := p.member(true); more; name, more = p.member(false) {
		bit := 0
		for i, n := range metaNames {
			if string(name) == n {
				bit = 1 << i
			}
		}
		switch {
		case bit == 0:
			p.value(3)
		case seen&bit != 0:
			p.fail(p.pos, metaSectionName, twice)
		case bit == metaChecksum:
			at = p.checksum(m, comma)
		default:
			p.metaMember(m, bit)
		}
		if p.failed {
			return at
		}
		if seen |= bit; bit != metaChecksum {
			comma = p.pos
		}
	}
	if p.failed {
		return at
	}
	for i, n := range metaNames {
		if bit := 1 << i; seen&bit == 0 && (metaRequired&bit != 0 || bit == metaSince && m.Type == "delta") {
			p.missing(start, metaSectionName, n)
			return at
		}
	}
	return at
}

// checksum reads the value of the checksum. before is where the member before it
// ends, 0 if it is the first: then the comma after it goes with it.
func (p *parser) checksum(m *Metadata, before int) (at place) {
	p.peek()
	at.value = p.pos
	s, ok := p.required()
	if !ok {
		return at
	}
	hex, found := strings.CutPrefix(s, hashPrefix)
	if !found || len(hex) != len(noSum) || strings.Trim(hex, "0123456789abcdefABCDEF") != "" {
		p.fail(at.value, metaSectionName, "it is no SHA-256 checksum")
		return at
	}
	m.Checksum = hashPrefix + strings.ToLower(hex)
	at.end = p.pos
	if at.from, at.to = before, at.end; before > 0 {
		return at
	}
	at.from = strings.LastIndexByte(p.text[:at.value], '{') + 1
	if p.peek() == ',' {
		at.to = p.pos + 1
	}
	return at
}

// required reads a string that must be one.
func (p *parser) required() (string, bool) {
	if p.peek() != '"' {
		return "", p.fail(p.pos, metaSectionName, "want a string")
	}
	s, ok := p.quoted()
	if !ok {
		return "", false
	}
	return p.string(s), true
}

func (p *parser) metaMember(m *Metadata, bit int) {
	p.peek()
	at := p.pos
	s, ok := p.required()
	if !ok {
		return
	}
	reason := ""
	switch bit {
	case metaID:
		if m.ID = s; !isName(s) {
			reason = "want letters, digits, hyphens and underscores"
		}
	case metaSection:
		if m.Section = s; !isName(s) {
			reason = "want letters, digits, hyphens and underscores"
		}
	case metaType:
		if m.Type = s; s != "snapshot" && s != "delta" {
			reason = `want "snapshot" or "delta"`
		}
	case metaGenerated:
		if m.Generated, ok = parseTime([]byte(s)); !ok {
			reason = "it is no date-time of RFC 3339"
		}
	case metaSince:
		if m.Since, ok = parseTime([]byte(s)); !ok {
			reason = "it is no date-time of RFC 3339"
		}
	case metaVersion:
		major, minor, _ := strings.Cut(s, ".")
		if m.Version = s; !isDigits(major) || !isDigits(minor) {
			reason = `want "MAJOR.MINOR"`
		}
	}
	if reason != "" {
		p.fail(at, metaSectionName, reason)
	}
}

func isDigits(s string) bool { return s != "" && digits(s, 0) == len(s) }

// supported reports whether the version is one that can be read: the major one
// is 0, whatever the minor one (Version Compatibility).
func (p *parser) supported(m *Metadata) bool {
	major, _, _ := strings.Cut(m.Version, ".")
	if strings.Trim(major, "0") != "" {
		at := strings.Index(p.text, `"`+m.Version+`"`)
		return p.fail(max(at, 0), sectionVersion, "version "+short(m.Version)+" is not known here, only 0")
	}
	return true
}

// short cuts a stranger's string to what fits in a message.
func short(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

// formatError says what is wrong with a line.
func formatError(number int64, line []byte, i issue) *millrace.FormatError {
	pointer := jsonio.Pointer(line, i.at)
	if i.member != "" {
		pointer += "/" + i.member
	}
	position := fmt.Sprintf("line %d", number)
	if pointer != "" {
		position += " (" + short(pointer) + ")"
	} else if i.at > 0 {
		position += fmt.Sprintf(", byte %d", i.at)
	}
	return &millrace.FormatError{Protocol: Name, Position: position, Section: i.section, Reason: i.reason}
}
