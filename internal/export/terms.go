package export

import (
	"time"

	"github.com/millrace/millrace"
)

// Terms are a document in which a site says what its content may be used for.
type Terms struct {
	Document string           // its URL
	Policy   *millrace.Policy // not to be changed
}

// said is Terms in JSON.
type said struct {
	Document     string                    `json:"document"`
	Terms        string                    `json:"terms,omitempty"` // URL of the terms of use
	Purposes     map[millrace.Purpose]bool `json:"purposes,omitempty"`
	Requirements []string                  `json:"requirements,omitempty"` // attribution, link-back, notice
	Contact      string                    `json:"contact,omitempty"`
	Payment      string                    `json:"payment,omitempty"`
	Effective    time.Time                 `json:"effective,omitzero"`
	Updated      time.Time                 `json:"updated,omitzero"`
	Retention    float64                   `json:"retention_seconds,omitempty"` // how long copies may be kept
	Access       string                    `json:"access,omitempty"`            // who may have the content
	Approved     []string                  `json:"approved_consumers,omitempty"`
}

func sayings(terms []Terms) []said {
	out := make([]said, 0, len(terms))
	for _, t := range terms {
		p := t.Policy
		out = append(out, said{
			Document: t.Document, Terms: p.Terms, Purposes: p.Purposes, Requirements: requirements(p.Requirements), Contact: p.Contact,
			Payment: p.Payment, Effective: p.Effective, Updated: p.Updated, Retention: p.Retention.Seconds(), Access: p.Access, Approved: p.Consumers,
		})
	}
	return out
}

func requirements(r millrace.Requirements) (names []string) {
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

// merged is what all documents of a site say together, for forms with one
// value a field: of addresses the first, of purposes that which forbids, of
// requirements all.
type merged struct {
	documents                []string
	license                  string // URL of the terms of use
	contact, payment, access string
	purposes                 map[millrace.Purpose]bool
	requirements             millrace.Requirements
	retention                time.Duration // 0 = not said
}

// purposes lists what policies tell apart, in the order of columns.
var purposes = []millrace.Purpose{millrace.AIInput, millrace.AITrain, millrace.Search}

func merge(terms []Terms) *merged {
	m := &merged{purposes: make(map[millrace.Purpose]bool)}
	first := func(to *string, s string) {
		if *to == "" {
			*to = s
		}
	}
	for _, t := range terms {
		p := t.Policy
		m.documents = append(m.documents, t.Document)
		first(&m.license, p.Terms)
		first(&m.contact, p.Contact)
		first(&m.payment, p.Payment)
		first(&m.access, p.Access)
		for purpose, yes := range p.Purposes {
			if was, ok := m.purposes[purpose]; !ok || was {
				m.purposes[purpose] = yes
			}
		}
		m.requirements.Attribution = m.requirements.Attribution || p.Requirements.Attribution
		m.requirements.LinkBack = m.requirements.LinkBack || p.Requirements.LinkBack
		m.requirements.Notice = m.requirements.Notice || p.Requirements.Notice
		if p.Retention > 0 && (m.retention == 0 || p.Retention < m.retention) {
			m.retention = p.Retention
		}
	}
	return m
}
