package scp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/canon"
)

// first takes the line of metadata apart.
func (b *bench) first(line []byte) {
	b.about["format/first-line"] = true
	b.utf8(1, line)
	var doc map[string]any
	if err := unmarshal(line, &doc); err != nil {
		b.note("format/first-line", "line 1: "+err.Error(), "an object with the metadata of the collection")
		return
	}
	var ok bool
	if b.meta, ok = doc["collection"].(map[string]any); !ok {
		b.note("format/first-line", "line 1 has "+describe(doc["collection"], doc["collection"] != nil)+" as collection", "an object with the metadata of the collection")
		return
	}
	metadata(b.meta, b.content)
}

func (b *bench) utf8(number int64, line []byte) {
	switch {
	case number == 1 && bytes.HasPrefix(line, []byte("\uFEFF")):
		b.note("format/json-lines", "the file starts with a byte order mark", "UTF-8 without one")
	case !utf8.Valid(line):
		b.note("format/json-lines", fmt.Sprintf("line %d is not UTF-8", number), "UTF-8")
	}
}

// line looks at the line of one page.
func (b *bench) line(p *parser, number int64, line []byte) {
	p.report = &lineReport{about: b.about}
	if !p.parsePage(line) {
		rule := p.fatal.breaks(number, line)
		b.issue(rule, number, line, p.fatal)
		if rule != "page/required" {
			return
		}
	}
	b.about["format/pages"] = true
	for _, i := range p.report.issues {
		b.issue(i.skips(line), number, line, i)
	}
	for _, i := range p.report.odd {
		b.issue(i.rule, number, line, i)
	}
	if u, err := canon.URL(p.page.URL); err == nil {
		b.page(number, u, p.page.Modified)
	}
}

// issue notes what is wrong with a line, and what stands there.
func (b *bench) issue(rule string, number int64, line []byte, i issue) {
	there := line[min(i.at, len(line)):]
	b.note(rule, formatError(number, line, i).Error()+": "+strings.ToValidUTF8(string(there[:min(60, len(there))]), "?"), "as in the section "+i.section)
}

// page keeps what is known of a page, and compares it with what older files say.
func (b *bench) page(number int64, u string, modified time.Time) {
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
	if !b.near(u) {
		b.note("page/site", at, "a page of "+b.t.Root())
	}
	if modified.IsZero() {
		return
	}
	b.modified[key] = modified.UnixNano()
	ref := b.file.ref
	said := "modified " + modified.Format(time.RFC3339Nano)
	if !b.generated.IsZero() {
		rule := "snapshots/at-generation"
		if ref.delta {
			rule = "deltas/within-period"
		}
		b.about[rule] = true
		if modified.After(b.generated.Add(skew)) {
			b.note(rule, at+" "+said, "not later than generated, "+b.generated.Format(time.RFC3339))
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
			b.note("deltas/monotonic", at+" "+said+", in "+f.ref.url+" "+old.Format(time.RFC3339Nano), "not earlier than in a collection that is older")
			return
		case ref.delta && !f.ref.delta && f.ref.section == ref.section && modified.Equal(old) && !f.ref.generated.After(ref.since):
			b.note("deltas/within-period", at+" "+said+", as in the snapshot of "+f.ref.generated.Format(time.RFC3339), "only what has changed since "+ref.since.Format(time.RFC3339))
			return
		}
	}
}

// hash gives a number for a URL, the same in all files.
func (b *bench) hash(u string) uint64 {
	h := fnv1a
	for i := range len(u) {
		h = (h ^ uint64(u[i])) * 1099511628211
	}
	return h
}

const fnv1a uint64 = 14695981039346656037

// unmarshal reads one JSON value, numbers as they are written.
func unmarshal(line []byte, to any) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return errors.New("it is blank")
	}
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(line, []byte("\uFEFF"))))
	d.UseNumber()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF { //nolint:errorlint // as Token gives it
		return errors.New("there is data after the value")
	}
	return nil
}
