package serving

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/static"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol/all"
)

// BuildReport is the report of `millrace build --json`.
type BuildReport struct {
	Site     string        `json:"site"`
	URL      string        `json:"url"`                 // base URL of the folder
	As       string        `json:"as"`                  // kind of the source, such as folder
	FilesURL string        `json:"files_url,omitempty"` // base URL of the SCP collections, to which the files below /scp must be uploaded; absent if it is the endpoint base
	Out      string        `json:"out"`                 // folder that was written
	Pages    int           `json:"pages"`
	Skipped  []mirror.Skip `json:"skipped"` // pages of the source that were skipped
	static.Report
	HTML    int64       `json:"html_bytes,omitempty"` // size of the HTML of the source; absent if the source is not a folder
	Host    *HostReport `json:"host,omitempty"`       // protocols that work on the host; absent after a failure
	Seconds float64     `json:"seconds"`
	Error   string      `json:"error,omitempty"`
	Code    string      `json:"code,omitempty"`
}

// WriteText writes the report as text. verbose lists the rules that the host cannot meet.
func (r *BuildReport) WriteText(w io.Writer, verbose bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d files written, %d unchanged, %d removed, %s\n", r.Out, r.Written, r.Unchanged, r.Removed, humanize.Bytes(r.Bytes))
	fmt.Fprintf(&b, "  %d pages of %s for %s, %.1f s\n", r.Pages, r.Site, r.URL, r.Seconds)
	if r.FilesURL != "" {
		fmt.Fprintf(&b, "  collections are fetched from %s/scp/: upload the files in %s there\n", r.FilesURL, filepath.Join(r.Out, "scp"))
	}
	var left ingest.SkipGroups
	for _, l := range r.LeftOut {
		left.Add(mirror.Skip{URL: l.Path, Reason: l.Reason})
	}
	for _, g := range left.Groups {
		fmt.Fprintf(&b, "  %s\n", g.Text("left out", "files"))
	}
	r.writeSizes(&b)
	if r.Host != nil {
		r.writeHost(&b, verbose)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeSizes writes the size of the files of each protocol.
func (r *BuildReport) writeSizes(b *strings.Builder) {
	var sizes []string
	for _, s := range r.Sizes {
		name := all.Label(s.Protocol)
		switch s.Protocol {
		case "":
			name = "pages and other files"
		case access.SiteProtocol:
			name = "robots.txt and similar files"
		}
		sizes = append(sizes, name+" "+humanize.Bytes(s.Bytes))
	}
	fmt.Fprintf(b, "  %s", strings.Join(sizes, ", "))
	if r.HTML > 0 {
		fmt.Fprintf(b, "; the HTML of the source is %s", humanize.Bytes(r.HTML))
	}
	b.WriteByte('\n')
}

func (r *BuildReport) writeHost(b *strings.Builder, verbose bool) {
	if r.IncompleteHeaders > 0 {
		fmt.Fprintf(b, "  %d documents lack some header fields, because %s supports at most %d rules\n", r.IncompleteHeaders, r.Host.Title, r.Rules)
	}
	for _, sentence := range r.Host.Sentences() {
		fmt.Fprintln(b, sentence)
	}
	if verbose {
		for _, u := range r.Host.Unmet {
			fmt.Fprintf(b, "  %s: %s\n", u.Rule, u.Sentence)
		}
	} else if len(r.Host.Unmet) > 0 {
		fmt.Fprintf(b, "(--verbose lists %s)\n", humanize.Quantity(int64(len(r.Host.Unmet)), "unmet rule"))
	}
}
