package arc

import (
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
)

// Name is the name of the protocol on the command line, in tags, errors and rule IDs, and as the
// key in [millrace.Page.Extra].
const Name = "arc"

// Protocol returns the description of this protocol.
func Protocol() protocol.Protocol {
	return protocol.Protocol{
		Name:         Name,
		Label:        "ARC",
		Title:        "ARC Sitemap & AI Indexing",
		Version:      "2.1",
		Home:         "/arc-sitemap.json",
		Partial:      sensitive,
		Sitemap:      "/arc-sitemap",
		Carry:        carry,
		Tagger:       millrace.Tagger{Protocol: Name, Format: tagFormat, Tag: tag},
		NewPublisher: NewPublisher,
		Rules:        Rules,
		Probe:        probe,
		NewReader: func(client *http.Client, endpoint string, o *protocol.ReaderOptions) millrace.Source {
			return NewReader(client, endpoint, &ReaderOptions{ReaderOptions: kit.Value(o)})
		},
	}
}
