package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// Stages of a generation.
const (
	copying   = iota + 1 // copies the log of the parent
	comparing            // compares every page of the site with the publication's
	replaying            // applies the entries of the site's log
	dropping             // being deleted by Compact
)

// Publication is one generation of a publication. It implements
// [store.Publication].
type Publication struct {
	*log
	config  store.Config
	touched atomic.Int64 // when the column opened was last written, Unix ms
}

var _ store.Publication = (*Publication)(nil)

// generation is the row of a generation.
type generation struct {
	id           int64
	epoch        string
	earlier      []millrace.Epoch
	parent, fork int64
	stage        int
	after        string
	position     int64
	head         int64
	opened       int64
}

const generationColumns = "id, epoch, earlier, parent, fork, stage, after, position, head, opened"

// readGeneration returns the generation in the first row of a query, or nil if the query has no
// rows. where is the end of the query, after FROM publication.
func readGeneration(q Querier, where string, args ...any) (*generation, error) {
	g := new(generation)
	var earlier []byte
	err := q.Row("SELECT "+generationColumns+" FROM publication "+where+" LIMIT 1", args,
		&g.id, &g.epoch, &earlier, &g.parent, &g.fork, &g.stage, &g.after, &g.position, &g.head, &g.opened)
	if absent(err) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(earlier, &g.earlier)
	}
	return g, err
}

