package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol/scp"
)

// scpCommand has the commands for collections of SCP as files.
type scpCommand struct {
	Inspect scpInspectCommand `cmd:"" help:"Show what a collection of SCP is, and what is in it."`
	Verify  scpVerifyCommand  `cmd:"" help:"Check collections of SCP: coding, limits, checksum, every line."`
	Cat     scpCatCommand     `cmd:"" help:"Print the pages of a collection of SCP as JSON Lines."`
}

type scpVerifyCommand struct {
	common
	remote
	Files []string `arg:"" name:"file" help:"Collections: FILEs, URLs, or - for standard input."`
}

// scpVerdict is what `millrace scp verify --json` prints of a file.
type scpVerdict struct {
	File     string `json:"file"`
	ID       string `json:"id"`
	Section  string `json:"section"`
	Type     string `json:"type"`
	Pages    int    `json:"pages"`
	Skipped  int    `json:"skipped"`  // pages that are refused
	Checksum string `json:"checksum"` // how it was understood; "" = refused before that was known
	Error    string `json:"error"`
	Code     string `json:"code,omitempty"` // of the error
	// Refused are the first of the pages that are refused, at most mostRefused.
	Refused []refusedPage `json:"refused,omitempty"`
}

// refusedPage is a page of a collection that readers skip.
type refusedPage struct {
	URL    string `json:"url"` // "" if the line does not say
	Code   string `json:"code"`
	Reason string `json:"reason"`
}

// mostRefused is how many refused pages of a file are named.
const mostRefused = 1000

// Run verifies files one after the other. A file or a page that is refused is a
// failure.
func (c *scpVerifyCommand) Run(ctx context.Context, p *process) error {
	var verdicts []scpVerdict
	failed := false
	for _, name := range c.Files {
		v := scpVerdict{File: name}
		err := c.verify(ctx, p, name, &v)
		if _, usage := errors.AsType[usageError](err); usage || ctx.Err() != nil {
			return cmp.Or(err, ctx.Err())
		}
		if err != nil {
			v.Error, v.Code = err.Error(), millrace.ErrorCode(err)
		}
		failed = failed || err != nil || v.Skipped > 0
		verdicts = append(verdicts, v)
	}
	err := p.report(oneOrAll(verdicts), func(w *bytes.Buffer) {
		for i := range verdicts {
			fmt.Fprintf(w, "%s: %s\n", verdicts[i].File, verdicts[i].text())
		}
	})
	if err == nil && failed {
		err = errReported
	}
	return err
}

func (c *scpVerifyCommand) verify(ctx context.Context, p *process, name string, v *scpVerdict) error {
	f, err := openSCP(ctx, p, &c.remote, name)
	if err != nil {
		return err
	}
	defer f.close()
	f.watch("verify", 1)
	found, err := f.verify(ctx, v)
	f.end()
	if err != nil || found.Skipped == 0 {
		return err
	}
	for _, err := range f.Pages(ctx) {
		skip, ok := errors.AsType[*millrace.SkipError](err)
		if err != nil && !ok {
			return err
		}
		if ok {
			v.Refused = append(v.Refused, refusedPage{strings.Clone(skip.URL), millrace.ErrorCode(skip.Err), skip.Err.Error()})
		}
		if len(v.Refused) == min(v.Skipped, mostRefused) {
			break
		}
	}
	return nil
}

// verify goes through the file, and says in v what it found.
func (f *scpFile) verify(ctx context.Context, v *scpVerdict) (scp.Verdict, error) {
	m := f.Metadata()
	v.ID, v.Section, v.Type = m.ID, m.Section, m.Type
	found, err := f.Verify(ctx)
	v.Pages, v.Skipped, v.Checksum = found.Pages, found.Skipped, found.Checksum
	return found, err
}

