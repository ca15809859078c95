package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// Kept opens a site as its last writer has left it, for whoever only reads and
// searches and has no configuration of their own: nothing has to be derived.
// A site that is named by its address has that for its base, wherever its
// pages have been published since; any other one that of its last publication.
// e is the [store.Config]'s Embedder. ErrNotFound: the store has no such site;
// ErrConflict: its pages are being derived anew.
func (s *Store) Kept(ctx context.Context, name string, e store.Embedder) (*Site, error) {
	what := "site " + name + " of store " + s.path
	site := &Site{store: s, name: name, config: store.Config{Base: name, Embedder: e}}
	err := s.read.row(ctx, "SELECT id, fingerprint FROM site WHERE name = ? AND seq > 0", []any{name}, &site.id, &site.fingerprint)
	switch {
	case absent(err):
		return nil, fmt.Errorf("%s: %w", what, millrace.ErrNotFound)
	case err != nil:
		return nil, explain(what, err)
	case site.fingerprint == "":
		return nil, fmt.Errorf("%s: %w: its pages are being derived anew: wait for the program that does it, or start that again", what, millrace.ErrConflict)
	}
	if strings.Contains(name, "://") {
		site.config.Docs = name
		return site, nil
	}
	var state []byte
	err = s.read.row(ctx, "SELECT state FROM published WHERE site = ? ORDER BY number DESC LIMIT 1", []any{site.id}, &state)
	if err != nil && !absent(err) {
		return nil, explain(what, err)
	}
	var info millrace.Site
	if len(state) > 0 && json.Unmarshal(state, &info) == nil && info.Base != "" {
		site.config.Base = info.Base
	}
	if !strings.Contains(site.config.Base, "://") {
		return nil, fmt.Errorf("%s: %w: it was never complete: let serve finish its first look", what, millrace.ErrNotFound)
	}
	site.config.Docs = site.config.Base
	return site, nil
}
