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

// take applies one collection, in the first coding that is not rejected. If the client has a
// dictionary, take first tries the uncompressed file, compressed with the dictionary. take verifies
// the whole file before it yields the first page. ErrUnmodified means that the collection was
// already applied.
func (r *run) take(ctx context.Context, o *offered, was applied) (applied, error) {
	var refused error
	files := o.files
	if f := o.plain(); len(files) > 1 && !r.unknown && fetch.HasDictionary(ctx, r.Client, f.url) {
		f.coded = true
		files = append([]file{f}, files...)
	}
	for i, f := range files {
		have := kit.Resource{URL: f.url}
		if k := slices.IndexFunc(was.Files, func(h kit.Resource) bool { return h.URL == f.url }); k >= 0 {
			have = was.Files[k]
		}
		is, err := r.takeFile(ctx, o, f, have, was)
		if err == nil || errors.Is(err, kit.ErrStop) || errors.Is(err, millrace.ErrUnmodified) || fatal(ctx, err) {
			return is, err
		}
		refused = cmp.Or(refused, err)
		switch {
		case f.coded && errors.Is(err, millrace.ErrNotFound):
			r.unknown = true
		case i < len(files)-1:
			r.Note(ruleOf(err), f.url, err.Error())
		}
	}
	return was, refused
}

func (r *run) takeFile(ctx context.Context, o *offered, f file, have kit.Resource, was applied) (applied, error) {
	s, err := r.download(ctx, f, have)
	if err != nil {
		return was, fmt.Errorf("%s: collection: %w", Name, err)
	}
	defer s.close()
	plain, err := temporary()
	if err != nil {
		return was, fmt.Errorf("%s: collection: %w", Name, err)
	}
	defer discard(plain)
	c, err := Open(s.file, s.size, &OpenOptions{Scratch: plain})
	if err == nil {
		err = r.expect(c, o, f, s, was)
	}
	if err != nil {
		return was, formatURL(err, f.url)
	}
	result, err := c.Verify(ctx)
	if err != nil {
		return was, formatURL(err, f.url)
	}
	r.noteErrors(result, c.Coding(), o, f, s)
	meta := c.Metadata()
	generated := meta.Generated.Truncate(time.Second)
	is := was.unconditional(o)
	if r.generated.IsZero() || generated.Before(r.generated) {
		r.generated = generated
	}
	if o.delta {
		is.Deltas++
		is.Generated = newest(was.Generated, generated)
		is.Files = append(is.Files, kit.Resource{URL: f.url, Validators: s.Validators})
	} else {
		is.Snapshot, is.Generated, is.Deltas, is.Pages = generated, generated, 0, o.pages
		is.Files = []kit.Resource{{URL: f.url, Validators: s.Validators}}
		if o.pages < 0 {
			is.Pages = result.Pages
		}
	}
	is.Files = is.Files[max(0, len(is.Files)-maxKnownFiles):]
	// A snapshot that is older than the applied state must not revert that state.
	return is, r.pages(ctx, c, was.Name, o.delta || generated.Before(was.Generated))
}

func newest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// expect rejects a file that contradicts its sitemap element, and a replayed file (Replay Attacks).
// It reports notes for harmless differences.
func (r *run) expect(c *Collection, o *offered, f file, s *spool, was applied) error {
	meta := c.Metadata()
	kind := "snapshot"
	if o.delta {
		kind = "delta"
	}
	at, since := meta.Generated.Truncate(time.Second), meta.Since.Truncate(time.Second)
	bad := func(rule, section, member, format string, args ...any) error {
		return &ruled{rule, &millrace.FormatError{
			Protocol: Name, Position: "line 1 (/collection/" + member + ")", Section: section, Reason: fmt.Sprintf(format, args...),
		}}
	}
	switch {
	case meta.Section != was.Name:
		return bad("sitemap/section", sectionDiscovery, "section", "section is %q, the sitemap declares %q", kit.Short(meta.Section), was.Name)
	case meta.Type != kind:
		return bad("sitemap/kind", sectionDiscovery, "type", "type is %s, the sitemap declares %s", meta.Type, kind)
	case meta.Generated.After(r.now.Add(skew)):
		return bad("metadata/generated-past", sectionReplay, "generated", "%s is in the future", stampOf(at))
	case o.delta && !at.After(was.Generated):
		return bad(noteReplay, sectionReplay, "generated", "%s is not after the applied collection of %s", stampOf(at), stampOf(was.Generated))
	case !o.delta && at.Before(was.Snapshot):
		return bad(noteReplay, sectionReplay, "generated", "%s is before the applied snapshot of %s", stampOf(at), stampOf(was.Snapshot))
	case o.delta && since.After(was.Generated) && since.After(o.since):
		return bad("sitemap/since", sectionDiscovery, "since", "since is %s, the sitemap declares %s", stampOf(since), stampOf(o.since))
	}
	url := s.url
	if at.Before(o.generated) {
		r.again = true
	}
	if !at.Equal(o.generated) {
		r.Note("sitemap/generated", url, "generated is "+stampOf(at)+", the sitemap declares "+stampOf(o.generated))
	}
	switch named, ok := suffixOf(f.url); {
	case s.decoded:
	case ok && s.coding == named && c.Coding() != named:
		r.Note("format/compression", url, fmt.Sprintf("suffix and Content-Encoding declare %q, the content is %q", named, c.Coding()))
	case s.coding != c.Coding() || ok && s.coding != named:
		r.Note("http/content-encoding", url, fmt.Sprintf("Content-Encoding is %q, the content is %q", s.coding, c.Coding()))
	}
	if s.contentType != contentType {
		r.Note("http/content-type", url, "Content-Type is "+kit.Short(s.contentType))
	}
	return nil
}

