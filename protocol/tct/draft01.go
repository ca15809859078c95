package tct

import (
	"net/http"

	"github.com/millrace/millrace"

	"github.com/millrace/millrace/protocol"
)

// name01 is the protocol's name everywhere: on the command line, of its tags,
// in its errors and rule ids.
const name01 = "tct-01"

// source01 is where the specification is published.
const source01 = "https://datatracker.ietf.org/doc/draft-jurkovikj-collab-tunnel/01/"

// draft01 is what draft-01 has of its own.
var draft01 = &draft{
	Name:       name01,
	Names:      docName01,
	Vary:       "Accept-Encoding", // 1.7.2, G.1.1
	Encode:     encode01,
	AppendItem: appendItem01,
	Holds:      func(_ *document, body []byte, hash string) bool { return isHashOf(body, hash) },
	Lists:      announcedLists,
	Rules: ruleNames{
		Items:          "1.7.1/items",
		Parity:         "1.7.3/parity",
		Object:         "1.5.1/valid-json",
		CanonicalURL:   "1.5.2/canonical-url",
		Alternate:      "1.7.3/parity",
		CanonicalLink:  "1.4.2/canonical-link",
		ContentType:    "1.5.1/content-type",
		StrongETag:     "1.6.2/strong-etag",
		HashEqualsETag: "1.5.2/hash-equals-etag",
		Hash:           "1.6.2/hash-recomputed",
		NotModified:    "1.8.2/if-none-match",
	},
}

// Draft01 describes draft-01.
func Draft01() protocol.Protocol {
	return protocol.Protocol{
		Name:         name01,
		Label:        "TCT 01",
		Title:        "The Collaboration Tunnel Protocol (TCT)",
		Version:      "draft-jurkovikj-collab-tunnel-01",
		Date:         "2025-11-14",
		Source:       source01,
		Entry:        []string{"/"},
		Home:         "/llm-pages.json",
		HomeLink:     millrace.Link{Rel: "index", Type: "application/json"},
		Carry:        draft01.Carry,
		Tagger:       draft01.Tagger(),
		NewPublisher: newPublisher01,
		Rules:        rules01,
		Probe:        draft01.probe,
		NewReader: func(client *http.Client, endpoint string, o *protocol.ReaderOptions) millrace.Source {
			return draft01.NewReader(client, endpoint, o)
		},
	}
}
