package tct01

import "github.com/millrace/millrace"

// carry returns what a reader makes of the page's document, nil for a page that has
// no document. The content of a document is the text of its page.
func carry(site millrace.Site, p *millrace.Page) *millrace.Page { return draft.Carry(site, p) }
