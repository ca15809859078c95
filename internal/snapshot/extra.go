package snapshot

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/millrace/millrace/extract"
)

// Room is the key of snapshots in [millrace.Page.Extra].
const Room = "arc"

// version rises whenever the same document may give another snapshot.
const version = 1

// Extra puts snapshots into pages as they are extracted.
func Extra() map[string]extract.Extra {
	return map[string]extract.Extra{Room: {Version: version, Prefix: Prefix, Forms: true, Make: of}}
}

// of makes the snapshot of a document that is extracted.
func of(_ context.Context, d *extract.Document) (json.RawMessage, error) {
	o := &Options{Base: d.Base, Schema: d.Page.Schema, Forms: d.Forms}
	if u, err := d.Base.Parse(d.Page.URL); err == nil {
		o.URL = u
	} else {
		o.URL = &url.URL{}
	}
	s, err := Of(d.Tree, o)
	if s == nil || err != nil {
		return nil, err
	}
	return s.JSON()
}
