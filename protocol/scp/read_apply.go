package scp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
)

// read applies the collections of a sitemap. The Ref.Section of a change is the section, or empty
// for "all", because a complete "all" is the complete site.
func (r *run) read(ctx context.Context, f *found) error {
	names := r.names(f.offer)
	for _, s := range r.o.Sections {
		if !slices.Contains(names, s) {
			r.Note(noteSection, f.URL, "no snapshot of section "+s)
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("%s: sitemap %s: no snapshot of the selected sections: %w", Name, f.URL, millrace.ErrNotFound)
	}
	is := cursor{Root: r.Root, Sitemap: f.URL, Expires: f.offer.expires(names), Wanted: r.o.Sections}
	// If a section was removed, only a full read shows which pages were removed with it.
	again := false
	for _, s := range r.was.Sections {
		if slices.Contains(names, s.Name) || f.offer.flawed {
			is.Sections = append(is.Sections, s)
		} else {
			again = true
		}
	}
	err := r.sections(ctx, f, names, is, again)
	if errors.Is(err, kit.ErrStop) || fatal(ctx, err) || err == nil || !slices.Equal(names, []string{every}) || len(r.o.Sections) > 0 {
		return err
	}
	// Fallback Strategy: if "all" fails, try the other sections.
	if names = r.others(f.offer); len(names) == 0 {
		return err
	}
	r.Note(ruleOf(err), f.URL, "reading the sections in place of "+every+": "+err.Error())
	r.again = true
	is.Sections = slices.Clone(r.was.Sections)
	return r.sections(ctx, f, names, is, false)
}

// sections applies sections one after the other. If a section is rejected, it continues with the
// others, and returns the first such error at the end.
func (r *run) sections(ctx context.Context, f *found, names []string, is cursor, again bool) error {
	var refused error
	complete, marked := again, false
	for i, name := range names {
		was := r.was.section(name)
		so, all, err := r.section(ctx, f, was, again)
		if err != nil {
			if errors.Is(err, kit.ErrStop) || fatal(ctx, err) {
				return err
			}
			if len(names) > 1 {
				r.Note(ruleOf(err), f.URL, "section "+name+": "+err.Error())
			}
			refused, complete = cmp.Or(refused, err), false
			continue
		}
		complete = complete && all
		if is = is.with(so); again || so.same(was) {
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
	return r.mark(is, complete, "")
}

// same reports whether two states result from the same collections.
func (s *applied) same(as applied) bool {
	return s.Snapshot.Equal(as.Snapshot) && s.Generated.Equal(as.Generated) && s.Deltas == as.Deltas && slices.Equal(s.Files, as.Files)
}

// section applies the changes of a section or, if again is set, all of its pages. complete reports
// whether all pages of the section were yielded.
func (r *run) section(ctx context.Context, f *found, was applied, again bool) (is applied, complete bool, err error) {
	snapshot, all := f.offer.of(was.Name)
	deltas := later(all, was.Generated)
	if snapshot != nil && snapshot.generated.Before(was.Snapshot) {
		err := &millrace.FormatError{
			Protocol: Name, URL: snapshot.files[0].url, Section: sectionReplay,
			Reason: fmt.Sprintf("the snapshot of %s is older than the applied one of %s", stampOf(snapshot.generated), stampOf(was.Snapshot)),
		}
		if len(deltas) == 0 {
			return was, false, &ruled{noteReplay, err}
		}
		r.Note(noteReplay, err.URL, err.Error())
		snapshot = nil
	}
	if s := r.coded(ctx, snapshot, was); s != nil {
		is, complete, err = r.snapshot(ctx, s, all, was)
		if err == nil || errors.Is(err, kit.ErrStop) || fatal(ctx, err) {
			return is, complete, err
		}
		if !errors.Is(err, millrace.ErrNotFound) {
			r.Note(ruleOf(err), s.files[0].url, err.Error())
		}
	}
	switch {
	case again && snapshot != nil:
		is = was
		is.Files = nil
	case resync(snapshot, deltas, was, r.o.Deltas):
		is = was
	default:
		is, err = r.deltas(ctx, deltas, was)
		if err == nil || snapshot == nil || !snapshot.generated.After(is.Generated) || errors.Is(err, kit.ErrStop) || fatal(ctx, err) {
			return is, false, err
		}
		r.Note(ruleOf(err), deltas[0].files[0].url, "reading the snapshot in place of the deltas: "+err.Error())
	}
	return r.snapshot(ctx, snapshot, all, is)
}

// coded returns a copy of snapshot that contains only the uncompressed file, if snapshot is new and
// the client has a dictionary for the file. Otherwise, it returns nil. Compressed with a
// dictionary, a snapshot transfers only its changes, and it shows deletions.
func (r *run) coded(ctx context.Context, snapshot *offered, was applied) *offered {
	if r.unknown || snapshot == nil || !snapshot.generated.After(was.Snapshot) || !fetch.HasDictionary(ctx, r.Client, snapshot.plain().url) {
		return nil
	}
	s := *snapshot
	s.files = []file{snapshot.plain()}
	s.files[0].coded = true
	return &s
}

const sectionReplay = "Replay Attacks"

func stampOf(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// deltas applies deltas in order.
func (r *run) deltas(ctx context.Context, deltas []*offered, was applied) (is applied, err error) {
	is = was
	for _, d := range deltas {
		if d.since.After(is.Generated) {
			r.Note(noteMissed, d.files[0].url, fmt.Sprintf("no delta contains the changes from %s to %s", stampOf(is.Generated), stampOf(d.since)))
			is.Deltas = missed // read the next snapshot
		}
		if is, err = r.take(ctx, d, is); err != nil && !errors.Is(err, millrace.ErrUnmodified) {
			return is, err
		}
	}
	return is, nil
}

// snapshot applies a snapshot and all newer deltas. It also applies deltas that were applied
// before, because the snapshot does not contain their pages.
func (r *run) snapshot(ctx context.Context, snapshot *offered, deltas []*offered, was applied) (is applied, complete bool, err error) {
	is, err = r.take(ctx, snapshot, was)
	if errors.Is(err, millrace.ErrUnmodified) {
		is, err = r.deltas(ctx, later(deltas, was.Generated), was)
		return is, false, err
	}
	if err != nil {
		return was, false, err
	}
	complete = true
	for _, d := range later(deltas, is.Generated) {
		complete = complete && !d.since.After(is.Generated)
		so, err := r.deltas(ctx, []*offered{d}, is.unconditional(d))
		if errors.Is(err, kit.ErrStop) || fatal(ctx, err) {
			return is, false, err
		}
		if err != nil { // keep the pages applied so far
			r.Note(ruleOf(err), d.files[0].url, err.Error())
			r.again = true
			break
		}
		is = so
	}
	if is.Generated.Before(was.Generated) {
		// Applied pages may come from a delta that the sitemap no longer lists.
		complete, is.Generated = false, was.Generated
	}
	return is, complete, nil
}

// unconditional removes the validators of the files of a collection from the state.
func (s applied) unconditional(o *offered) applied {
	s.Files = slices.DeleteFunc(slices.Clone(s.Files), func(h kit.Resource) bool {
		return slices.ContainsFunc(o.files, func(f file) bool { return f.url == h.URL })
	})
	return s
}
