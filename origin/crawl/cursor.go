package crawl

import (
	"encoding/json"

	"github.com/millrace/millrace"
)

// cursor is the state that a run saves for the next run, in addition to the refs that the sink
// stores.
type cursor struct {
	Format   int    `json:"format"`
	Newest   int64  `json:"newest,omitempty"` // newest modification time in a list, in seconds since 1970
	At       string `json:"at,omitempty"`     // last address that was processed before a limit ended the run
	Home     string `json:"home,omitempty"`   // canonical URL of the root, if it is on another host
	Soft     *soft  `json:"soft,omitempty"`   // response for an address that does not exist; nil if unknown
	Lists    []list `json:"lists,omitempty"`
	Limits   limits `json:"limits,omitzero"` // limits that excluded addresses
	Pass     *pass  `json:"pass,omitempty"`
	LostMore bool   `json:"more,omitempty"` // more pages were lost than Gone contains
	Gone     []loss `json:"gone,omitempty"` // addresses whose page was lost, and broken links
}

// soft describes the response for an address that does not exist.
type soft struct {
	Time   int64  `json:"time"`            // time of the request, in seconds since 1970
	Rules  string `json:"rules,omitempty"` // rules with which the response was extracted
	Found  bool   `json:"found,omitempty"` // the response is a page
	Title  string `json:"title,omitempty"`
	Sketch uint64 `json:"sketch,omitempty,string"`
}

// maxCursor is the maximum length of a cursor in bytes.
const maxCursor = 8 << 20

func (c *cursor) encode() millrace.Cursor {
	b, err := json.Marshal(c)
	if err != nil {
		panic("crawl: cannot encode cursor: " + err.Error())
	}
	return millrace.Cursor(b)
}

// parseCursor parses a cursor. ok is false if the cursor belongs to another package or to another
// version of this package.
func parseCursor(s millrace.Cursor) (c cursor, ok bool) {
	if s == "" {
		return cursor{}, true
	}
	if len(s) > maxCursor || json.Unmarshal([]byte(s), &c) != nil || c.Format != format {
		return cursor{}, false
	}
	return c, true
}
