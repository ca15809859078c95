package agent

import (
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/protocol"
)

// Policy describes the policy that a pull has obeyed.
type Policy struct {
	Documents    []string `json:"documents"`                     // URLs of the documents
	Terms        string   `json:"terms,omitempty"`               // URL of the terms of use
	Contact      string   `json:"contact,omitempty"`             // URL of the contact
	Requirements []string `json:"requirements,omitempty"`        // what users of the content must do
	PerSecond    float64  `json:"requests_per_second,omitempty"` // maximum requests per second
	PerDay       int      `json:"requests_per_day,omitempty"`    // maximum requests per day
	Retention    float64  `json:"retention_seconds,omitempty"`   // maximum age of copies in seconds
	Access       string   `json:"access,omitempty"`              // who may use the content
	Approved     []string `json:"approved_consumers,omitempty"`  // agents that are approved by name
}

// PolicyOf summarizes documents. If docs is empty, the result is nil.
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
