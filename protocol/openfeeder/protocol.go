package openfeeder

import (
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/kit"
)

// Name is the protocol's name, as on the command line, in tags, errors and rule IDs.
const Name = "openfeeder"

// source is the URL of the specification.
const source = "https://github.com/jcviau81/openfeeder"

// Protocol returns the description of OpenFeeder.
func Protocol() protocol.Protocol {
	return protocol.Protocol{
		Name:     Name,
		Repeats:  true,
		Label:    "OpenFeeder",
		Title:    "OpenFeeder",
		Version:  version,
		Date:     "2026-02-21",
		Source:   source,
		Home:     "/.well-known/openfeeder.json",
		HomeLink: millrace.Link{Rel: "openfeeder", Type: "application/json"},
		Carry:    carry,
		Tagger:   millrace.Tagger{Protocol: Name, Format: 2, Tag: tag},

		Rules:        Rules,
		Probe:        probe,
		NewPublisher: NewPublisher,
		NewReader: func(client *http.Client, endpoint string, o *protocol.ReaderOptions) millrace.Source {
			return NewReader(client, endpoint, &ReaderOptions{ReaderOptions: kit.Value(o)})
		},
	}
}
