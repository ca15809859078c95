package tct01

import (
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tct"
)

// carry gives what a reader makes of the page's document, nil for a page that
// has none.
func carry(_ millrace.Site, p *millrace.Page) *millrace.Page {
	d := documentOf(p)
	if d == nil {
		return nil
	}
	return d.page()
}

// tag gives the hash of the page's document, "" for a page that has none.
func tag(site millrace.Site, p *millrace.Page) (string, error) {
	if strings.HasPrefix(p.URL, "/") {
		c := *p
		c.URL = canon.Absolute(site.Base, p.URL)
		p = &c
	}
	d := documentOf(p)
	if d == nil {
		return "", nil
	}
	_, hash := d.encode()
	return hash, nil
}

// documentOf gives the document of a page of a View, nil for one that has none.
func documentOf(p *millrace.Page) *document { return (*document)(tct.Of(p)) }

// page gives what the document says.
func (d *document) page() *millrace.Page { return (*tct.Document)(d).Page() }