// text says the same to a person.
func (v *scpVerdict) text() string {
	if v.Error != "" {
		return v.Error
	}
	if v.Skipped == 0 {
		return fmt.Sprintf("good: %s of %s, %d pages, %s", v.Type, v.Section, v.Pages, checksums[v.Checksum])
	}
	s := fmt.Sprintf("%s of %s, %d pages, %d refused, %s", v.Type, v.Section, v.Pages, v.Skipped, checksums[v.Checksum])
	for _, r := range v.Refused {
		s += fmt.Sprintf("\n  %s: %s", cmp.Or(r.URL, "a page without URL"), r.Reason)
	}
	if n := v.Skipped - len(v.Refused); n > 0 {
		s += fmt.Sprintf("\n  and %d more", n)
	}
	return s
}

// checksums say how a checksum was understood.
var checksums = map[string]string{
	"cut":        "checksum holds",
	"empty":      "checksum holds with an empty one in its place",
	"zeros":      "checksum holds with zeros in its place",
	"pages-only": "checksum holds for the pages, nothing holds the first line",
	"none":       "no checksum",
	"bad":        "checksum does not hold",
}

type scpInspectCommand struct {
	common
	remote
	File string `arg:"" help:"Collection: a FILE, a URL, or - for standard input."`
}

// scpReport is what `millrace scp inspect --json` prints.
type scpReport struct {
	scpVerdict
	Generated  time.Time      `json:"generated,omitzero"`
	Since      time.Time      `json:"since,omitzero"`
	Version    string         `json:"version"`
	Claimed    string         `json:"claimed_checksum,omitempty"`
	Coding     string         `json:"coding"` // "" = none
	Size       int64          `json:"size"`   // bytes of the file
	Bytes      int64          `json:"bytes"`  // when it is decoded
	Ratio      float64        `json:"ratio"`  // of these
	Duplicates int            `json:"duplicates"`
	Sections   map[string]int `json:"sections"` // pages by the first segments of their paths
	Blocks     map[string]int `json:"blocks"`   // by type
	Unknown    int            `json:"unknown_blocks"`
	Dropped    int            `json:"dropped_urls"`
	Clamped    int            `json:"clamped_headings"`
}

// Run shows what is in a file, also in one that is refused, as far as it goes.
func (c *scpInspectCommand) Run(ctx context.Context, p *process) error {
	f, err := openSCP(ctx, p, &c.remote, c.File)
	if err != nil {
		if _, usage := errors.AsType[usageError](err); usage {
			return err
		}
		if err = fmt.Errorf("%s: %w", c.File, err); !c.JSON || ctx.Err() != nil {
			return err
		}
		none := &scpReport{scpVerdict: scpVerdict{File: c.File, Error: err.Error(), Code: millrace.ErrorCode(err)}, Sections: map[string]int{}, Blocks: map[string]int{}}
		return cmp.Or(p.report(none, none.text), errReported)
	}
	defer f.close()
	m := f.Metadata()
	r := &scpReport{
		scpVerdict: scpVerdict{File: c.File},
		Generated:  m.Generated, Since: m.Since, Version: m.Version, Claimed: m.Checksum, Coding: f.Coding(), Size: f.size,
		Sections: map[string]int{}, Blocks: map[string]int{},
	}
	f.watch("inspect", 2)
	v, err := f.verify(ctx, &r.scpVerdict)
	r.Bytes, r.Unknown, r.Dropped, r.Clamped = v.Bytes, v.Unknown, v.Dropped, v.Clamped
	r.Ratio = float64(v.Bytes*100/max(1, f.size)) / 100
	if err == nil {
		err = r.count(ctx, f)
	}
	f.end()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		r.Error, r.Code = err.Error(), millrace.ErrorCode(err)
	}
	if err := p.report(r, r.text); err != nil {
		return err
	}
	if r.Error != "" {
		return errReported
	}
	return nil
}

const (
	maxCounted = 1000 // sections that are counted one by one
	others     = "(others)"
)

// count counts what the pages of a verified file have. Of a page it keeps eight
// bytes.
func (r *scpReport) count(ctx context.Context, f *scpFile) error {
	seed := maphash.MakeSeed()
	var urls []uint64
	for page, err := range f.Pages(ctx) {
		if _, skip := errors.AsType[*millrace.SkipError](err); skip {
			continue
		}
		if err != nil {
			return err
		}
		urls = append(urls, maphash.String(seed, page.URL))
		section := strings.Clone(firstSegment(page.URL))
		if _, known := r.Sections[section]; !known && len(r.Sections) >= maxCounted {
			section = others
		}
		r.Sections[section]++
		for i := range page.Blocks {
			r.Blocks[string(page.Blocks[i].Type)]++
		}
	}
	slices.Sort(urls)
	r.Duplicates = len(urls) - len(slices.Compact(urls))
	return nil
}

