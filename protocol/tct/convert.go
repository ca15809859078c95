package tct

import (
	"encoding/json"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
)

// Values of Page.Known: coreFields if a document has only the required members, and allFields if it
// has any optional member.
const (
	coreFields = millrace.FieldTitle | millrace.FieldContent
	allFields  = coreFields | millrace.FieldDescription | millrace.FieldAuthor | millrace.FieldPublished |
		millrace.FieldModified | millrace.FieldLanguage | millrace.FieldSchema
)

// Document returns the document of p, which is a page of a View of site. It returns nil if p is
// nil, if the URL of p is invalid, and for archives and listings other than the home page.
func (d *draft) Document(site millrace.Site, p *millrace.Page) *document {
	if p == nil {
		return nil
	}
	u, err := canon.URL(canon.Absolute(site.Base, p.URL))
	if err != nil {
		return nil
	}
	if (p.Kind == millrace.Archive || p.Kind == millrace.Listing) && canon.Relative(site.Base, u) != homeOf(site) {
		return nil
	}
	doc := &document{
		CanonicalURL: u,
		Title:        kit.Title(p, u),
		ContentType:  d.ContentType,
		Language:     canon.ValidUTF8(p.Language),
		Published:    kit.FormatTime(p.Published),
		Modified:     kit.FormatTime(p.Modified),
		Description:  canon.ValidUTF8(p.Description),
		Author:       canon.ValidUTF8(p.Author),
	}
	doc.Content = d.content(doc, p.Blocks)
	for _, raw := range p.Schema {
		if c := canonicalObject(raw); c != nil {
			doc.StructuredData = append(doc.StructuredData, c)
		}
	}
	if d.Prepare != nil {
		d.Prepare(doc)
	}
	return doc
}

// content returns the content of a document, converted from the blocks of its page. The title of
// the document must already be set.
func (d *draft) content(doc *document, blocks []millrace.Block) string {
	if d.Content != nil {
		return d.Content(doc, blocks)
	}
	return textOf(blocks)
}

// Page returns the page that a document describes.
func (d *draft) Page(doc *document) *millrace.Page {
	p := &millrace.Page{
		URL:         doc.CanonicalURL,
		Title:       doc.Title,
		Description: doc.Description,
		Author:      doc.Author,
		Published:   parseTime(doc.Published),
		Modified:    parseTime(doc.Modified),
		Language:    doc.Language,
		Schema:      append([]json.RawMessage(nil), doc.StructuredData...),
		Known:       coreFields,
		Detail:      millrace.DetailText,
	}
	if d.Blocks == nil {
		p.Blocks = millrace.TextBlocks(doc.Content)
	} else {
		p.Blocks, p.Detail = d.Blocks(doc)
	}
	if doc.Extended() {
		p.Known = allFields
	}
	return p
}

// lineEnds normalizes line ends, because TextBlocks does not convert "\r" consistently.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// textOf returns blocks as plain text.
func textOf(blocks []millrace.Block) string {
	t := canon.ValidUTF8(millrace.Text(blocks))
	if strings.Contains(t, "\r") {
		t = millrace.Text(millrace.TextBlocks(lineEnds.Replace(t)))
	}
	return t
}
