package scp

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/internal/kit"
)

// memberSpan is the position of the checksum member in the first line. from and to include the
// comma of the member; value and end are the start and the end of its quoted value. The zero value
// means that the member is absent.
type memberSpan struct{ from, to, value, end int }

// Sections of the specification, for errors.
const (
	metaSectionName = "Collection Metadata Schema"
	sectionVersion  = "Version Compatibility"
	sectionLimits   = "Resource Exhaustion Attacks"
)

// parseMetadata parses the first line. Any error is fatal.
func (p *parser) parseMetadata(line []byte) (m Metadata, at memberSpan, ok bool) {
	keep := p.keep
	p.keep = true
	defer func() { p.keep = keep }()
	p.reset(line, metaSectionName, "format/first-line")
	p.sum = memberSpan{}
	if strings.HasPrefix(p.text, byteOrderMark) {
		p.fail(issue{rule: "format/json-lines", section: "Error Handling", reason: "the file starts with a byte order mark"})
		return m, at, false
	}
	if !p.open() {
		return m, at, false
	}
	start := p.pos - 1
	seen := lineObject.rest(p, &m, true, 0)
	if p.failed || !p.end() {
		return m, at, false
	}
	requireAll(p, start, lineObject, seen)
	if p.fatal = p.skip; p.fatal.reason != "" {
		return m, p.sum, false
	}
	return m, p.sum, p.supported(&m)
}

const byteOrderMark = "\uFEFF"

// requireAll reports every required member that is missing in an object.
func requireAll[T any](p *parser, at int, o *object[T], seen uint32) {
	for _, m := range o.missing(seen) {
		p.missing(at, m.name, cmp.Or(m.rule, p.rule))
	}
}

func (p *parser) missing(at int, name, rule string) {
	p.note(issue{at: at, member: name, rule: rule, section: p.section, reason: missingReason})
}

// collection reads the metadata. A delta must have since.
func (p *parser) collection(m *Metadata) {
	if p.peek() != '{' {
		p.wrong("an object")
		return
	}
	at := p.pos
	p.pos++
	seen := collectionObject.rest(p, m, true, 0)
	requireAll(p, at, collectionObject, seen)
	if since := collectionObject.find([]byte("since"), 0); m.Type == "delta" && seen>>since&1 == 0 {
		p.missing(at, "since", "metadata/since")
	}
}

// checksum reads the checksum, and records the position of the member. If the member is the first
// one, its position includes the comma after it.
func (p *parser) checksum(v *string) {
	before := p.before
	p.peek()
	p.sum.value = p.pos
	t, ok := p.token()
	if !ok {
		return
	}
	s := p.string(t)
	hex, found := strings.CutPrefix(s, hashPrefix)
	if !found || len(hex) != len(noSum) || strings.Trim(hex, "0123456789abcdefABCDEF") != "" {
		p.refuse(p.sum.value, "not a SHA-256 checksum")
		return
	}
	if *v = hashPrefix + strings.ToLower(hex); *v != s {
		p.warn(p.sum.value, "checksum/form", "the checksum is not in lower case")
	}
	p.sum.from, p.sum.to, p.sum.end = before, p.pos, p.pos
	if before == 0 {
		p.sum.from = strings.LastIndexByte(p.text[:p.sum.value], '{') + 1
		if p.peek() == ',' {
			p.sum.to = p.pos + 1
		}
	}
}

// supported reports whether the version is supported: major version 0 with any minor version
// (Version Compatibility).
func (p *parser) supported(m *Metadata) bool {
	major, _, _ := strings.Cut(m.Version, ".")
	if strings.Trim(major, "0") != "" {
		at := strings.Index(p.text, `"`+m.Version+`"`)
		return p.fail(issue{
			at: max(at, 0), rule: "metadata/version", section: sectionVersion, reason: "version " + kit.Short(m.Version) + " is not supported; want 0.x",
		})
	}
	return true
}

// formatError returns the error for an issue in a line.
func formatError(number int64, line []byte, i issue) *millrace.FormatError {
	pointer := jsonio.Pointer(line, i.at)
	if i.member != "" {
		pointer += "/" + i.member
	}
	position := fmt.Sprintf("line %d", number)
	if pointer != "" {
		position += " (" + kit.Short(pointer) + ")"
	} else if i.at > 0 {
		position += fmt.Sprintf(", byte %d", i.at)
	}
	return &millrace.FormatError{Protocol: Name, Position: position, Section: i.section, Reason: i.reason}
}
