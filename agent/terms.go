package agent

import (
	"github.com/millrace/millrace/policy"
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
	p := policy.Merge(docs)
	return &Policy{
		Documents: p.Documents, Terms: p.Terms, Contact: p.Contact, Requirements: policy.Requirements(p.Requirements),
		PerSecond: p.Rate.PerSecond, PerDay: p.Rate.PerDay, Retention: p.Retention.Seconds(), Access: p.Access, Approved: p.Consumers,
	}
}
