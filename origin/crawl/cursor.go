package crawl

import (
	"encoding/json"

	"github.com/millrace/millrace"
)

// cursor is what a run leaves to the next one, beside what the sink holds.
type cursor struct {
	Format   int    `json:"format"`
	Newest   int64  `json:"newest,omitempty"` // the newest time that a list has named, seconds since 1970
	At       string `json:"at,omitempty"`     // the run was cut off by a limit when it had come to this address
	Home     string `json:"home,omitempty"`   // what the root goes by on another host
	Soft     *soft  `json:"soft,omitempty"`   // nil = not known yet
	Lists    []list `json:"lists,omitempty"`
	Limits   limits `json:"limits,omitzero"` // that have refused something which is not known for that
	Pass     *pass  `json:"pass,omitempty"`
	LostMore bool   `json:"more,omitempty"` // more pages were lost than Gone holds
	Gone     []loss `json:"gone,omitempty"` // what has had no page
}

// soft is what the site answers to an address that cannot exist.
type soft struct {
	Time   int64  `json:"time"`            // when it was asked, seconds since 1970
	Rules  string `json:"rules,omitempty"` // that its answer was extracted by
	Found  bool   `json:"found,omitempty"` // it answers with a page
	Title  string `json:"title,omitempty"`
	Sketch uint64 `json:"sketch,omitempty,string"`
}

// maxCursor bounds the text of a cursor that is read.
const maxCursor = 8 << 20

func (c *cursor) encode() millrace.Cursor {
	b, err := json.Marshal(c)
	if err != nil {
		panic("crawl: strings and numbers do not encode: " + err.Error())
	}
	return millrace.Cursor(b)
}

// parseCursor reads a cursor. ok is false for one that is not of this package,
// or of another version of it.
func parseCursor(s millrace.Cursor) (c cursor, ok bool) {
	if s == "" {
		return cursor{}, true
	}
	if len(s) > maxCursor || json.Unmarshal([]byte(s), &c) != nil || c.Format != format {
		return cursor{}, false
	}
	return c, true
}
