package policy

import (
	"cmp"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// Statement is the policy of a document, as in the JSON of exports and events.
type Statement struct {
	Document     string                    `json:"document"`
	Terms        string                    `json:"terms,omitempty"` // URL of the terms of use
	Purposes     map[millrace.Purpose]bool `json:"purposes,omitempty"`
	Requirements []string                  `json:"requirements,omitempty"` // attribution, link-back, notice
	Contact      string                    `json:"contact,omitempty"`
	Payment      string                    `json:"payment,omitempty"`
	Effective    time.Time                 `json:"effective,omitzero"`
	Updated      time.Time                 `json:"updated,omitzero"`
	Retention    float64                   `json:"retention_seconds,omitempty"` // time in seconds for which copies may be kept
	Access       string                    `json:"access,omitempty"`            // groups of readers that may access the content
	Approved     []string                  `json:"approved_consumers,omitempty"`
}

// Statements returns the policies of documents.
func Statements(docs []protocol.Terms) []Statement {
	out := make([]Statement, 0, len(docs))
	for _, t := range docs {
		p := t.Policy
		out = append(out, Statement{
			Document: t.URL, Terms: p.Terms, Purposes: p.Purposes, Requirements: Requirements(p.Requirements), Contact: p.Contact,
			Payment: p.Payment, Effective: p.Effective, Updated: p.Updated, Retention: p.Retention.Seconds(), Access: p.Access, Approved: p.Consumers,
		})
	}
	return out
}

// Requirements returns the names of the requirements that are set in r.
func Requirements(r millrace.Requirements) (names []string) {
	for _, asked := range []struct {
		yes  bool
		name string
	}{{r.Attribution, "attribution"}, {r.LinkBack, "link-back"}, {r.Notice, "notice"}} {
		if asked.yes {
			names = append(names, asked.name)
		}
	}
	return names
}

// Merged is the combined policy of a site's documents.
type Merged struct {
	millrace.Policy
	Documents []string // URLs of the documents
}

// Merge combines the policies of documents. It takes the first text and the first list of consumers
// that are not empty, all requirements, and the lowest limits. A refusal takes precedence over a
// permission.
func Merge(docs []protocol.Terms) *Merged {
	m := new(Merged)
	for _, t := range docs {
		p := t.Policy
		if t.URL != "" {
			m.Documents = append(m.Documents, t.URL)
		}
		m.Terms, m.Contact = cmp.Or(m.Terms, p.Terms), cmp.Or(m.Contact, p.Contact)
		m.Payment, m.Access = cmp.Or(m.Payment, p.Payment), cmp.Or(m.Access, p.Access)
		m.Purposes = preferences(m.Purposes).merge(p.Purposes)
		r := &m.Requirements
		r.Attribution, r.LinkBack = r.Attribution || p.Requirements.Attribution, r.LinkBack || p.Requirements.LinkBack
		r.Notice = r.Notice || p.Requirements.Notice
		m.Retention = lower(m.Retention, p.Retention)
		m.Rate.PerSecond, m.Rate.PerDay = lower(m.Rate.PerSecond, p.Rate.PerSecond), lower(m.Rate.PerDay, p.Rate.PerDay)
		if m.Consumers == nil {
			m.Consumers = p.Consumers
		}
	}
	return m
}

// lower returns the lower of two limits. Zero means no limit.
func lower[T cmp.Ordered](a, b T) T {
	var none T
	if a <= none || b > none && b < a {
		return b
	}
	return a
}
