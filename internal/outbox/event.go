package outbox

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/millrace/millrace"
)

// Values of Event.Change.
const (
	Added   = "added"
	Updated = "updated"
	Deleted = "deleted"
	Reset   = "reset" // drop all pages of the site; all follow as added
)

// Event is one change, in the form that receivers get.
type Event struct {
	Time     time.Time `json:"time"` // when the store recorded the change, UTC
	Site     string    `json:"site"` // its name in the mirror
	Change   string    `json:"change"`
	URL      string    `json:"url,omitempty"` // absolute; empty for Reset
	Title    string    `json:"title,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
	Revision string    `json:"revision,omitempty"` // changes with the content of the page
	// Unconfirmed is [millrace.Page.Unconfirmed].
	Unconfirmed bool `json:"unconfirmed,omitempty"`
	// Seq is the sequence number of the store's commit with the change. Changes
	// of one commit have the same number.
	Seq     uint64 `json:"seq"`
	Content string `json:"content,omitempty"` // of the page, if Outbox.Content is set
	// Terms are the terms of use of the content; nil = none.
	Terms json.RawMessage `json:"terms,omitempty"`
	// Omitted reports that the content is too long for the receiver.
	Omitted bool `json:"content_omitted,omitempty"`
}

// omit returns an event without its content. It reports false if it has none.
func omit(line []byte) (short []byte, ok bool) {
	var e Event
	if err := json.Unmarshal(line, &e); err != nil || e.Content == "" {
		return nil, false
	}
	e.Content, e.Omitted = "", true
	short, err := e.encode()
	return short, err == nil
}

// encode returns an event as one line of JSON with a line end.
func (e *Event) encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return b.Bytes(), err
}

// put sets the fields of an event for a page that exists.
func (t *delivery) put(e *Event, p *millrace.Page) {
	e.URL, e.Title, e.Modified, e.Revision, e.Unconfirmed, e.Terms = p.URL, p.Title, p.Modified, p.Version, p.Unconfirmed, t.terms
	if t.Content != nil {
		e.Content = t.Content(p)
	}
}
