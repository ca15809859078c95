package sites

import (
	"encoding/json"
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/jsonio"
)

// Format of the catalog of machine documents (RFC 9727, RFC 9264).
const (
	catalogRel     = "api-catalog"
	catalogProfile = "https://www.rfc-editor.org/info/rfc9727"
	linksetType    = "application/linkset+json"
	maxCatalog     = 1 << 20 // maximum size of the site's own catalog
)

// linkTarget is the target of a link in a link set.
type linkTarget struct {
	Href string `json:"href"`
	Type string `json:"type,omitempty"`
}

// linkContext lists the links of one document in a link set.
type linkContext struct {
	Anchor  string       `json:"anchor"`
	Item    []linkTarget `json:"item,omitempty"`
	License []linkTarget `json:"license,omitempty"`
	Terms   []linkTarget `json:"terms-of-service,omitempty"`
	Desc    []linkTarget `json:"service-desc,omitempty"`
	Doc     []linkTarget `json:"service-doc,omitempty"`
}

// catalog serves the site's own catalog, if any, with the entry points of the protocols added.
// If there are no entry points, or the site serves its own catalog unchanged, it returns false.
func (d *Documents) catalog(w *response, r *http.Request, ed *edition.Edition) (bool, error) {
	entries := Entries(ed)
	if len(entries) == 0 {
		return false, nil
	}
	var set []json.RawMessage
	switch own := d.ownAt(r, catalogPath, maxCatalog); {
	case own.Missing():
	case own.Status == http.StatusOK && !own.Cut:
		var have struct {
			Linkset []json.RawMessage `json:"linkset"`
		}
		if json.Unmarshal(own.Body.Bytes(), &have) != nil {
			return false, nil //nolint:nilerr // the site serves its own catalog
		}
		set = have.Linkset
	default:
		return false, nil
	}
	for _, c := range d.contexts(ed, entries) {
		set = append(set, jsonio.Encode(c))
	}
	body := jsonio.Encode(struct {
		Linkset []json.RawMessage `json:"linkset"`
	}{set})
	w.Header().Set("Link", d.catalogLink().String())
	w.Header().Set("Access-Control-Allow-Origin", "*")
	return w.small(r, linksetType+`; profile="`+catalogProfile+`"`, "max-age=3600", body)
}

// contexts returns the link contexts of the catalog: one for the catalog itself, one for each entry
// point with a specification, and one for the MCP server, if any.
func (d *Documents) contexts(ed *edition.Edition, entries []millrace.Entry) []linkContext {
	root := originOf(d.o.EndpointBase)
	all := linkContext{Anchor: root + catalogPath}
	var each []linkContext
	for _, e := range entries {
		u := e.URL
		if u[0] == '/' {
			u = root + u
		}
		all.Item = append(all.Item, linkTarget{u, e.Type})
		if e.Spec != "" {
			each = append(each, linkContext{Anchor: u, Doc: []linkTarget{{Href: e.Spec}}})
		}
	}
	for _, c := range d.mcpContexts() {
		all.Item, each = append(all.Item, linkTarget{Href: c.Anchor}), append(each, c)
	}
	for _, n := range ed.Advertisements {
		for _, l := range n.Root {
			if l.Rel == "license" {
				all.License = append(all.License, linkTarget{l.URL, l.Type})
			}
		}
	}
	if p := d.o.Policy; p != nil && p.Terms != "" {
		all.Terms = []linkTarget{{Href: p.Terms}}
	}
	return append([]linkContext{all}, each...)
}

// catalogLink returns the link to the catalog.
func (d *Documents) catalogLink() millrace.Link {
	return millrace.Link{URL: originOf(d.o.EndpointBase) + catalogPath, Rel: catalogRel, Type: linksetType}
}
