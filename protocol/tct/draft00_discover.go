package tct

import (
	"strings"

	"github.com/millrace/millrace"
)

// Advertise says what the pages should say: their M-URL, in an element of
// their HTML (3.1). The header of a page is where draft-01 has its own.
func (p *publisher00) Advertise(v millrace.View) millrace.Advertisement {
	return millrace.Advertisement{
		Public:  []string{policyName, manifestName},
		Allow:   []string{listName00, policyName, manifestName, docName00 + "$", "/*" + docName00 + "$"},
		Entries: []millrace.Entry{{URL: strings.TrimSuffix(v.Site().EndpointBase, "/") + listName00, Type: mediaType, Spec: source00}},
		Page:    draft00.Alternate(v, millrace.Link{HTML: true, NoField: true}),
	}
}
