package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/static"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol/all"
)

// hostReport says what of the protocols a host cannot do with a folder.
type hostReport struct {
	Host  string      `json:"host"`
	Unmet []unmetRule `json:"unmet"` // every MUST that is broken there
	// Hidden are protocols that nobody finds there, because the host does not
	// say what leads to them.
	Hidden []string `json:"hidden"`
}

// unmetRule is a MUST that a host cannot meet.
type unmetRule struct {
	Protocol string `json:"protocol"`
	Rule     string `json:"rule"`
	Section  string `json:"section"`
	Sentence string `json:"sentence"`
}

// askHosts has the checker look at a finished build as each host would serve
// it: what `millrace check` will find there is known before anything is
// uploaded. Of what is fetched from elsewhere, below the URL files, nothing is
// known here: no host is blamed for it. show is called with the number of hosts
// that are done and of all.
func askHosts(ctx context.Context, b *static.Build, base, files string, show func(done, total int)) ([]hostReport, error) {
	var out []hostReport
	found := make(map[string]bool)
	hosts := b.Hosts()
	for i, h := range hosts {
		show(i, len(hosts))
		target, err := check.NewTarget(base, &http.Client{Transport: h}, &check.TargetOptions{Decode: fetch.Decode})
		if err != nil {
			return nil, err
		}
		var suites []check.Suite
		for _, room := range all.Protocols() {
			suites = append(suites, room.Suite())
		}
		report, err := check.Run(ctx, target, suites, nil)
		if err != nil {
			return nil, err
		}
		hr := hostReport{Host: h.Name, Unmet: []unmetRule{}, Hidden: []string{}}
		for _, o := range report.Outcomes {
			if o.State == check.Failed && o.Rule.Level == check.Must && !elsewhere(report.Findings, o.Rule.ID, files) {
				hr.Unmet = append(hr.Unmet, unmetRule{o.Protocol, o.Rule.ID, o.Rule.Section, o.Rule.Sentence})
			}
		}
		for name, result := range report.Protocols {
			found[name] = found[name] || result.Found
			if !result.Found {
				hr.Hidden = append(hr.Hidden, name)
			}
		}
		out = append(out, hr)
	}
	for i := range out { // what no host has, the site does not publish
		out[i].Hidden = slices.DeleteFunc(out[i].Hidden, func(name string) bool { return !found[name] })
		slices.Sort(out[i].Hidden)
	}
	return out, nil
}

// elsewhere reports whether a rule is broken below a URL alone.
func elsewhere(findings []check.Finding, rule, files string) bool {
	if files == "" {
		return false
	}
	found := false
	for _, f := range findings {
		if f.Rule == rule && f.URL != "" {
			if !strings.HasPrefix(f.URL, files+"/") {
				return false
			}
			found = true
		}
	}
	return found
}

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
