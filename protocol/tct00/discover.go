package tct00

import (
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/tct"
)

// Announce says what the pages should say: their M-URL, in an element of
// their HTML (3.1). The header of a page is where draft-01 has its own.
func (p *publisher) Announce(v millrace.View) millrace.Notice {
	return millrace.Notice{
		Public:  []string{policyName, manifestName},
		Allow:   []string{listName, policyName, manifestName, docName + "$", "/*" + docName + "$"},
		Entries: []millrace.Entry{{URL: strings.TrimSuffix(v.Site().Docs, "/") + listName, Type: tct.MediaType, Spec: source}},
		Page:    draft.Alternate(v, millrace.Link{HTML: true, NoField: true}),
	}
}