// firstSegment gives "/" and the first segment of the path of a URL.
func firstSegment(u string) string {
	_, rest, _ := strings.Cut(u, "://")
	i := strings.IndexByte(rest, '/')
	if i < 0 {
		return "/"
	}
	path := rest[i:]
	if end := strings.IndexAny(path[1:], "/?#"); end >= 0 {
		path = path[:end+1]
	}
	return path
}

func (r *scpReport) text(b *bytes.Buffer) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("file", "%s", r.File)
	line("id", "%s", r.ID)
	line("section", "%s", r.Section)
	line("type", "%s", r.Type)
	line("generated", "%s", r.Generated.Format(time.RFC3339Nano))
	if !r.Since.IsZero() {
		line("since", "%s", r.Since.Format(time.RFC3339Nano))
	}
	line("version", "%s", r.Version)
	line("coding", "%s", cmp.Or(r.Coding, "none"))
	line("size", "%d bytes, %d decoded, ratio %.2f", r.Size, r.Bytes, r.Ratio)
	line("checksum", "%s", cmp.Or(strings.TrimPrefix(checksums[r.Checksum], "checksum "), "not known"))
	line("pages", "%d, %d skipped, %d of a URL that was there before", r.Pages, r.Skipped, r.Duplicates)
	counts(b, "sections", r.Sections)
	counts(b, "blocks", r.Blocks)
	if r.Unknown+r.Dropped+r.Clamped > 0 {
		line("odd", "%d blocks of unknown types, %d URLs that are none, %d headings of no level", r.Unknown, r.Dropped, r.Clamped)
	}
	if r.Error != "" {
		line("refused", "%s", r.Error)
	}
}

// counts writes the largest of some counts, a line each.
func counts(w io.Writer, name string, n map[string]int) {
	const most = 20
	keys := slices.SortedFunc(maps.Keys(n), func(a, b string) int {
		return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a, b))
	})
	for i, k := range keys {
		if i == most {
			fmt.Fprintf(w, "%-12s … and %d more\n", "", len(keys)-most)
			break
		}
		fmt.Fprintf(w, "%-12s %7d %s\n", name, n[k], k)
		name = ""
	}
}

type scpCatCommand struct {
	common
	remote
	File string `arg:"" help:"Collection: a FILE, a URL, or - for standard input."`
}

// Run verifies a file, then prints its pages: a file that is refused has none.
func (c *scpCatCommand) Run(ctx context.Context, p *process) error {
	err := c.cat(ctx, p)
	if _, usage := errors.AsType[usageError](err); err == nil || usage {
		return err
	}
	return fmt.Errorf("%s: %w", c.File, err)
}

func (c *scpCatCommand) cat(ctx context.Context, p *process) error {
	f, err := openSCP(ctx, p, &c.remote, c.File)
	if err != nil {
		return err
	}
	defer f.close()
	f.watch("verify", 1)
	_, err = f.Verify(ctx)
	f.end()
	if err != nil {
		return err
	}
	if !terminal.Is(p.stdout, p.lookup) {
		f.watch("print", 1)
		defer f.end()
	}
	out := bufio.NewWriterSize(p.stdout, 64<<10)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	var skips ingest.SkipGroups
	defer func() { ingest.LogSkips(p.log.With("file", f.name), skips.Groups) }()
	for page, err := range f.Pages(ctx) {
		if skip, ok := errors.AsType[*millrace.SkipError](err); ok {
			skips.Add(mirror.Skip{URL: strings.Clone(skip.URL), Code: millrace.ErrorCode(skip.Err), Reason: skip.Err.Error()})
			continue
		}
		if err == nil {
			err = e.Encode(page)
		}
		if err != nil {
			return errors.Join(err, out.Flush())
		}
	}
	return out.Flush()
}
