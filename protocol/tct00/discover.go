package tct00

import (
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/tct"
)

// Advertise says what the pages should say: their M-URL, in an element of
// their HTML (3.1). The header of a page is where draft-01 has its own.
func (p *publisher) Advertise(v millrace.View) millrace.Advertisement {
	return millrace.Advertisement{
		Public:  []string{policyName, manifestName},
		Allow:   []string{listName, policyName, manifestName, docName + "$", "/*" + docName + "$"},
		Entries: []millrace.Entry{{URL: strings.TrimSuffix(v.Site().EndpointBase, "/") + listName, Type: tct.MediaType, Spec: source}},
		Page:    draft.Alternate(v, millrace.Link{HTML: true, NoField: true}),
	}
}