// Publication implements [store.Site].
func (s *Site) Publication(ctx context.Context, c store.Config) (store.Publication, error) {
	what := "publication of " + s.what
	c, names, err := record.Complete(s.name, c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	var g *generation
	err = s.store.db.Write(ctx, Lock{LockSite, s.id}, func(t Tx) error {
		at, err := s.store.clock(t)
		if err != nil {
			return err
		}
		now := at.UnixMilli()
		if g, err = s.generation(t, c, now); err != nil {
			return err
		}
		return t.Exec("UPDATE publication SET opened = ? WHERE id = ?", now, g.id)
	})
	if err != nil {
		return nil, wrap(what, err)
	}
	p := &Publication{
		log: &log{
			store: s.store, id: g.id, site: s.id, what: what + " at " + c.Base, names: names, docs: c.EndpointBase,
			epoch: g.epoch, earlier: g.earlier, protocols: make(map[string]bool),
		},
		config: c,
	}
	for _, t := range c.Taggers {
		p.protocols[t.Protocol] = true
	}
	return p, nil
}

// generation finds the generation of a configuration, or creates one.
func (s *Site) generation(t Tx, c store.Config, now int64) (*generation, error) {
	name, fingerprint := record.Generation(c)
	last, err := readGeneration(t, "WHERE site = ? AND name = ? AND published > 0 AND stage < 4 ORDER BY published DESC", s.id, name)
	if err != nil {
		return nil, err
	}
	own, err := readGeneration(t, "WHERE site = ? AND name = ? AND fingerprint = ? AND stage < 4 ORDER BY id DESC", s.id, name, fingerprint)
	if err != nil {
		return nil, err
	}
	if own != nil && own.stage == copying {
		// The parent may have been deleted.
		left, err := own.parentLeft(t)
		if err != nil {
			return nil, err
		}
		if !left {
			if err := t.Exec("UPDATE publication SET stage = ? WHERE id = ?", dropping, own.id); err != nil {
				return nil, err
			}
			own = nil
		}
	}
	if own != nil {
		var published uint64
		err := t.Row("SELECT seq FROM published WHERE log = ? ORDER BY number DESC LIMIT 1", []any{own.id}, &published)
		if err != nil && !absent(err) {
			return nil, err
		}
		if last == nil || !record.Continues(last.earlier, own.epoch, published) {
			return own, nil
		}
	}
	g := &generation{stage: comparing, head: -1, opened: now, epoch: NewEpoch()}
	if last != nil {
		g.stage, g.parent = copying, last.id
		var number int64
		if err := t.Row("SELECT seq, number FROM published WHERE log = ? ORDER BY number DESC LIMIT 1", []any{last.id}, &g.fork, &number); err != nil {
			return nil, err
		}
		g.earlier = append(slices.Clone(last.earlier), millrace.Epoch{Name: last.epoch, Last: uint64(g.fork)})
	}
	if g.id, err = newLog(t, s.id); err != nil {
		return nil, err
	}
	earlier, err := json.Marshal(g.earlier)
	if err != nil {
		return nil, err
	}
	err = t.Exec(`INSERT INTO publication (id, site, name, fingerprint, epoch, earlier, parent, fork, stage, head, opened)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, g.id, s.id, name, fingerprint, g.epoch, string(earlier), g.parent, g.fork, g.stage, g.head, now)
	if err != nil || last == nil {
		return g, err
	}
	return g, t.Exec(`INSERT INTO published (log, number, own, seq, time, state, manifest)
		SELECT ?, number, FALSE, seq, time, state, manifest FROM published WHERE log = ? ORDER BY number DESC LIMIT 1`, g.id, last.id)
}

// Name implements [store.Publication].
func (p *Publication) Name() string { return "publication " + p.epoch }

// touchEvery is the interval at which a generation in use is marked as used.
const touchEvery = time.Hour

// touch marks the generation as used, at most once per touchEvery.
func (p *Publication) touch(ctx context.Context) error {
	local := time.Now // clock of this process, which suffices to measure an interval
	if p.store.now != nil {
		local = p.store.now
	}
	is, last := local().UnixMilli(), p.touched.Load()
	if is-last < touchEvery.Milliseconds() || !p.touched.CompareAndSwap(last, is) || !p.store.db.Writable() {
		return nil
	}
	return p.store.db.Write(ctx, Lock{}, func(t Tx) error {
		at, err := p.store.clock(t)
		if err != nil {
			return err
		}
		now := at.UnixMilli()
		return t.Exec("UPDATE publication SET opened = ? WHERE id = ? AND opened < ?", now, p.id, now)
	})
}

// generation reads the row of the generation.
func (p *Publication) generation(q Querier) (*generation, error) {
	g, err := readGeneration(q, "WHERE id = ? AND stage < 4", p.id)
	if err == nil && g == nil {
		err = errDropped()
	}
	return g, err
}

// Head implements [store.Publication].
func (p *Publication) Head(ctx context.Context) (v millrace.View, err error) {
	err = p.store.db.Snapshot(ctx, func(q Querier) error {
		g, err := p.generation(q)
		if err == nil && g.head < 0 {
			err = fmt.Errorf("%w: not refreshed yet", millrace.ErrNotFound)
		}
		if err == nil {
			v, err = p.view(q, g.head)
		}
		return err
	})
	if err != nil {
		return nil, wrap("head of "+p.what, err)
	}
	return v, nil
}

// Published implements [store.Publication].
func (p *Publication) Published(ctx context.Context) (millrace.View, store.Edition, error) {
	v := &view{log: p.log}
	var e store.Edition
	var state []byte
	var own bool
	err := p.touch(ctx)
	if err == nil { // one statement, because servers poll
		err = p.store.db.Reader(ctx).Row(`SELECT COALESCE(number, 0), COALESCE(own, FALSE), COALESCE(published.seq, 0), state, manifest
			FROM publication LEFT JOIN published ON published.log = publication.id WHERE publication.id = ? AND stage < 4 ORDER BY number DESC LIMIT 1`,
			[]any{p.id}, &e.Number, &own, &v.seq, &state, &e.Manifest)
	}
	switch {
	case absent(err):
		err = errDropped()
	case err == nil && !own:
		err = fmt.Errorf("%w: this generation has no edition", millrace.ErrNotFound)
	case err == nil:
		err = json.Unmarshal(state, &v.info)
	}
	if err != nil {
		return nil, e, wrap("edition of "+p.what, err)
	}
	return v, e, nil
}

// Publish implements [store.Publication].
func (p *Publication) Publish(ctx context.Context, l store.Lease, old, seq uint64, manifest []byte) (store.Edition, error) {
	e := store.Edition{Number: old + 1, Manifest: manifest}
	err := p.change(ctx, l, func(w *work) error {
		g, err := p.generation(w)
		if err != nil {
			return err
		}
		to := int64(seq)
		switch {
		case g.head < 0 || seq > uint64(g.head):
			return fmt.Errorf("%w: the sequence number is above the head", millrace.ErrInvalid)
		case to < w.floor:
			return fmt.Errorf("%w: the view was compacted", millrace.ErrConflict)
		}
		var number uint64
		err = w.Row("SELECT number FROM published WHERE log = ? ORDER BY number DESC LIMIT 1", []any{w.id}, &number)
		if err != nil && !absent(err) {
			return err
		}
		if number != old {
			return fmt.Errorf("%w: edition %d is published, not %d", millrace.ErrConflict, number, old)
		}
		info, err := w.describe(w, w.logState, to)
		if err != nil {
			return err
		}
		state, err := json.Marshal(info)
		if err != nil {
			return err
		}
		// The edition includes tags that ended during its build.
		err = w.Exec("UPDATE tag SET named = TRUE WHERE log = ? AND until < 17179869183 AND until > ? AND seq <= ? AND named = FALSE", w.id, to, to)
		if err != nil {
			return err
		}
		// Compact needs the rows of older editions, but not their manifests.
		if err := w.Exec("UPDATE published SET state = NULL, manifest = NULL WHERE log = ? AND number = ?", w.id, number); err != nil {
			return err
		}
		var id int64
		err = w.Row("INSERT INTO published (log, number, own, seq, time, state, manifest) VALUES (?, ?, TRUE, ?, ?, ?, ?) RETURNING id",
			[]any{w.id, e.Number, to, w.now.UnixMilli(), state, manifest}, &id)
		if err != nil {
			return err
		}
		return w.Exec("UPDATE publication SET published = ? WHERE id = ?", id, w.id)
	})
	if err != nil {
		return store.Edition{}, wrap("publish sequence number "+strconv.FormatUint(seq, 10)+" of "+p.what, err)
	}
	p.store.db.ReleaseCache()
	return e, nil
}

// Manifests implements [store.Store].
func (s *Store) Manifests(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for id := int64(0); ; {
			var manifest []byte
			err := s.db.Reader(ctx).Row("SELECT id, manifest FROM published WHERE id > ? AND manifest IS NOT NULL ORDER BY id LIMIT 1", []any{id}, &id, &manifest)
			if absent(err) {
				return
			}
			if err != nil {
				yield(nil, wrap("list the editions of store "+s.name, err))
				return
			}
			if !yield(manifest, nil) {
				return
			}
		}
	}
}
