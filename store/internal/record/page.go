package record

import (
	"encoding/hex"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// Format is the version of the output of Show. A new version means that Show returns different
// bytes for some pages.
const Format = 1

// Entry is the entry of a page in a log.
type Entry struct {
	Present  bool  // false = the page is deleted; in the zero Entry, it never existed
	Modified int64 // Unix seconds; for a deletion, the time of deletion
	Meta     []byte
	Blocks   []byte // encoded, or nil
	Undated  bool   // in a publication: Modified is hidden
	// Revision, Section and Published are set only if the page is present.
	Revision  []byte
	Section   string
	Published int64 // Unix seconds, or 0 if unknown
	// Hint is the date of a page of a site if the source has set no date.
	Hint int64
	// HTMLSize is set for the present pages of a site.
	HTMLSize millrace.HTMLSize
}

// Date returns the date of a page in a view, or the zero time if the view shows no date.
func (e *Entry) Date() time.Time {
	if e.Undated {
		return time.Time{}
	}
	return Instant(e.Modified)
}

// Page decodes a page of a site. Its date is the one that the sources have set, or else Hint.
func (e *Entry) Page() (*millrace.Page, error) {
	p, err := Decode(e.Meta, e.Blocks)
	if err == nil && p.Modified.IsZero() {
		p.Modified = Instant(e.Hint)
	}
	return p, err
}

// Outcome is the kind of change to an entry of a log.
type Outcome uint8

// Values of Outcome.
const (
	Same    Outcome = iota // no change
	Amended                // Meta, Hint or HTMLSize has changed in a way that views do not show
	Changed                // a new entry
)

// Take returns the new entry of a site for a page from a source. in.URL is the path of the page. If
// newer is set, Take ignores a page that has no later date. names converts the caller's URLs.
func Take(old Entry, in *millrace.Page, newer bool, names Names, now time.Time) (Entry, Outcome, error) {
	blocks, err := EncodeBlocks(in.Blocks)
	if err != nil {
		return old, Same, err
	}
	size := in.HTMLSize.Or(old.HTMLSize)
	unchanged := func(e Entry) (Entry, Outcome, error) {
		if e.HTMLSize == size {
			return e, Same, nil
		}
		e.HTMLSize = size
		return e, Amended, nil
	}
	given := Entry{Meta: names.Store(EncodeMeta(in)), Blocks: names.Store(blocks), HTMLSize: size}
	if old.Present && string(given.Meta) == string(old.Meta) && string(given.Blocks) == string(old.Blocks) {
		return unchanged(old) // unchanged, without decoding the stored page
	}
	if !old.Present {
		if in.Known&(millrace.FieldTitle|millrace.FieldContent) == 0 {
			return old, Same, nil // too little content for a page
		}
		given.describe(in)
		given.Modified = modifiedAt(in.Modified, old.Modified, now)
		given.Revision = Revision(names.Store(encodeContent(in)), given.Blocks, given.Modified)
		return given, Changed, nil
	}
	before, err := old.Page()
	if err != nil {
		return old, Same, err
	}
	if newer && !before.Modified.IsZero() && !in.Modified.After(before.Modified) {
		return old, Same, nil
	}
	if !names.own { // compare stored forms
		modified := in.Modified
		if in, err = Decode(given.Meta, given.Blocks); err != nil {
			return old, Same, err
		}
		in.Modified = modified
	}
	p, changed := millrace.Merge(before, in)
	if !changed {
		return unchanged(old)
	}
	e := Entry{Present: true, Meta: EncodeMeta(p), HTMLSize: size}
	if e.Blocks, err = EncodeBlocks(p.Blocks); err != nil {
		return old, Same, err
	}
	e.describe(p)
	e.Modified = modifiedAt(p.Modified, old.Modified, now)
	content := encodeContent(p)
	if string(content) == string(encodeContent(before)) && string(e.Blocks) == string(old.Blocks) {
		// The content is equal, but the source may have set a later date.
		if !p.Known.Has(millrace.FieldModified) || p.Modified.Equal(before.Modified) || min(p.Modified.Unix(), now.Unix()) <= old.Modified {
			e.Modified, e.Revision = old.Modified, old.Revision
			return e, Amended, nil
		}
		e.Modified = min(p.Modified.Unix(), now.Unix())
	}
	e.Revision = Revision(content, e.Blocks, e.Modified)
	return e, Changed, nil
}

// describe sets the fields of an entry that are derived from the page.
func (e *Entry) describe(p *millrace.Page) {
	e.Present, e.Section, e.Published = true, p.Section, Unix(p.Published)
	if !p.Known.Has(millrace.FieldModified) {
		e.Hint = Unix(p.Modified)
	}
}

// Remove returns the entry of a deleted page.
func Remove(old Entry, now time.Time) Entry {
	return Entry{Modified: modifiedAt(time.Time{}, old.Modified, now)}
}

// Show returns the new entry of a page in a publication, from the entry of the site. It also
// returns the page for taggers, or nil if the publication does not show it.
func Show(old, site Entry, c *store.Config, names Names, path string, now time.Time) (Entry, *millrace.Page, Outcome, error) {
	var v *millrace.Page
	if site.Present {
		p, err := Decode(names.Show(site.Meta), names.Show(site.Blocks))
		if err != nil {
			return old, nil, Same, err
		}
		p.URL = path
		v, _ = c.Visibility.Apply(p)
	}
	if v == nil {
		if !old.Present {
			return old, nil, Same, nil
		}
		e := Remove(old, now)
		if !site.Present && site.Modified != 0 {
			e.Modified = max(site.Modified, old.Modified+1)
		}
		return e, nil, Changed, nil
	}
	e := Entry{
		Present: true, Modified: max(site.Modified, old.Modified+1), Meta: names.Store(encodeContent(v)), Blocks: site.Blocks,
		Section: v.Section, Published: Unix(v.Published), Undated: names.Volatile && v.Modified.IsZero() && site.Hint == 0,
	}
	out := Changed
	if old.Present && string(old.Meta) == string(e.Meta) && string(old.Blocks) == string(e.Blocks) {
		// The content is equal, but the source may have set a later date.
		if at := min(v.Modified.Unix(), site.Modified); v.Known.Has(millrace.FieldModified) && at > old.Modified {
			e.Modified = at
		} else {
			e, out = old, Same
		}
	}
	if out == Changed {
		e.Revision = Revision(e.Meta, e.Blocks, e.Modified)
	}
	e.complete(v, names, path)
	return e, v, out, nil
}

// View returns the page of an entry as it appears in a view.
func (e *Entry) View(names Names, path string) (*millrace.Page, error) {
	p, err := Decode(names.Show(e.Meta), names.Show(e.Blocks))
	if err != nil {
		return nil, err
	}
	e.complete(p, names, path)
	return p, nil
}

// complete sets the fields of a view's page that are not part of the content.
func (e *Entry) complete(p *millrace.Page, names Names, path string) {
	p.URL = names.Absolute(path)
	if p.Modified = e.Date(); !e.Undated {
		p.Known |= millrace.FieldModified
	}
	p.Version = hex.EncodeToString(e.Revision)
}

// encodeContent encodes a page without blocks and date, so pages that differ only in the date have
// equal encodings. A log stores the date separately.
func encodeContent(p *millrace.Page) []byte {
	b := *p
	b.Modified, b.Known = time.Time{}, p.Known&^millrace.FieldModified
	return EncodeMeta(&b)
}

// modifiedAt returns the date of a page that changes now: the source's date if known, else now. The
// date is always later than before, and otherwise never in the future.
func modifiedAt(source time.Time, before int64, now time.Time) int64 {
	m := now.Unix()
	if !source.IsZero() {
		m = min(m, source.Unix())
	}
	if before != 0 {
		m = max(m, before+1)
	}
	return m
}
