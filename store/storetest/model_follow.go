package storetest

import (
	"errors"
	"time"

	"github.com/millrace/millrace"
)

// follower reads a log step by step, from one cursor to the next.
type follower struct {
	cursor   millrace.Cursor
	at       time.Time // time of the cursor's view
	look     content
	modified map[string]time.Time
	deleted  map[string]time.Time
}

// follow updates a follower to a view, using the changes since the follower's cursor.
func (g *generations) follow(what string, r *follower, v millrace.View, exp content, p *generation) {
	g.Helper()
	if r.cursor == "" {
		*r = follower{look: make(content), modified: make(map[string]time.Time), deleted: make(map[string]time.Time)}
	}
	for c, err := range v.Changes(g.Context(), r.cursor) {
		if errors.Is(err, millrace.ErrConflict) && r.cursor != "" {
			seq, elsewhere := v.Site().SeqOf(r.cursor)
			current := v.Site().At(seq) == r.cursor && seq == p.seq && p.edition.Number > 0
			if elsewhere == nil && seq <= v.Site().Seq && (current || !r.at.Before(g.horizon)) {
				g.Errorf("%s: cursor %s of %v: %v", what, r.cursor, r.at, err)
			}
			r.cursor = ""
			g.follow(what, r, v, exp, p)
			return
		}
		if err != nil {
			g.Fatalf("%s: changes since %q: %v", what, r.cursor, err)
		}
		if c.Kind == millrace.KindCheckpoint {
			r.cursor, r.at = c.Checkpoint.Cursor, v.Site().Time
			continue
		}
		id := relative(c.URL)
		_, had := r.look[id]
		if c.New == had {
			g.Errorf("%s: new %v, but the follower has it: %v: %+v", what, c.New, had, c)
		}
		if c.Kind == millrace.Delete {
			delete(r.look, id)
			if r.deleted[id] = c.Time; !had {
				delete(r.modified, id)
			}
			continue
		}
		visible := g.page(v, c.URL)
		if m := r.modified[id]; !visible.Modified.After(m) && (had || r.deleted[id].After(g.horizon)) {
			g.Errorf("%s: %s changed at %v after %v", what, id, visible.Modified, m)
		}
		r.look[id], r.modified[id] = describe(visible), visible.Modified
	}
	want(g.fixture, what+": what the changes led to", r.look, exp)
	for page, err := range v.Scan(g.Context(), millrace.Scan{}) {
		want(g.fixture, what+": error", err, nil)
		want(g.fixture, what+": date of "+page.URL, page.Modified, r.modified[relative(page.URL)])
	}
}
