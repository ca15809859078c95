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

// Event is one change, in the format that receivers get.
type Event struct {
	Time        time.Time       `json:"time"`          // when the store recorded the change
	Site        string          `json:"site"`          // name of the site in the mirror
	Change      string          `json:"change"`        // "added", "updated", "deleted" or "reset"; after a reset, all pages follow as added
	URL         string          `json:"url,omitempty"` // absolute URL of the page; absent for a reset
	Title       string          `json:"title,omitempty"`
	Modified    time.Time       `json:"modified,omitzero"`         // when the page was last modified
	Revision    string          `json:"revision,omitempty"`        // changes when the page changes
	Unconfirmed bool            `json:"unconfirmed,omitempty"`     // the page does not match its hash
	Seq         uint64          `json:"seq"`                       // sequence number of the commit; it rises, and changes of one commit share it
	Content     string          `json:"content,omitempty"`         // content of the page, if --content requests it
	Terms       json.RawMessage `json:"terms,omitempty"`           // policy of the site
	Omitted     bool            `json:"content_omitted,omitempty"` // content was omitted because the message was too large
}

// omit returns an event without its content. If the event has no content, ok is false.
func omit(line []byte) (short []byte, ok bool) {
	var e Event
	if err := json.Unmarshal(line, &e); err != nil || e.Content == "" {
		return nil, false
	}
	e.Content, e.Omitted = "", true
	short, err := e.encode()
	return short, err == nil
}

// encode returns an event as JSON on one line, with a newline at the end.
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
