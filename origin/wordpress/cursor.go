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
	Types map[string]typeState `json:"types,omitempty"` // by slug

	// Mapped lists the types in the site's sitemap at the time Looked (RFC 3339); "" = the
	// sitemap was not fetched.
	Mapped  []string `json:"mapped,omitempty"`
	Scanned string   `json:"looked,omitempty"`
}

// typeState is the position in the listing of a type.
type typeState struct {
	// State is a fingerprint of the items that were last modified and published. "" = the type
	// may change without a trace, or its deletions are not settled.
	State  string `json:"state,omitempty"`
	Total  int    `json:"total"`
	Newest string `json:"newest,omitempty"` // modified_gmt

	// Open reports that the first listing is incomplete. It continues after the item with the
	// ID After, which was at Offset.
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

// parseCursor parses a cursor of this site. ErrConflict: it is invalid.
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
