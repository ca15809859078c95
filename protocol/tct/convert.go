package tct

import (
	"encoding/json"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol/kit"
)

// What a document speaks for: the required members, and all that there can be
// when it has any other.
const (
	coreFields = millrace.FieldTitle | millrace.FieldContent
	allFields  = coreFields | millrace.FieldDescription | millrace.FieldAuthor | millrace.FieldPublished |
		millrace.FieldModified | millrace.FieldLanguage | millrace.FieldSchema
)

// documentOf returns the document of a page of a View of site, with its text as
// content. It is nil for no page, for a page whose URL is no URL, and for archives
// and listings other than the home page.
func documentOf(site millrace.Site, p *millrace.Page) *document {
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
	d := &document{
		CanonicalURL: u,
		Title:        kit.Title(p, u),
		Content:      textOf(p),
		Language:     canon.ValidUTF8(p.Language),
		Published:    kit.FormatTime(p.Published),
		Modified:     kit.FormatTime(p.Modified),
		Description:  canon.ValidUTF8(p.Description),
		Author:       canon.ValidUTF8(p.Author),
	}
	for _, raw := range p.Schema {
		if c := canonicalObject(raw); c != nil {
			d.StructuredData = append(d.StructuredData, c)
		}
	}
	return d
}

// page returns what the document says.
func (d *document) page() *millrace.Page {
	p := &millrace.Page{
		URL:         d.CanonicalURL,
		Title:       d.Title,
		Description: d.Description,
		Author:      d.Author,
		Published:   parseTime(d.Published),
		Modified:    parseTime(d.Modified),
		Language:    d.Language,
		Schema:      append([]json.RawMessage(nil), d.StructuredData...),
		Blocks:      millrace.TextBlocks(d.Content),
		Known:       coreFields,
		Detail:      millrace.DetailText,
	}
	if d.Extended() {
		p.Known = allFields
	}
	return p
}

// lineEnds makes one kind of line end of all. Text keeps the others, and what
// TextBlocks makes of them changes when it is done again.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func textOf(p *millrace.Page) string {
	t := canon.ValidUTF8(p.Text())
	if strings.Contains(t, "\r") {
		t = millrace.Text(millrace.TextBlocks(lineEnds.Replace(t)))
	}
	return t
}
