package tct01

import (
	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/tct"
	"github.com/millrace/millrace/protocol"
)

// Name is the protocol's name everywhere: on the command line, of its tags,
// in its errors and rule ids.
const Name = "tct-01"

// source is where the specification is published.
const source = "https://datatracker.ietf.org/doc/draft-jurkovikj-collab-tunnel/01/"

// draft is what draft-01 has of its own.
var draft = &tct.Draft{
	Name:       Name,
	Names:      docName,
	Vary:       "Accept-Encoding", // 1.7.2, G.1.1
	Encode:     encode,
	AppendItem: appendItem,
	Holds:      func(_ *tct.Document, body []byte, hash string) bool { return tct.IsHashOf(body, hash) },
	Rules: tct.Rules{
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

// Protocol describes the room.
func Protocol() protocol.Protocol {
	return protocol.Protocol{
		Name:         Name,
		Label:        "TCT 01",
		Title:        "The Collaboration Tunnel Protocol (TCT)",
		Version:      "draft-jurkovikj-collab-tunnel-01",
		Date:         "2025-11-14",
		Source:       source,
		Entry:        []string{"/"},
		Home:         "/llm-pages.json",
		HomeLink:     millrace.Link{Rel: "index", Type: "application/json"},
		Carry:        carry,
		Tagger:       draft.Tagger(),
		NewPublisher: NewPublisher,
		Rules:        Rules,
		Probe:        probe,
		NewReader:    NewReader,
	}
}
