package wordpress

import (
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace"
)

// cursor is the position in the stream of a site.
type cursor struct {
	Root  string               `json:"root"`
	API   string               `json:"api,omitempty"`
	Home  string               `json:"home,omitempty"`
	Rules string               `json:"rules,omitempty"` // see site.rules
	Types map[string]typeState `json:"types,omitempty"` // states of the types, by slug

	// Mapped contains the types in the site's sitemap at the time Scanned (RFC 3339). If Scanned is
	// "", the sitemap was not fetched.
	Mapped  []string `json:"mapped,omitempty"`
	Scanned string   `json:"looked,omitempty"`
}

// typeState is the position in the listing of a type.
type typeState struct {
	// State is a fingerprint of the items that were modified or published last. It is "" if another
	// change of the type might leave no trace, or if its deletions have not been applied yet.
	State  string `json:"state,omitempty"`
	Total  int    `json:"total"`
	Newest string `json:"newest,omitempty"` // latest modified_gmt of the items

	// Open reports whether the first listing is incomplete. The listing continues after the item
	// with the ID After, whose offset was Offset.
	Open   bool  `json:"open,omitempty"`
	After  int64 `json:"after,omitempty"`
	Offset int   `json:"offset,omitempty"`
}

// settled reports whether the type has not changed since an earlier state.
func (s typeState) settled(was typeState) bool {
	return !was.Open && was.State != "" && s == was
}

func (c cursor) encode() millrace.Cursor {
	b, err := json.Marshal(c)
	if err != nil {
		panic("wordpress: cannot encode cursor: " + err.Error())
	}
	return millrace.Cursor(b)
}

// parseCursor parses a cursor of this site. If the cursor is invalid, parseCursor returns
// ErrConflict.
func (s *Site) parseCursor(since millrace.Cursor) (cursor, error) {
	c := cursor{Root: s.root.String()}
	if since == "" {
		return c, nil
	}
	if err := json.Unmarshal([]byte(since), &c); err != nil || c.Root != s.root.String() || len(c.Types) > 2*maxTypes || len(c.Mapped) > maxTypes {
		return c, fmt.Errorf("%w: the cursor belongs to another site", millrace.ErrConflict)
	}
	return c, nil
}
