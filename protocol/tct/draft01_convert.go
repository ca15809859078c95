package tct

import "github.com/millrace/millrace"

// carry01 returns what a reader makes of the page's document, nil for a page that has
// no document. The content of a document is the text of its page.
func carry01(site millrace.Site, p *millrace.Page) *millrace.Page { return draft01.Carry(site, p) }
