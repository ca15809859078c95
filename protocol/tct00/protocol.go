package tct00

import (
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/tct"
	"github.com/millrace/millrace/protocol"
)

// Name is the protocol's name everywhere: on the command line, of its tags,
// in its errors and rule ids.
const Name = "tct-00"

// source is where the specification is published.
const source = "https://datatracker.ietf.org/doc/draft-jurkovikj-collab-tunnel/00/"

// draft is what draft-00 has of its own.
var draft = &tct.Draft{
	Name:       Name,
	Names:      docName,
	Vary:       "Accept, Accept-Encoding", // 5.4
	Encode:     encode,
	AppendItem: appendItem,
	Content:    headed,
	Text:       unheaded,
	Holds:      func(d *tct.Document, _ []byte, hash string) bool { return tct.IsFingerprint(d.Content, hash) },
	BareHash:   true, // 8.2

	VersionOptional: true,
	HTMLFirst:       true, // 3.1
	Rules: tct.Rules{
		Items:          "6.1/items",
		Parity:         "6.1/parity",
		Object:         "8.2/object",
		CanonicalURL:   "8.2/canonical-url",
		Alternate:      "3.1/alternate-element",
		CanonicalLink:  "3.2/canonical-link",
		ContentType:    "8.1/content-type",
		StrongETag:     "4.2/strong-etag",
		HashEqualsETag: "8.2/hash-equals-etag",
		Hash:           "4.1/fingerprint",
		NotModified:    "5.2/not-modified",
	},
}

// Protocol describes the room.
func Protocol() protocol.Protocol {
	return protocol.Protocol{
		Name:         Name,
		Label:        "TCT 00",
		Title:        "The Collaboration Tunnel Protocol (TCT)",
		Version:      "draft-jurkovikj-collab-tunnel-00",
		Source:       source,
		Entry:        []string{listName},
		Home:         "/llm-sitemap.json",
		Carry:        carry,
		Tagger:       draft.Tagger(),
		NewPublisher: NewPublisher,
		Rules:        Rules,
		Probe:        probe,
		NewReader: func(client *http.Client, endpoint string, o *protocol.ReaderOptions) millrace.Source {
			return NewReader(client, endpoint, o)
		},
	}
}
