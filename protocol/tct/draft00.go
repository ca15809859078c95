package tct

import (
	"net/http"

	"github.com/millrace/millrace"

	"github.com/millrace/millrace/protocol"
)

// name00 is the protocol's name everywhere: on the command line, of its tags,
// in its errors and rule ids.
const name00 = "tct-00"

// source is where the specification is published.
const source00 = "https://datatracker.ietf.org/doc/draft-jurkovikj-collab-tunnel/00/"

// draft00 is what draft-00 has of its own.
var draft00 = &draft{
	Name:       name00,
	Names:      docName00,
	Vary:       "Accept, Accept-Encoding", // 5.4
	Encode:     encode00,
	AppendItem: appendItem00,
	Content:    headed,
	Text:       unheaded,
	Holds:      func(d *document, _ []byte, hash string) bool { return isFingerprint(d.Content, hash) },
	BareHash:   true, // 8.2

	Lists:   placesOfList,
	OneList: true,
	Begin:   begin,     // 7.3
	Listed:  described, // 7.3

	Handshake:       true,
	VersionOptional: true,
	HTMLFirst:       true, // 3.1
	Rules: ruleNames{
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

// Draft00 describes draft-00.
func Draft00() protocol.Protocol {
	return protocol.Protocol{
		Name:         name00,
		Label:        "TCT 00",
		Title:        "The Collaboration Tunnel Protocol (TCT)",
		Version:      "draft-jurkovikj-collab-tunnel-00",
		Source:       source00,
		Entry:        []string{listName00},
		Home:         "/llm-sitemap.json",
		Carry:        draft00.Carry,
		Tagger:       draft00.Tagger(),
		NewPublisher: newPublisher00,
		Rules:        rules00,
		Probe:        draft00.probe,
		NewReader: func(client *http.Client, endpoint string, o *protocol.ReaderOptions) millrace.Source {
			return &reader00{draft00.NewReader(client, endpoint, o)}
		},
	}
}
