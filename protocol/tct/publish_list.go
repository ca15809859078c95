package tct

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol/kit"
)

// listHead and ListTail enclose the items of a list.
const (
	listHead = `{"version":1,"profile":"` + profileName + `","items":[`
	listTail = "]}"
)

// first is the key of the item that a list begins with. Identities are after it.
const first = " "

// List returns the parts of a list: the item of the overview or of the page first,
// if there is one, and the pages that in reports true of, in the order of
// identities. in may be nil.
func (d *draft) List(v millrace.View, over *overview, home *millrace.Tag, in func(identity string) bool) *millrace.Parts {
	site := v.Site()
	docs := strings.TrimSuffix(site.EndpointBase, "/")
	var buf []byte
	item := func(curl, path, modified, tag string) []byte {
		it := listItem{CURL: curl, MURL: docs + path, Modified: date(modified), ContentHash: tag, ETag: tag}
		buf = d.AppendItem(buf[:0], &it)
		return buf
	}
	page := func(t millrace.Tag) []byte { return item(t.URL, d.path(site, t), kit.FormatTime(t.Modified), t.Value) }
	homeURL, homeIdentity := "", ""
	if home != nil {
		homeURL, homeIdentity = home.URL, canon.Relative(site.Base, home.URL)
	}
	return &millrace.Parts{
		Version: fmt.Sprintf("%q %q %q %t", site.Base, site.EndpointBase, homeURL, over != nil),
		Head:    []byte(listHead + "\n"), Between: []byte(",\n"), Tail: []byte(listTail), Empty: []byte(listHead + listTail),
		After: func(ctx context.Context, key string) iter.Seq2[millrace.Part, error] {
			return func(yield func(millrace.Part, error) bool) {
				if key < first {
					if over != nil && !yield(millrace.Part{Key: first, Body: item(over.CanonicalURL, over.path, over.Modified, over.tag)}, nil) ||
						home != nil && !yield(millrace.Part{Key: first, Body: page(*home)}, nil) {
						return
					}
				}
				for t, err := range v.Tags(ctx, d.Name, strings.TrimPrefix(key, first)) {
					if err != nil {
						yield(millrace.Part{}, err)
						return
					}
					identity := canon.Relative(site.Base, t.URL)
					if t.URL == homeURL || in != nil && !in(identity) {
						continue
					}
					if !yield(millrace.Part{Key: identity, Body: page(t)}, nil) {
						return
					}
				}
			}
		},
		Changed: func(url string) (keys []string) {
			if over != nil {
				keys = append(keys, first)
			}
			identity := canon.Relative(site.Base, url)
			_, after := d.Names.Rivals(identity) // whose names may be others
			for _, i := range append(after, identity) {
				if i == homeIdentity {
					keys = append(keys, first)
				} else if in == nil || in(i) {
					keys = append(keys, i)
				}
			}
			return keys
		},
	}
}
