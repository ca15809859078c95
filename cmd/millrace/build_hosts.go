package main

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol/all"
)

// printBuild writes a report as text.
func printBuild(w *bytes.Buffer, r *buildReport) {
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
	if r.Separate > 0 {
		fmt.Fprintf(w, "  %d documents are stored separately, because a page of the site has the name of their folder; hosts map them by %s\n", r.Separate, "_redirects, .millrace/nginx.conf or .millrace/Caddyfile")
	}
	if r.Unsaid > 0 {
		fmt.Fprintf(w, "  _headers has %d rules; %d documents lack some header fields, because the file has no room for more rules\n", r.Rules, r.Unsaid)
	}
	for _, h := range r.Hosts {
		switch {
		case len(h.Unmet)+len(h.Hidden) == 0:
			fmt.Fprintf(w, "%s: meets every MUST\n", h.Host)
		case len(h.Unmet) == 0:
			fmt.Fprintf(w, "%s:\n", h.Host)
		default:
			fmt.Fprintf(w, "%s: cannot meet\n", h.Host)
		}
		for _, name := range h.Hidden {
			fmt.Fprintf(w, "  %s cannot be discovered: no response of this host links to it\n", all.Label(name))
		}
		for _, u := range h.Unmet {
			fmt.Fprintf(w, "  %s: %s\n", u.Rule, u.Sentence)
		}
	}
}
