package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/mirror"
)

// printBuild prints a report for a person.
func printBuild(w io.Writer, r *buildReport) error {
	b := fmt.Appendf(nil, "%s: %d files written, %d unchanged, %d removed, %s\n", r.Out, r.Written, r.Unchanged, r.Removed, humanize.Bytes(r.Bytes))
	b = fmt.Appendf(b, "  %d pages of %s for %s, %.1f s\n", r.Pages, r.Site, r.URL, r.Seconds)
	if r.FilesURL != "" {
		b = fmt.Appendf(b, "  collections are fetched from %s/scp/: put there what is in %s\n", r.FilesURL, filepath.Join(r.Out, "scp"))
	}
	var left ingest.SkipGroups
	for _, l := range r.LeftOut {
		left.Add(mirror.Skip{URL: l.Path, Reason: l.Reason})
	}
	for _, g := range left.Groups {
		b = fmt.Appendf(b, "  %s\n", g.Text("left out", "files"))
	}
	if r.Aside > 0 {
		b = fmt.Appendf(b, "  %d documents have a page of the site for a folder, and lie aside: hosts find them by %s\n", r.Aside, "_redirects, .millrace/nginx.conf or .millrace/Caddyfile")
	}
	if r.Unsaid > 0 {
		b = fmt.Appendf(b, "  _headers has %d rules and no place for all that should be said of %d documents\n", r.Rules, r.Unsaid)
	}
	for _, h := range r.Hosts {
		switch {
		case len(h.Unmet)+len(h.Hidden) == 0:
			b = fmt.Appendf(b, "%s: meets every MUST\n", h.Host)
		case len(h.Unmet) == 0:
			b = fmt.Appendf(b, "%s:\n", h.Host)
		default:
			b = fmt.Appendf(b, "%s: cannot meet\n", h.Host)
		}
		for _, name := range h.Hidden {
			b = fmt.Appendf(b, "  %s is not found: nothing that this host says leads to it\n", label(name))
		}
		for _, u := range h.Unmet {
			b = fmt.Appendf(b, "  %s: %s\n", u.Rule, u.Sentence)
		}
	}
	_, err := w.Write(b)
	return err
}
