package outbox

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/millrace/millrace"
)

// What an event says has happened.
const (
	Added   = "added"
	Updated = "updated"
	Deleted = "deleted"
	Reset   = "reset" // forget what was told of the site: all pages follow as added
)

// Event is one change, as receivers see it.
type Event struct {
	Time     time.Time `json:"time"` // when the store has learned of it, UTC
	Site     string    `json:"site"` // as the mirror names it
	Change   string    `json:"change"`
	URL      string    `json:"url,omitempty"` // absolute; none of a reset
	Title    string    `json:"title,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
	Revision string    `json:"revision,omitempty"` // moves with what the page says
	// Unconfirmed is that of the page ([millrace.Page]).
	Unconfirmed bool `json:"unconfirmed,omitempty"`
	// Seq is the store's sequence number of the commit that has brought the
	// change. It rises, and changes that came together share it.
	Seq     uint64 `json:"seq"`
	Content string `json:"content,omitempty"` // of the page, if it was asked for
	// Terms is what the site says about the use of its content; nil = nothing.
	Terms json.RawMessage `json:"terms,omitempty"`
	// Omitted: the receiver takes no message as long as the content is.
	Omitted bool `json:"content_omitted,omitempty"`
}

// omit gives an event without its content, if it has some.
func omit(line []byte) ([]byte, bool) {
	var e Event
	if err := json.Unmarshal(line, &e); err != nil || e.Content == "" {
		return nil, false
	}
	e.Content, e.Omitted = "", true
	bare, err := e.encode()
	return bare, err == nil
}

// encode gives an event as one line of JSON, with its line end.
func (e *Event) encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return b.Bytes(), err
}

// put fills in what an event says of a page that is there.
func (t *delivery) put(e *Event, p *millrace.Page) {
	e.URL, e.Title, e.Modified, e.Revision, e.Unconfirmed, e.Terms = p.URL, p.Title, p.Modified, p.Version, p.Unconfirmed, t.terms
	if t.Content != nil {
		e.Content = t.Content(p)
	}
}
