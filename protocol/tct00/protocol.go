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
	Names:      names,
	Vary:       "Accept, Accept-Encoding", // 5.4
	Encode:     encode,
	AppendItem: appendItem,
	Content:    headed,
	Text:       unheaded,
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
		Carry:        carry,
		Tagger:       draft.Tagger(),
		NewPublisher: NewPublisher,
		Rules:        Rules,
		Look:         appraise,
		NewReader: func(client *http.Client, endpoint string, o *protocol.ReaderOptions) millrace.Source {
			if o == nil {
				o = new(protocol.ReaderOptions)
			}
			return NewReader(client, endpoint, &ReaderOptions{ReaderOptions: *o})
		},
	}
}
