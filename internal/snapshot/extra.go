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

// version rises whenever the same document may give another snapshot.
const version = 1

// Extra puts snapshots into pages as they are extracted. What the attributes call
// hidden or sensitive is in no other field of such a page either.
func Extra() map[string]extract.Extra {
	return map[string]extract.Extra{ExtraKey: {Version: version, Prefix: Prefix, Forms: true, Prepare: redact, Make: of}}
}

// of makes the snapshot of a document that is extracted.
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

// redact takes from a document what its author has called hidden or sensitive:
// the texts and the addresses, while the elements stay.
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
		// A crawl goes on where links lead: without text they are no content.
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
