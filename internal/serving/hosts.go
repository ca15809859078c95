package serving

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/static"
	"github.com/millrace/millrace/protocol/all"
)

// HostReport describes which protocols work on the host of a build.
type HostReport struct {
	Host   string      `json:"host"`   // name of the host, such as netlify
	Title  string      `json:"-"`      // display name of the host, such as Netlify
	Upload string      `json:"upload"` // instructions for uploading the folder and for choosing its address
	Works  []string    `json:"works"`  // protocols that meet every MUST there
	Unmet  []UnmetRule `json:"unmet"`  // MUST rules that the host cannot meet
	Hidden []string    `json:"hidden"` // published protocols that clients cannot discover there
}

// UnmetRule is a MUST that a host cannot meet.
type UnmetRule struct {
	Protocol string `json:"protocol"`
	Rule     string `json:"rule"`     // ID of the rule
	Section  string `json:"section"`  // section of the specification
	Sentence string `json:"sentence"` // sentence of the rule
}

// AskHost checks a finished build as its host would serve it. It reports the findings that
// `millrace check` would report after the upload. published are the protocols of the site. AskHost
// ignores failures at URLs below files, the base URL of the files on another host. If files is
// empty, there are none.
func AskHost(ctx context.Context, b *static.Build, base, files string, published []edition.Protocol) (*HostReport, error) {
	h := b.Host()
	target, err := check.NewTarget(base, &http.Client{Transport: h}, &check.TargetOptions{Decode: fetch.Decode})
	if err != nil {
		return nil, err
	}
	var suites []check.Suite
	for _, proto := range all.Protocols() {
		if slices.ContainsFunc(published, func(p edition.Protocol) bool { return p.Name == proto.Name }) {
			suites = append(suites, proto.Suite())
		}
	}
	report, err := check.Run(ctx, target, suites, nil)
	if err != nil {
		return nil, err
	}
	out := &HostReport{Host: h.Name, Title: h.Title, Upload: h.Upload, Works: []string{}, Unmet: []UnmetRule{}, Hidden: []string{}}
	for _, o := range report.Outcomes {
		if o.State == check.Failed && o.Rule.Level == check.Must && !elsewhere(report.Findings, o.Rule.ID, files) {
			out.Unmet = append(out.Unmet, UnmetRule{o.Protocol, o.Rule.ID, o.Rule.Section, o.Rule.Sentence})
		}
	}
	for _, p := range published {
		switch {
		case !report.Protocols[p.Name].Found && !slices.ContainsFunc(b.Report.Sizes, func(s static.Size) bool { return s.Protocol == p.Name }):
			// All documents of this protocol are on another host.
		case !report.Protocols[p.Name].Found:
			out.Hidden = append(out.Hidden, p.Name)
		case !slices.ContainsFunc(out.Unmet, func(u UnmetRule) bool { return u.Protocol == p.Name }):
			out.Works = append(out.Works, p.Name)
		}
	}
	if at, err := url.Parse(base); err == nil && strings.Trim(at.Path, "/") != "" && len(out.Hidden) > 0 {
		root := url.URL{Scheme: at.Scheme, Host: at.Host, Path: "/"}
		out.Upload = fmt.Sprintf("%s; clients look for some protocols only at the root of a domain, so use a custom domain, or publish the site at %s.",
			strings.TrimSuffix(out.Upload, "."), root.String())
	}
	return out, nil
}

// Sentences returns three texts: which protocols work on the host, what does not work, and how to
// upload the folder.
func (r *HostReport) Sentences() [3]string {
	var works, partly, hidden []string
	rules := make(map[string]int)
	for _, u := range r.Unmet {
		rules[u.Protocol]++
	}
	for _, p := range all.Protocols() {
		switch n := rules[p.Name]; {
		case slices.Contains(r.Works, p.Name):
			works = append(works, p.Label)
		case slices.Contains(r.Hidden, p.Name):
			hidden = append(hidden, p.Label)
		case n > 0:
			partly = append(partly, p.Label)
		}
	}
	out := [3]string{"No protocol works in full on " + r.Title + ".", "Nothing is missing.", r.Upload}
	if len(works) > 0 {
		out[0] = fmt.Sprintf("On %s, %s work in full.", r.Title, strings.Join(works, ", "))
		if len(works) == 1 {
			out[0] = fmt.Sprintf("On %s, %s works in full.", r.Title, works[0])
		}
	}
	var lacks []string
	if len(partly) > 0 {
		lacks = append(lacks, fmt.Sprintf("%s can be read, but not by strict clients, because the host does not send every header field", strings.Join(partly, ", ")))
	}
	if len(hidden) > 0 {
		lacks = append(lacks, fmt.Sprintf("clients do not find %s", strings.Join(hidden, ", ")))
	}
	if lacks != nil {
		text := strings.Join(lacks, "; ") + "."
		out[1] = strings.ToUpper(text[:1]) + text[1:]
	}
	return out
}

// elsewhere reports whether a rule has findings with URLs, and all of these URLs are below files.
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
