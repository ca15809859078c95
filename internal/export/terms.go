package export

import (
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/terms"
)

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

func merge(docs []terms.Document) *merged {
	m := &merged{purposes: make(map[millrace.Purpose]bool)}
	first := func(to *string, s string) {
		if *to == "" {
			*to = s
		}
	}
	for _, t := range docs {
		p := t.Policy
		m.documents = append(m.documents, t.URL)
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
