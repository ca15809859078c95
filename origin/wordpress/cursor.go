package wordpress

import (
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace"
)

// cursor is where the stream of a site stands.
type cursor struct {
	Root  string               `json:"root"`
	API   string               `json:"api,omitempty"`
	Home  string               `json:"home,omitempty"`
	Rules string               `json:"rules,omitempty"` // see site.rules
	Types map[string]typeState `json:"types,omitempty"` // by slug

	// Mapped are the types that the site's sitemap has shown when it was Looked
	// at (RFC 3339); "" = it was not.
	Mapped  []string `json:"mapped,omitempty"`
	Scanned string   `json:"looked,omitempty"`
}

// typeState is where the listing of a type stands.
type typeState struct {
	// State is a fingerprint of what was modified and published last; "" =
	// it may change without a trace, or what is gone is not settled.
	State  string `json:"state,omitempty"`
	Total  int    `json:"total"`
	Newest string `json:"newest,omitempty"` // modified_gmt

	// Open: the first listing is not through, and goes on after the item
	// After, which was at Offset.
	Open   bool  `json:"open,omitempty"`
	After  int64 `json:"after,omitempty"`
	Offset int   `json:"offset,omitempty"`
}

// settled reports whether nothing has happened since an earlier stand.
func (s typeState) settled(was typeState) bool {
	return !was.Open && was.State != "" && s == was
}

func (c cursor) encode() millrace.Cursor {
	b, err := json.Marshal(c)
	if err != nil {
		panic("wordpress: strings and numbers do not encode: " + err.Error())
	}
	return millrace.Cursor(b)
}

// parseCursor reads a cursor of this site. ErrConflict: it is none.
func (s *Site) parseCursor(since millrace.Cursor) (cursor, error) {
	c := cursor{Root: s.root.String()}
	if since == "" {
		return c, nil
	}
	if err := json.Unmarshal([]byte(since), &c); err != nil || c.Root != s.root.String() || len(c.Types) > 2*maxTypes || len(c.Mapped) > maxTypes {
		return c, fmt.Errorf("%w: the cursor is not one of this site", millrace.ErrConflict)
	}
	return c, nil
}
