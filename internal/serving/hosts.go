package serving

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/static"
	"github.com/millrace/millrace/protocol/all"
)

// HostReport lists the requirements of the protocols that a host of a build cannot meet.
type HostReport struct {
	Host   string      `json:"host"`   // name of the host, such as netlify
	Unmet  []UnmetRule `json:"unmet"`  // MUST rules that the host cannot meet
	Hidden []string    `json:"hidden"` // protocols that clients cannot discover there
}

// UnmetRule is a MUST that a host cannot meet.
type UnmetRule struct {
	Protocol string `json:"protocol"`
	Rule     string `json:"rule"`     // ID of the rule
	Section  string `json:"section"`  // section of the specification
	Sentence string `json:"sentence"` // what the rule demands
}

// AskHosts checks a finished build as each host would serve it. It finds what
// `millrace check` would find after the upload. It ignores failures below the URL files,
// which the host does not serve. show is called with the number of finished hosts and of
// all hosts.
func AskHosts(ctx context.Context, b *static.Build, base, files string, show func(done, total int)) ([]HostReport, error) {
	var out []HostReport
	found := make(map[string]bool)
	hosts := b.Hosts()
	var suites []check.Suite
	for _, proto := range all.Protocols() {
		suites = append(suites, proto.Suite())
	}
	for i, h := range hosts {
		show(i, len(hosts))
		target, err := check.NewTarget(base, &http.Client{Transport: h}, &check.TargetOptions{Decode: fetch.Decode})
		if err != nil {
			return nil, err
		}
		report, err := check.Run(ctx, target, suites, nil)
		if err != nil {
			return nil, err
		}
		hr := HostReport{Host: h.Name, Unmet: []UnmetRule{}, Hidden: []string{}}
		for _, o := range report.Outcomes {
			if o.State == check.Failed && o.Rule.Level == check.Must && !elsewhere(report.Findings, o.Rule.ID, files) {
				hr.Unmet = append(hr.Unmet, UnmetRule{o.Protocol, o.Rule.ID, o.Rule.Section, o.Rule.Sentence})
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
	for i := range out { // the site does not publish a protocol that no host has
		out[i].Hidden = slices.DeleteFunc(out[i].Hidden, func(name string) bool { return !found[name] })
		slices.Sort(out[i].Hidden)
	}
	return out, nil
}

// elsewhere reports whether all findings of a rule are below a URL.
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
