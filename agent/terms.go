package agent

import (
	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/terms"
	"github.com/millrace/millrace/protocol"
)

// Policy is what a pull says of the policy that it has kept to.
type Policy struct {
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

// PolicyOf sums up documents. It returns nil if there are none.
func PolicyOf(docs []protocol.Terms) *Policy {
	if len(docs) == 0 {
		return nil
	}
	r := new(Policy)
	var all millrace.Requirements
	for _, t := range docs {
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
	r.Requirements = terms.Requirements(all)
	return r
}