// noteErrors reports notes for the tolerated errors of a verified file.
func (r *run) noteErrors(v CheckResult, coding string, o *offered, f file, s *spool) {
	url := f.url
	named, ok := suffixOf(f.url)
	asNamed := !ok || named == coding // otherwise, a proxy has coded or decoded the file
	if f.size > 0 && s.size != f.size && asNamed {
		r.Note("sitemap/size", url, fmt.Sprintf("%d bytes, the sitemap declares %d", s.size, f.size))
	}
	switch v.Checksum {
	case "none":
		r.Note("checksum/present", url, "no checksum")
	case "empty", "zeros":
		r.Note("checksum/reading", url, "the checksum was computed with a placeholder in its place: "+v.Checksum)
	case "pages-only":
		r.Note("checksum/reading", url, "the checksum covers only the pages, not the metadata")
	}
	if v.Unknown > 0 {
		r.Note("blocks/type", url, fmt.Sprintf("dropped blocks of unknown types: %d", v.Unknown))
	}
	if n := v.Dropped - v.canonical; n > 0 {
		r.Note("blocks/url", url, fmt.Sprintf("dropped URLs that are not http or https: %d", n))
	}
	if v.canonical > 0 {
		r.Note("page/canonical", url, fmt.Sprintf("canonical URLs that are not http or https: %d", v.canonical))
	}
	if v.Clamped > 0 {
		r.Note("blocks/heading-level", url, fmt.Sprintf("headings with an invalid level: %d", v.Clamped))
	}
	if n := v.Pages + v.Skipped; o.pages >= 0 && n != o.pages {
		r.Note("sitemap/pages", url, fmt.Sprintf("%d pages, the sitemap declares %d", n, o.pages))
	}
}

// pages yields the pages of a verified collection.
func (r *run) pages(ctx context.Context, c *Collection, section string, newer bool) error {
	if section == every {
		section = ""
	}
	noted := map[string]bool{}
	note := func(skipped error, u string) {
		if rule := ruleOf(skipped); !noted[rule] {
			noted[rule] = true
			r.Note(rule, u, "skipped pages; first error: "+skipped.Error())
		}
	}
	for p, err := range c.Pages(ctx) {
		if err := ctx.Err(); err != nil {
			return err
		}
		change := millrace.Change{}
		skip, skipped := errors.AsType[*millrace.SkipError](err)
		switch {
		case skipped:
			note(err, skip.URL)
		case err != nil:
			return err
		case !r.belongs(p.URL):
			err = &millrace.SkipError{URL: p.URL, Err: &ruled{"page/site", &millrace.FormatError{
				Protocol: Name, Section: sectionDiscovery, Reason: "the page does not belong to the sitemap's site, " + r.Root,
			}}}
			note(err, p.URL)
		default:
			change = millrace.Change{
				Kind: millrace.Put, Ref: millrace.Ref{URL: p.URL, Version: p.Version, Section: section}, Page: p, Newer: newer, Time: p.Modified,
			}
		}
		if err := r.Send(change, err); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// belongs reports whether a page belongs to the site of the sitemap.
func (r *run) belongs(u string) bool {
	return slices.ContainsFunc(r.sites, func(base string) bool { return kit.SameOrigin(base, u) })
}

// formatURL adds the URL of the document to an error.
func formatURL(err error, url string) error {
	if f, ok := errors.AsType[*millrace.FormatError](err); ok && f.URL == "" {
		f.URL = url
		return err
	}
	return fmt.Errorf("%s: collection %s: %w", Name, url, err)
}
