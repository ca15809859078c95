package tct

import (
	"net/url"
	"strings"

	"github.com/millrace/millrace"
)

// Advertise says what the origin's own responses should say (1.4.1, 1.4.2):
// every list on its root, the M-URL on each page, in its header and in its HTML:
// there are clients that look there alone. If draft-00 has its M-URL in the HTML as
// well, a client knows its own by the form of the hash.
func (p *publisher01) Advertise(v millrace.View) millrace.Advertisement {
	site := v.Site()
	docs := strings.TrimSuffix(site.EndpointBase, "/")
	root := docs
	if u, err := url.Parse(docs); err == nil {
		root = u.EscapedPath()
	}
	n := millrace.Advertisement{Allow: []string{"/$", "/llm-pages", "/llm.json", "/*/llm.json"}} // the root has the Link
	shards := p.shards(site)
	for i := range shards {
		n.Root = append(n.Root, millrace.Link{URL: root + listName01(i, shards), Rel: "index", Type: mediaType})
		n.Entries = append(n.Entries, millrace.Entry{URL: docs + listName01(i, shards), Type: mediaType, Spec: source01})
	}
	n.Page = draft01.Alternate(v, millrace.Link{HTML: true})
	return n
}
