package scp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace"
)

// read applies what a sitemap offers. Sections are in Ref.Section; those of
// "all" have none, so that a whole "all" is everything.
func (r *run) read(ctx context.Context, f *found) error {
	names := r.names(f.offer)
	for _, s := range r.o.Sections {
		if !slices.Contains(names, s) {
			r.note("section-missing", f.URL, "there is no snapshot of section "+s)
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("%s: sitemap %s: it has no snapshot of the sections that are wanted: %w", Name, f.URL, millrace.ErrNotFound)
	}
	is := cursor{Root: r.root, Sitemap: f.URL, Expires: f.offer.expires(names), Wanted: r.o.Sections}
	// Without a section of before, only everything together says what has gone
	// with it.
	anew := false
	for _, s := range r.was.Sections {
		if slices.Contains(names, s.Name) || f.offer.flawed {
			is.Sections = append(is.Sections, s)
		} else {
			anew = true
		}
	}
	err := r.sections(ctx, f, names, is, anew)
	if errors.Is(err, errStop) || fatal(ctx, err) || err == nil || !slices.Equal(names, []string{every}) || len(r.o.Sections) > 0 {
		return err
	}
	// Fallback Strategy: the parts, before the whole is given up.
	if names = r.others(f.offer); len(names) == 0 {
		return err
	}
	r.note("refused", f.URL, "its sections are read in place of "+every+": "+err.Error())
	r.again = true
	is.Sections = slices.Clone(r.was.Sections)
	return r.sections(ctx, f, names, is, false)
}

// sections applies sections one after the other. One that is refused does not
// stop the others, but makes the stream end with its error.
func (r *run) sections(ctx context.Context, f *found, names []string, is cursor, anew bool) error {
	var refused error
	whole, marked := anew, false
	for i, name := range names {
		was := r.was.section(name)
		so, all, err := r.section(ctx, f, was, anew)
		if err != nil {
			if errors.Is(err, errStop) || fatal(ctx, err) {
				return err
			}
			if len(names) > 1 {
				r.note("refused", f.URL, "section "+name+": "+err.Error())
			}
			refused, whole = cmp.Or(refused, err), false
			continue
		}
		whole = whole && all
		if is = is.with(so); anew || so.same(was) {
			continue
		}
		c := is
		if marked = i == len(names)-1 && refused == nil; marked && !r.again {
			c.Validators = f.Validators
		}
		section := name
		if name == every {
			section = ""
		}
		if err := r.mark(c, all, section); err != nil {
			return err
		}
	}
	if refused != nil || marked {
		return refused
	}
	if !r.again {
		is.Validators = f.Validators
	}
	return r.mark(is, whole, "")
}

// same reports whether nothing has been applied between two states.
func (s *applied) same(as applied) bool {
	return s.Snapshot.Equal(as.Snapshot) && s.Generated.Equal(as.Generated) && s.Deltas == as.Deltas && slices.Equal(s.Files, as.Files)
}

// section applies what is new of a section, or all of it anew. whole: every page
// of it was named.
func (r *run) section(ctx context.Context, f *found, was applied, anew bool) (is applied, whole bool, err error) {
	snapshot, all := f.offer.of(was.Name)
	deltas := later(all, was.Generated)
	if snapshot != nil && snapshot.generated.Before(was.Snapshot) {
		err := &millrace.FormatError{
			Protocol: Name, URL: snapshot.files[0].url, Section: sectionReplay,
			Reason: fmt.Sprintf("it was generated %s, before the snapshot that was applied last, of %s", stampOf(snapshot.generated), stampOf(was.Snapshot)),
		}
		if len(deltas) == 0 {
			return was, false, err
		}
		r.note("refused", err.URL, err.Error())
		snapshot = nil
	}
	switch {
	case anew && snapshot != nil:
		is = was
		is.Files = nil
	case resync(snapshot, deltas, was, r.o.Deltas):
		is = was
	default:
		is, err = r.deltas(ctx, deltas, was)
		if err == nil || snapshot == nil || !snapshot.generated.After(is.Generated) || errors.Is(err, errStop) || fatal(ctx, err) {
			return is, false, err
		}
		r.note("refused", deltas[0].files[0].url, "the snapshot is read in place of the deltas: "+err.Error())
	}
	return r.snapshot(ctx, snapshot, all, is)
}

const sectionReplay = "Replay Attacks"

func stampOf(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// deltas applies deltas in their order.
func (r *run) deltas(ctx context.Context, deltas []*offered, was applied) (is applied, err error) {
	is = was
	for _, d := range deltas {
		if d.since.After(is.Generated) {
			r.note("missed-deltas", d.files[0].url, fmt.Sprintf("nothing says what has changed from %s to %s", stampOf(is.Generated), stampOf(d.since)))
			is.Deltas = max(is.Deltas, r.o.Deltas) // read the next snapshot
		}
		if is, err = r.take(ctx, d, is, true); err != nil && !errors.Is(err, millrace.ErrUnmodified) {
			return is, err
		}
	}
	return is, nil
}

// snapshot applies a snapshot and the deltas that are newer, also those that
// have been applied before: what they name is not in the snapshot.
func (r *run) snapshot(ctx context.Context, snapshot *offered, deltas []*offered, was applied) (is applied, whole bool, err error) {
	is, err = r.take(ctx, snapshot, was, true)
	if errors.Is(err, millrace.ErrUnmodified) {
		is, err = r.deltas(ctx, later(deltas, was.Generated), was)
		return is, false, err
	}
	if err != nil {
		return was, false, err
	}
	whole = true
	for _, d := range later(deltas, is.Generated) {
		whole = whole && !d.since.After(is.Generated)
		so, err := r.deltas(ctx, []*offered{d}, is.unconditional(d))
		if errors.Is(err, errStop) || fatal(ctx, err) {
			return is, false, err
		}
		if err != nil { // the pages before it stand
			r.note("refused", d.files[0].url, err.Error())
			r.again = true
			break
		}
		is = so
	}
	if is.Generated.Before(was.Generated) {
		// A page may have come with a delta that is not there any more.
		whole, is.Generated = false, was.Generated
	}
	return is, whole, nil
}

// unconditional forgets the files of a collection.
func (s applied) unconditional(o *offered) applied {
	s.Files = slices.DeleteFunc(slices.Clone(s.Files), func(h held) bool {
		return slices.ContainsFunc(o.files, func(f file) bool { return f.url == h.URL })
	})
	return s
}

// take applies one collection, in the first of its codings that is not refused.
// Nothing of it is given before all of it is verified. ErrUnmodified: it has
// been applied before.
func (r *run) take(ctx context.Context, o *offered, was applied, conditional bool) (applied, error) {
	var refused error
	for i, f := range o.files {
		have := held{URL: f.url}
		if k := slices.IndexFunc(was.Files, func(h held) bool { return h.URL == f.url }); conditional && k >= 0 {
			have = was.Files[k]
		}
		is, err := r.takeFile(ctx, o, f, have, was)
		if err == nil || errors.Is(err, errStop) || errors.Is(err, millrace.ErrUnmodified) || fatal(ctx, err) {
			return is, err
		}
		refused = cmp.Or(refused, err)
		if i < len(o.files)-1 {
			r.note("refused", f.url, err.Error())
		}
	}
	return was, refused
}

func (r *run) takeFile(ctx context.Context, o *offered, f file, have held, was applied) (applied, error) {
	s, err := r.download(ctx, f, have)
	if err != nil {
		return was, fmt.Errorf("%s: collection: %w", Name, err)
	}
	defer s.close()
	c, err := Open(s.file, s.size, nil)
	if err == nil {
		err = r.expect(c, o, s, was)
	}
	if err != nil {
		return was, formatURL(err, f.url)
	}
	verdict, err := c.Verify(ctx)
	if err != nil {
		return was, formatURL(err, f.url)
	}
	r.judge(verdict, o, f, s)
	meta := c.Metadata()
	generated := meta.Generated.Truncate(time.Second)
	is := was
	if o.delta {
		is.Deltas++
		is.Generated = newest(was.Generated, generated)
		is.Files = append(slices.Clone(was.Files), held{f.url, s.Validators})
	} else {
		is.Snapshot, is.Generated, is.Deltas, is.Pages = generated, generated, 0, o.pages
		is.Files = []held{{f.url, s.Validators}}
		if o.pages < 0 {
			is.Pages = verdict.Pages
		}
	}
	is.Files = is.Files[max(0, len(is.Files)-maxHeld):]
	// A snapshot that is older than what was applied does not take it back.
	return is, r.pages(ctx, c, was.Name, o.delta || generated.Before(was.Generated))
}

func newest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// expect refuses a file that is not the one that the sitemap names, and one
// that is replayed (Replay Attacks).
func (r *run) expect(c *Collection, o *offered, s *spool, was applied) error {
	meta := c.Metadata()
	kind := "snapshot"
	if o.delta {
		kind = "delta"
	}
	at, since := meta.Generated.Truncate(time.Second), meta.Since.Truncate(time.Second)
	bad := func(section, member, format string, args ...any) error {
		return &millrace.FormatError{Protocol: Name, Position: "line 1 (/collection/" + member + ")", Section: section, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case meta.Section != was.Name:
		return bad(sectionDiscovery, "section", "it is of section %q, the sitemap says %q", short(meta.Section), was.Name)
	case meta.Type != kind:
		return bad(sectionDiscovery, "type", "it is a %s, the sitemap says %s", meta.Type, kind)
	case meta.Generated.After(r.now.Add(skew)):
		return bad(sectionReplay, "generated", "%s is in the future", stampOf(at))
	case o.delta && !at.After(was.Generated):
		return bad(sectionReplay, "generated", "%s is not after what was applied, of %s", stampOf(at), stampOf(was.Generated))
	case !o.delta && at.Before(was.Snapshot):
		return bad(sectionReplay, "generated", "%s is before the snapshot that was applied last, of %s", stampOf(at), stampOf(was.Snapshot))
	case o.delta && since.After(was.Generated) && since.After(o.since):
		return bad(sectionDiscovery, "since", "it starts at %s, the sitemap says %s", stampOf(since), stampOf(o.since))
	}
	url := s.url
	if at.Before(o.generated) {
		r.again = true
		r.note("stale", url, "it was generated "+stampOf(at)+", the sitemap says "+stampOf(o.generated))
	}
	if s.coding != "" || c.Coding() != "" {
		if !s.decoded && s.coding != c.Coding() {
			r.note("content-encoding", url, fmt.Sprintf("Content-Encoding is %q, its bytes are %q", s.coding, c.Coding()))
		}
	}
	if s.contentType != contentType {
		r.note("content-type", url, "Content-Type is "+short(s.contentType))
	}
	return nil
}

// judge notes what is odd about a file that was verified.
func (r *run) judge(v Verdict, o *offered, f file, s *spool) {
	url := f.url
	if f.size > 0 && s.size != f.size {
		r.note("sitemap-size", url, fmt.Sprintf("it has %d bytes, the sitemap says %d", s.size, f.size))
	}
	switch v.Checksum {
	case "none":
		r.note("checksum", url, "it has no checksum")
	case "pages-only":
		r.note("checksum", url, "its checksum is of the pages alone: nothing holds the metadata")
	}
	if n := v.Pages + v.Skipped; o.pages >= 0 && n != o.pages {
		r.note("sitemap-pages", url, fmt.Sprintf("it has %d pages, the sitemap says %d", n, o.pages))
	}
}

// pages gives the pages of a verified collection.
func (r *run) pages(ctx context.Context, c *Collection, section string, newer bool) error {
	if section == every {
		section = ""
	}
	for p, err := range c.Pages(ctx) {
		if err := ctx.Err(); err != nil {
			return err
		}
		change := millrace.Change{}
		if _, skip := errors.AsType[*millrace.SkipError](err); err != nil && !skip {
			return err
		}
		switch {
		case err != nil:
		case !r.ours(p.URL):
			err = &millrace.SkipError{URL: p.URL, Err: &millrace.FormatError{
				Protocol: Name, Section: "Content Inclusion Policy", Reason: "it is no page of the sitemap's site, " + r.root,
			}}
		default:
			change = millrace.Change{
				Kind: millrace.Put, Ref: millrace.Ref{URL: p.URL, Version: p.Version, Section: section}, Page: p, Newer: newer, Time: p.Modified,
			}
		}
		if err := r.give(change, err); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// ours reports whether a page is one of the site that the sitemap is of.
func (r *run) ours(u string) bool {
	return slices.ContainsFunc(r.sites, func(base string) bool { return sameOrigin(base, u) })
}

// formatURL names the document of a format error.
func formatURL(err error, url string) error {
	if f, ok := errors.AsType[*millrace.FormatError](err); ok && f.URL == "" {
		f.URL = url
		return err
	}
	return fmt.Errorf("%s: collection %s: %w", Name, url, err)
}
