package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace"
)

// copyRows is the maximum number of rows that one transaction copies.
const copyRows = 2000

// copy copies the next rows of the generation from which this one was forked: first its
// entries, then its tags.
func (r *refresh) copy(ctx context.Context, was *generation) error {
	g := *was
	parent := &log{store: r.store, id: g.parent}
	err := r.write(ctx, *was, &g, func(w *work) error {
		if left, err := g.parentLeft(w); err != nil || !left {
			return cmp.Or(err, errForkLost)
		}
		if proto, url, ok := strings.Cut(g.after, " "); ok || w.seq == g.fork {
			return r.copyTags(w, &g, proto, url)
		}
		st, err := parent.state(w)
		if err != nil {
			return err
		}
		var to int64
		err = w.Row("SELECT coalesce(max(id), ?) FROM (SELECT id FROM entry WHERE id > ? AND id <= ? ORDER BY id LIMIT ?) AS next",
			[]any{parent.entryID(g.fork), parent.entryID(w.seq), parent.entryID(g.fork), copyRows}, &to)
		if err != nil {
			return err
		}
		// The parent may have changed since the fork: entries that ended after the fork are current
		// in the copy.
		err = w.Exec(`INSERT INTO entry (id, log, kind, prev, until, modified, rank, body, section, url, revision, meta)
			SELECT ?1 | (id & 17179869183), ?2, kind, prev, CASE WHEN until > ?3 THEN 17179869183 ELSE until END, modified, rank, body, section, url, revision, meta
			FROM entry WHERE id > ?4 AND id <= ?5`, w.entryID(0), w.id, g.fork, parent.entryID(w.seq), to)
		w.logState = logState{seq: to & forever, time: st.time, floor: st.floor, horizon: st.horizon}
		return err
	})
	if errors.Is(err, errForkLost) {
		// The next process forks the publication from a newer edition.
		dropped := r.store.db.Write(ctx, Lock{LockSite, r.log.site}, func(t Tx) error {
			return t.Exec("UPDATE publication SET stage = ? WHERE id = ? AND stage = ?", dropping, g.id, copying)
		})
		err = errors.Join(errForkLost, dropped)
	}
	return err
}

// parentLeft reports whether the parent still has all rows to copy.
func (g *generation) parentLeft(q Querier) (left bool, err error) {
	err = q.Row("SELECT floor <= ? FROM log JOIN publication USING (id) WHERE id = ? AND stage < 4", []any{g.fork, g.parent}, &left)
	if absent(err) {
		err = nil
	}
	return left, err
}

// errForkLost is the error of a generation whose parent was deleted before the copy was complete.
var errForkLost = millrace.Coded("log-dropped", fmt.Errorf("%w: the generation from which it was forked was deleted; open it again", millrace.ErrConflict))

// copyTags copies the next tags of the publication's protocols. After the last tag, it completes the
// copy, and the fork's own log begins.
func (r *refresh) copyTags(w *work, g *generation, proto, url string) error {
	protocols := make([]string, 0, len(r.protocols))
	for name := range r.protocols {
		protocols = append(protocols, name)
	}
	slices.Sort(protocols)
	if proto == "" && len(protocols) > 0 {
		proto = protocols[0]
	}
	if proto != "" {
		next := ""
		n := 0
		err := w.Rows("SELECT DISTINCT url FROM tag WHERE log = ? AND protocol = ? AND url > ? AND seq <= ? ORDER BY url LIMIT ?",
			[]any{g.parent, proto, url, g.fork, copyRows}, func(scan Scanner) error { n++; return scan(&next) })
		if err != nil {
			return err
		}
		if n > 0 {
			g.after = proto + " " + next
			return w.Exec(`INSERT INTO tag (log, protocol, url, seq, until, n, modified, value, named)
				SELECT ?1, protocol, url, seq, CASE WHEN until > ?2 THEN 17179869183 ELSE until END, n, modified, value, named
				FROM tag WHERE log = ?3 AND protocol = ?4 AND url > ?5 AND url <= ?6 AND seq <= ?2`, w.id, g.fork, g.parent, proto, url, next)
		}
		if i := slices.Index(protocols, proto); i+1 < len(protocols) {
			g.after = protocols[i+1] + " "
			return nil
		}
	}
	err := w.Exec("INSERT INTO moment (log, seq, time, tags) SELECT ?, seq, time, tags FROM moment WHERE log = ? AND seq <= ?", w.id, g.parent, g.fork)
	if err != nil {
		return err
	}
	err = w.Exec(`INSERT INTO section (log, name, pages) SELECT ?1, section, count(*) FROM entry INDEXED BY entry_url
		WHERE log = ?1 AND until = 17179869183 AND kind < 3 GROUP BY section`, w.id)
	if err != nil {
		return err
	}
	err = w.Exec("INSERT INTO tagged (log, protocol, pages) SELECT log, protocol, count(*) FROM tag WHERE log = ? AND until = 17179869183 GROUP BY log, protocol", w.id)
	if err != nil {
		return err
	}
	g.stage, g.after, g.position = comparing, "", 0
	return w.configure()
}
