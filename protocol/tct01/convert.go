package tct01

import (
	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/tct"
)

// carry gives what a reader makes of the page's document, nil for a page that
// has none.
func carry(site millrace.Site, p *millrace.Page) *millrace.Page {
	d := documentOf(site, p)
	if d == nil {
		return nil
	}
	return d.page()
}

// tag gives the hash of the page's document, "" for a page that has none.
func tag(site millrace.Site, p *millrace.Page) (string, error) {
	d := documentOf(site, p)
	if d == nil {
		return "", nil
	}
	_, hash := d.encode()
	return hash, nil
}

// documentOf gives the document of a page of a View, nil for one that has none.
func documentOf(site millrace.Site, p *millrace.Page) *document { return (*document)(tct.Of(site, p)) }

// page gives what the document says.
func (d *document) page() *millrace.Page { return (*tct.Document)(d).Page() }
