package openfeeder

import (
	"context"
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
)

// Name is the name of the protocol on the command line, in tags, errors and rule IDs.
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
			return remote(client, endpoint, o)
		},
		Notify: func(ctx context.Context, client *http.Client, endpoint string, o *protocol.ReaderOptions, position string, changed func(string)) error {
			return remote(client, endpoint, o).Notify(ctx, position, changed)
		},
	}
}

// remote returns a reader with the options that all protocols share.
func remote(client *http.Client, endpoint string, o *protocol.ReaderOptions) *reader {
	return newReader(client, endpoint, &ReaderOptions{ReaderOptions: kit.Value(o)})
}
