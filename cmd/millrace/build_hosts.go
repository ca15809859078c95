package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol/all"
)

// printBuild writes a report as text. verbose lists the rules that the host cannot meet.
func printBuild(w *bytes.Buffer, r *buildReport, verbose bool) {
	fmt.Fprintf(w, "%s: %d files written, %d unchanged, %d removed, %s\n", r.Out, r.Written, r.Unchanged, r.Removed, humanize.Bytes(r.Bytes))
	fmt.Fprintf(w, "  %d pages of %s for %s, %.1f s\n", r.Pages, r.Site, r.URL, r.Seconds)
	if r.FilesURL != "" {
		fmt.Fprintf(w, "  collections are fetched from %s/scp/: upload the files in %s there\n", r.FilesURL, filepath.Join(r.Out, "scp"))
	}
	var left ingest.SkipGroups
	for _, l := range r.LeftOut {
		left.Add(mirror.Skip{URL: l.Path, Reason: l.Reason})
	}
	for _, g := range left.Groups {
		fmt.Fprintf(w, "  %s\n", g.Text("left out", "files"))
	}
	printSizes(w, r)
	if r.Host == nil {
		return
	}
	if r.Unsaid > 0 {
		fmt.Fprintf(w, "  %d documents lack some header fields, because %s has no room for more than %d rules\n", r.Unsaid, r.Host.Title, r.Rules)
	}
	for _, sentence := range r.Host.Sentences() {
		fmt.Fprintf(w, "%s\n", sentence)
	}
	switch {
	case !verbose && len(r.Host.Unmet) > 0:
		fmt.Fprintf(w, "(--verbose lists %s)\n", humanize.Quantity(int64(len(r.Host.Unmet)), "unmet rule"))
	case verbose:
		for _, u := range r.Host.Unmet {
			fmt.Fprintf(w, "  %s: %s\n", u.Rule, u.Sentence)
		}
	}
}

// printSizes writes the size of the files of each protocol.
func printSizes(w *bytes.Buffer, r *buildReport) {
	var sizes []string
	for _, s := range r.Sizes {
		name := all.Label(s.Protocol)
		switch s.Protocol {
		case "":
			name = "pages and other files"
		case access.SiteProtocol:
			name = "robots.txt and the like"
		}
		sizes = append(sizes, name+" "+humanize.Bytes(s.Bytes))
	}
	fmt.Fprintf(w, "  %s", strings.Join(sizes, ", "))
	if r.HTML > 0 {
		fmt.Fprintf(w, "; the HTML of the source has %s", humanize.Bytes(r.HTML))
	}
	w.WriteByte('\n')
}

// htmlSize returns the size of the HTML files of a folder. It skips what it cannot read.
func htmlSize(folder fs.FS) (n int64) {
	_ = fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		if ext := strings.ToLower(path.Ext(name)); err == nil && d.Type().IsRegular() && (ext == ".html" || ext == ".htm") {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
