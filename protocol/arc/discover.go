package arc

import (
	"encoding/json"
	"strings"

	"github.com/millrace/millrace"
)

// Paths of documents below the endpoint base.
const (
	pathList      = "/arc-sitemap.json"             // section E.5
	pathWellKnown = "/.well-known/arc-sitemap.json" // section E.5
	pathYAML      = "/arc-sitemap.yaml"             // section E.3.3
	pathDeltas    = "/arc-sitemap-deltas/"          // section E.8
	pathPolicy    = "/.well-known/arc-policy.json"  // section E.6
)

// Advertise announces the list in robots.txt (E.5), unless the owner disables this, and in JSON-LD
// in the head of the home page (E.3.2).
func (p *publisher) Advertise(v millrace.View) millrace.Advertisement {
	docs := strings.TrimSuffix(v.Site().EndpointBase, "/")
	entry, forms := pathWellKnown, []download{{"DataDownload", "application/json", docs + pathList}, {"DataDownload", yamlType, docs + pathYAML}}
	if p.o.Compact {
		entry, forms = pathList, forms[:1]
	}
	n := millrace.Advertisement{
		RootData: []json.RawMessage{pointer(docs, forms)},
		Entries:  []millrace.Entry{{URL: docs + entry, Type: "application/json"}},
		Allow:    []string{"/arc-sitemap", "/.well-known/arc-"},
	}
	if !p.own.NoSitemapLine {
		n.Robots = []string{"Sitemap: " + docs + pathList}
	}
	if p.terms != nil {
		n.Public = []string{pathPolicy}
	}
	return n
}

// download is one form of the list in JSON-LD.
type download struct {
	Type     string `json:"@type"`
	Encoding string `json:"encodingFormat"`
	URL      string `json:"contentUrl"`
}

// pointer returns the JSON-LD that announces the list (E.3.2). The example of the specification
// lacks contentUrl, without which a DataDownload is useless.
func pointer(docs string, forms []download) json.RawMessage {
	b, err := json.Marshal(struct {
		Context      string     `json:"@context"`
		Type         string     `json:"@type"`
		Name         string     `json:"name"`
		URL          string     `json:"url"`
		Distribution []download `json:"distribution"`
	}{
		"https://schema.org", "Dataset", "ARC Sitemap", docs + pathList, forms,
	})
	if err != nil {
		panic("arc: encode strings: " + err.Error())
	}
	return b
}
