package protocoltest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol"
)

// Fault is a way to break a valid server that violates exactly one rule.
type Fault struct {
	Rule  string // ID of the rule
	Name  string // distinguishes several faults of one rule
	Plain bool   // served over http, not https
	Break func(good http.Handler) http.Handler
}

// Faults checks a valid server, which must pass every rule, and then each fault. A rule without a
// fault fails the test, so every rule is tested.
func Faults(t *testing.T, p protocol.Protocol, faults []Fault) {
	FaultsOf(t, p, faults, func(t *testing.T, f Fault) *check.Report { return examine(t, p, f) })
}

// FaultsOf is like [Faults] for a server of the caller. examine checks the server with a fault.
func FaultsOf(t *testing.T, p protocol.Protocol, faults []Fault, examine func(t *testing.T, f Fault) *check.Report) {
	rules := p.Rules()
	t.Run("good", func(t *testing.T) {
		report := examine(t, Fault{Break: func(good http.Handler) http.Handler { return good }})
		for _, f := range report.Findings {
			t.Errorf("%s: got %s at %s, want %s", f.Rule, f.Got, f.URL, f.Want)
		}
		for _, o := range report.Outcomes {
			if o.State == check.NotRun {
				t.Errorf("%s did not run: %s", o.Rule.ID, o.Reason)
			}
		}
	})
	for _, r := range rules {
		if !slices.ContainsFunc(faults, func(f Fault) bool { return f.Rule == r.ID }) {
			t.Errorf("no fault makes %s fail", r.ID)
		}
	}
	for _, f := range faults {
		t.Run(strings.TrimSuffix(f.Rule+"#"+f.Name, "#"), func(t *testing.T) {
			if !slices.ContainsFunc(rules, func(r check.Rule) bool { return r.ID == f.Rule }) {
				t.Fatal("unknown rule")
			}
			var tripped []string
			var found strings.Builder
			report := examine(t, f)
			for _, finding := range report.Findings {
				if !slices.Contains(tripped, finding.Rule) {
					tripped = append(tripped, finding.Rule)
				}
				fmt.Fprintf(&found, "\n%s: %s has %s, want %s", finding.Rule, finding.URL, finding.Got, finding.Want)
			}
			if !slices.Equal(tripped, []string{f.Rule}) {
				t.Errorf("the fault failed %q, want only its own rule:%s", tripped, found.String())
			}
		})
	}
}

// examine runs the protocol's rules against a server with a fault.
func examine(t *testing.T, p protocol.Protocol, f Fault) *check.Report {
	t.Helper()
	s := Serve(p, nil)
	h := httptest.NewUnstartedServer(f.Break(s))
	if f.Plain {
		h.Start()
	} else {
		h.StartTLS()
	}
	t.Cleanup(h.Close)
	site := millrace.Site{Base: h.URL + "/", Title: "A site"}
	if err := s.Show(t.Context(), NewView(site, plainPages(), p.Tagger)); err != nil {
		t.Fatal(err)
	}
	target, err := check.NewTarget(h.URL+"/", h.Client(), &check.TargetOptions{Decode: fetch.Decode})
	if err != nil {
		t.Fatal(err)
	}
	report, err := check.Run(t.Context(), target, []check.Suite{{Name: p.Name, Rules: p.Rules()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// plainPages returns the pages of an ordinary site.
func plainPages() []*millrace.Page {
	out := make([]*millrace.Page, 0, 6)
	for i, path := range []string{"/", "/post/", "/about", "/docs/a.html", "/docs/b.html", "/blog/2026/one/"} {
		out = append(out, &millrace.Page{
			URL:      path,
			Title:    fmt.Sprintf("Page %d", i),
			Author:   "A. Writer",
			Language: "en",
			Modified: time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC),
			Blocks: []millrace.Block{
				{Type: millrace.HeadingBlock, Level: 2, Text: "A heading"},
				{Type: millrace.TextBlock, Text: fmt.Sprintf("The text of page %d, which alone has flour%d.", i, i)},
			},
			Known:  millrace.AllFields,
			Detail: millrace.DetailBlocks,
		})
	}
	// One page is longer than a chunk, and was published before it was modified.
	out[1].Published = time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
	for i := range 3 {
		out[1].Blocks = append(out[1].Blocks, millrace.Block{Type: millrace.TextBlock, Text: strings.Repeat(fmt.Sprintf("Sentence %d of more. ", i), 50)})
	}
	return out
}
