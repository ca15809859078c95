package snapshot

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace/extract"
)

// ExtraKey is the key of snapshots in [millrace.Page.Extra].
const ExtraKey = "arc"

// version must increase when the same document may result in another snapshot.
const version = 1

// Extra returns the extractor that adds snapshots to pages. It also removes content that the
// attributes declare hidden or sensitive from all other fields of a page.
func Extra() map[string]extract.Extra {
	return map[string]extract.Extra{ExtraKey: {Version: version, Prefix: Prefix, Forms: true, Prepare: redact, Make: of}}
}

// of returns the snapshot of an extracted document.
func of(_ context.Context, d *extract.Document) (json.RawMessage, error) {
	o := &Options{Base: d.Base, Schema: d.Page.Schema, Forms: d.Forms}
	if u, err := d.Base.Parse(d.Page.URL); err == nil {
		o.URL = u
	} else {
		o.URL = &url.URL{}
	}
	s, err := Of(d.Tree, o)
	if s == nil || err != nil {
		return nil, err
	}
	return s.JSON()
}

// redact removes the texts and attributes that the author declared hidden or sensitive. It keeps
// the elements, and the URLs of links.
func redact(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && attributesOf(c).closed() {
			empty(c)
		} else {
			redact(c)
		}
	}
}

func empty(n *html.Node) {
	n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool {
		switch a.Key {
		case "id", "class", "name", "type", "for", "role", "hidden", "style", "aria-hidden":
			return false
		}
		// Keep the URLs of links, because a crawl follows them; a link without text is not
		// content.
		return !strings.HasPrefix(a.Key, Prefix) && !(a.Key == "href" && n.DataAtom == atom.A)
	})
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode {
			empty(c)
		} else {
			c.Data = ""
		}
	}
}
