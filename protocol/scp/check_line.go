package scp

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/canon"
)

// metadata checks the metadata line.
func (b *examination) metadata(p *parser, line []byte) {
	b.about["format/first-line"] = true
	if rest, found := bytes.CutPrefix(line, []byte(byteOrderMark)); found {
		b.note("format/json-lines", "the file starts with a byte order mark", "UTF-8 without one")
		line = rest
	}
	p.report = &lineReport{about: b.about}
	b.meta, _, _ = p.parseMetadata(line)
	if p.failed && p.fatal.section != sectionVersion {
		b.meta = Metadata{}
		b.issue(1, line, p.fatal)
		return
	}
	b.reported(1, line, p.report)
	if p.skip.rule != "format/first-line" {
		b.about["checksum/present"] = true
		if p.sum.value == 0 {
			b.note("checksum/present", "line 1 (/collection): no checksum", hashPrefix+" and 64 hexadecimal digits")
		}
	}
}

// line checks the line of one page.
func (b *examination) line(p *parser, number int64, line []byte) {
	p.report = &lineReport{about: b.about}
	if !p.parsePage(line) {
		b.issue(number, line, p.fatal)
		if p.fatal.rule != "page/required" {
			return
		}
	}
	b.about["format/pages"] = true
	b.reported(number, line, p.report)
	if u, err := canon.URL(p.page.URL); err == nil {
		b.page(number, u, p.page.Modified)
	}
}

func (b *examination) reported(number int64, line []byte, r *lineReport) {
	for _, i := range slices.Concat(r.issues, r.warnings) {
		b.issue(number, line, i)
	}
}

// issue records a violation in a line, and quotes the text at its position.
func (b *examination) issue(number int64, line []byte, i issue) {
	there := line[min(i.at, len(line)):]
	b.note(i.rule, formatError(number, line, i).Error()+": "+strings.ToValidUTF8(string(there[:min(60, len(there))]), "?"), "a line that conforms to section "+i.section)
}

// page records a page, and compares it with the same page in older files.
func (b *examination) page(number int64, u string, modified time.Time) {
	if u == "" {
		return
	}
	key := b.hash(u)
	at := fmt.Sprintf("line %d: %s", number, u)
	b.about["format/unique"], b.about["page/site"] = true, true
	if _, twice := b.modified[key]; twice {
		b.note("format/unique", at+" again", "one line for each page")
		return
	}
	if len(b.public) < maxPublic {
		b.public = append(b.public, strings.Clone(u))
	}
	if !b.HasHost(u) {
		b.note("page/site", at, "a page of "+b.Root())
	}
	if modified.IsZero() {
		return
	}
	b.modified[key] = modified.UnixNano()
	ref := b.file.ref
	text := "modified " + modified.Format(time.RFC3339Nano)
	if !b.meta.Generated.IsZero() {
		rule := "snapshots/at-generation"
		if ref.delta {
			rule = "deltas/within-period"
		}
		b.about[rule] = true
		if modified.After(b.meta.Generated.Add(skew)) {
			b.note(rule, at+" "+text, "not later than generated, "+b.meta.Generated.Format(time.RFC3339))
		}
	}
	for _, f := range slices.Backward(b.before) {
		was, ok := f.modified[key]
		if !ok || !f.ref.generated.Before(ref.generated) {
			continue
		}
		b.about["deltas/monotonic"] = true
		old := time.Unix(0, was).UTC()
		switch {
		case modified.Before(old):
			b.note("deltas/monotonic", at+" "+text+", in "+f.ref.url+" "+old.Format(time.RFC3339Nano), "not earlier than in an older collection")
			return
		case ref.delta && !f.ref.delta && f.ref.section == ref.section && modified.Equal(old) && !f.ref.generated.After(ref.since):
			b.note("deltas/within-period", at+" "+text+", as in the snapshot of "+f.ref.generated.Format(time.RFC3339), "only pages changed since "+ref.since.Format(time.RFC3339))
			return
		}
	}
}

// hash returns a hash of a URL. It is the same for all files.
func (b *examination) hash(u string) uint64 {
	h := fnv1a
	for i := range len(u) {
		h = (h ^ uint64(u[i])) * 1099511628211
	}
	return h
}

const fnv1a uint64 = 14695981039346656037
