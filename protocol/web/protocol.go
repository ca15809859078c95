package web

import (
	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// Name is the name of the protocol on the command line, in tags, errors and rule IDs.
const Name = "web"

// source is the URL of the specification of llms.txt.
const source = "https://llmstxt.org/"

// Protocol returns the description of this protocol.
func Protocol() protocol.Protocol {
	return protocol.Protocol{
		Name:         Name,
		Label:        "Web",
		Title:        "Markdown, llms.txt, feeds and sitemaps of the plain web",
		Version:      "llms.txt v2",
		Date:         "2026-08-10",
		Source:       source,
		Entry:        []string{listPath},
		Home:         "/llms.txt",
		HomeLink:     millrace.Link{Rel: "describedby", Type: "text/plain"},
		Feeds:        true,
		Carry:        carry,
		Tagger:       millrace.Tagger{Protocol: Name, Format: format, Tag: tag, Conflicts: conflicts},
		NewPublisher: NewPublisher,
		Rules:        Rules,
		Probe:        probe,
		NewReader:    NewReader,
	}
}
