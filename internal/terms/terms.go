// Package terms has the form in which exports and events say what the content of
// a site may be used for.
package terms

import (
	"time"

	"github.com/millrace/millrace"
)

// Document is a document in which a site says what its content may be used for.
type Document struct {
	URL    string
	Policy *millrace.Policy // not to be changed
}

// Statement is what a [Document] says, in JSON.
type Statement struct {
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

// Statements returns what documents say.
func Statements(docs []Document) []Statement {
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

// Requirements returns the names of what is asked of those who use the content.
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
