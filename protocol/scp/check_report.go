package scp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// FileReport is the result of verifying an SCP file.
type FileReport struct {
	File     string        `json:"file"`
	ID       string        `json:"id"`      // ID of the collection
	Section  string        `json:"section"` // section of the collection
	Type     string        `json:"type"`    // snapshot or delta
	Pages    int           `json:"pages"`
	Skipped  int           `json:"skipped"`  // number of rejected pages
	Checksum string        `json:"checksum"` // form of the file that the checksum is for; "" if the file was rejected before the comparison
	Error    string        `json:"error"`
	Code     string        `json:"code,omitempty"`
	Refused  []RefusedPage `json:"refused,omitempty"` // rejected pages, at most 1000
}

// RefusedPage is a page of a collection that readers skip.
type RefusedPage struct {
	URL    string `json:"url"` // URL of the page; "" if the line contains none
	Code   string `json:"code"`
	Reason string `json:"reason"`
}

const maxRefused = 1000

// Fail sets the error of a report. err may be nil.
func (r *FileReport) Fail(err error) {
	if err != nil {
		r.Error, r.Code = err.Error(), millrace.ErrorCode(err)
	}
}

// Report verifies a file and lists the rejected pages. The returned error is also in the report.
func (f *File) Report(ctx context.Context) (*FileReport, error) {
	f.Step("verify", 1)
	r := new(FileReport)
	_, err := f.verify(ctx, r)
	if err == nil && r.Skipped > 0 {
		err = f.refused(ctx, r)
	}
	r.Fail(err)
	return r, err
}

// verify verifies the file and records the result in r.
func (f *File) verify(ctx context.Context, r *FileReport) (CheckResult, error) {
	m := f.Metadata()
	r.ID, r.Section, r.Type = m.ID, m.Section, m.Type
	found, err := f.Verify(ctx)
	r.Pages, r.Skipped, r.Checksum = found.Pages, found.Skipped, found.Checksum
	return found, err
}

// refused lists the first rejected pages of a verified file.
func (f *File) refused(ctx context.Context, r *FileReport) error {
	for _, err := range f.Pages(ctx) {
		skip, ok := errors.AsType[*millrace.SkipError](err)
		if err != nil && !ok {
			return err
		}
		if ok {
			r.Refused = append(r.Refused, RefusedPage{strings.Clone(skip.URL), millrace.ErrorCode(skip.Err), skip.Err.Error()})
		}
		if len(r.Refused) == min(r.Skipped, maxRefused) {
			break
		}
	}
	return nil
}

// String returns the report as text.
func (r *FileReport) String() string {
	if r.Error != "" {
		return r.Error
	}
	if r.Skipped == 0 {
		return fmt.Sprintf("good: %s of %s, %d pages, %s", r.Type, r.Section, r.Pages, checksums[r.Checksum])
	}
	s := fmt.Sprintf("%s of %s, %d pages, %d refused, %s", r.Type, r.Section, r.Pages, r.Skipped, checksums[r.Checksum])
	for _, r := range r.Refused {
		s += fmt.Sprintf("\n  %s: %s", cmp.Or(r.URL, "a page without URL"), r.Reason)
	}
	if n := r.Skipped - len(r.Refused); n > 0 {
		s += fmt.Sprintf("\n  and %d more", n)
	}
	return s
}

// checksums contains the text for each value of CheckResult.Checksum.
var checksums = map[string]string{
	"cut":        "checksum holds",
	"empty":      "checksum matches with an empty value in its place",
	"zeros":      "checksum matches with zeros in its place",
	"pages-only": "checksum matches the pages; it does not cover the first line",
	"none":       "no checksum",
	"bad":        "checksum does not match",
}

// Inspection contains statistics about a file.
type Inspection struct {
	FileReport
	Generated  time.Time      `json:"generated,omitzero"`         // time when the collection was generated
	Since      time.Time      `json:"since,omitzero"`             // start of the period of a delta
	Version    string         `json:"version"`                    // version of the format
	Claimed    string         `json:"claimed_checksum,omitempty"` // checksum in the metadata
	Coding     string         `json:"coding"`                     // compression; "" if none
	Size       int64          `json:"size"`                       // size of the file in bytes
	Bytes      int64          `json:"bytes"`                      // decoded size in bytes
	Ratio      float64        `json:"ratio"`                      // compression ratio
	Duplicates int            `json:"duplicates"`                 // number of pages with the URL of an earlier page
	Sections   map[string]int `json:"sections"`                   // number of pages by the first segment of their path
	Blocks     map[string]int `json:"blocks"`                     // number of blocks by type
	Unknown    int            `json:"unknown_blocks"`             // number of blocks of unknown types
	Dropped    int            `json:"dropped_urls"`               // number of URLs that were dropped
	Clamped    int            `json:"clamped_headings"`           // number of headings whose level was corrected
}

// Inspect verifies a file and counts the content of its pages. It stops at the first fatal error,
// which is also in the inspection.
func (f *File) Inspect(ctx context.Context) (*Inspection, error) {
	m := f.Metadata()
	r := &Inspection{
		Generated: m.Generated, Since: m.Since, Version: m.Version, Claimed: m.Checksum, Coding: f.Coding(), Size: f.Size,
		Sections: map[string]int{}, Blocks: map[string]int{},
	}
	f.Step("inspect", 2)
	v, err := f.verify(ctx, &r.FileReport)
	r.Bytes, r.Unknown, r.Dropped, r.Clamped = v.Bytes, v.Unknown, v.Dropped, v.Clamped
	r.Ratio = float64(v.Bytes*100/max(1, f.Size)) / 100
	if err == nil {
		err = r.count(ctx, f)
	}
	r.Fail(err)
	return r, err
}

const (
	maxInspected = 1000 // maximum number of sections that are counted separately
	others       = "(others)"
)

// count counts the sections, blocks and duplicate URLs in a verified file. It stores eight bytes
// per page.
func (r *Inspection) count(ctx context.Context, f *File) error {
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
		if _, known := r.Sections[section]; !known && len(r.Sections) >= maxInspected {
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

// firstSegment returns the first path segment of a URL, with its leading "/".
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

// WriteText writes the inspection as text.
func (r *Inspection) WriteText(w io.Writer) error {
	b := new(bytes.Buffer)
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
	line("pages", "%d, %d skipped, %d with the URL of an earlier page", r.Pages, r.Skipped, r.Duplicates)
	writeCounts(b, "sections", r.Sections)
	writeCounts(b, "blocks", r.Blocks)
	if r.Unknown+r.Dropped+r.Clamped > 0 {
		line("invalid", "%d blocks of unknown types, %d invalid URLs, %d headings with an invalid level", r.Unknown, r.Dropped, r.Clamped)
	}
	if r.Error != "" {
		line("refused", "%s", r.Error)
	}
	_, err := b.WriteTo(w)
	return err
}

// writeCounts writes the largest counts, one per line.
func writeCounts(w io.Writer, name string, n map[string]int) {
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
