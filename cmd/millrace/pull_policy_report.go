package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// policyReport is what a pull says of the policy that it has kept to.
type policyReport struct {
	Documents    []string `json:"documents"`
	Terms        string   `json:"terms,omitempty"`
	Contact      string   `json:"contact,omitempty"`
	Requirements []string `json:"requirements,omitempty"` // what is asked of those who use the content
	PerSecond    float64  `json:"requests_per_second,omitempty"`
	PerDay       int      `json:"requests_per_day,omitempty"`
	Retention    float64  `json:"retention_seconds,omitempty"`  // how long copies may be kept
	Access       string   `json:"access,omitempty"`             // who may have the content
	Approved     []string `json:"approved_consumers,omitempty"` // agents that are named; others are not forbidden by that
}

// reportTerms says what somebody has to know who uses the content.
func reportTerms(terms []protocol.Terms) *policyReport {
	if len(terms) == 0 {
		return nil
	}
	r := new(policyReport)
	var all millrace.Requirements
	for _, t := range terms {
		r.Documents = append(r.Documents, t.URL)
		if r.Terms == "" {
			r.Terms = t.Policy.Terms
		}
		if r.Contact == "" {
			r.Contact = t.Policy.Contact
		}
		asked := t.Policy.Requirements
		all.Attribution, all.LinkBack, all.Notice = all.Attribution || asked.Attribution, all.LinkBack || asked.LinkBack, all.Notice || asked.Notice
		if r.Access == "" {
			r.Access = t.Policy.Access
		}
		if r.Approved == nil {
			r.Approved = t.Policy.Consumers
		}
		if n := t.Policy.Retention.Seconds(); n > 0 && (r.Retention == 0 || n < r.Retention) {
			r.Retention = n
		}
		if n := t.Policy.Rate.PerSecond; n > 0 && (r.PerSecond == 0 || n < r.PerSecond) {
			r.PerSecond = n
		}
		if n := t.Policy.Rate.PerDay; n > 0 && (r.PerDay == 0 || n < r.PerDay) {
			r.PerDay = n
		}
	}
	for _, asked := range []struct {
		yes  bool
		name string
	}{{all.Attribution, "attribution"}, {all.LinkBack, "link-back"}, {all.Notice, "notice"}} {
		if asked.yes {
			r.Requirements = append(r.Requirements, asked.name)
		}
	}
	return r
}

// policyText says in a line what a person has to know of the policy, if
// anything.
func (r *pullReport) policyText() string {
	if r.PolicyIgnored {
		return "  the site's policy and robots.txt were not asked for and not kept to (--ignore-policy)\n"
	}
	if r.Policy == nil || r.Error != "" {
		return ""
	}
	var asked []string
	if n := len(r.Policy.Requirements); n > 0 {
		asked = append(asked, strings.Join(r.Policy.Requirements, ", ")+" of those who use the content")
	}
	if r.Policy.Retention > 0 {
		asked = append(asked, "copies to be kept for "+retentionText(r.Policy.Retention)+" at most")
	}
	if r.Policy.Terms != "" {
		asked = append(asked, "its terms to be kept: "+r.Policy.Terms)
	}
	if len(asked) == 0 {
		return ""
	}
	return "  the site asks for " + strings.Join(asked, "; ") + " (" + strings.Join(r.Policy.Documents, ", ") + ")\n"
}

// retentionText gives seconds as an owner would say them.
func retentionText(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d == 24*time.Hour:
		return "a day"
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return d.String()
}
