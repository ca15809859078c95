package scp

import (
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
)

// Name is the name of the protocol on the command line, in tags, errors and rule IDs.
const Name = "scp"

// Protocol returns the description of SCP.
func Protocol() protocol.Protocol {
	return protocol.Protocol{
		Name:         Name,
		Label:        "SCP",
		Title:        "Site Content Protocol (SCP)",
		Version:      version,
		Collections:  true,
		Fallback:     true,
		Entry:        []string{sitemapPath},
		Home:         "/sitemap.xml",
		Public:       true,
		Carry:        carry,
		Tagger:       millrace.Tagger{Protocol: Name, Format: 1, Tag: tag},
		NewPublisher: NewPublisher,
		Rules:        Rules,
		Probe:        probe,
		NewReader: func(client *http.Client, endpoint string, o *protocol.ReaderOptions) millrace.Source {
			return NewReader(client, endpoint, &ReaderOptions{ReaderOptions: kit.Value(o)})
		},
	}
}
