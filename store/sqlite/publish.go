package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace"
)

// Published implements [store.Site].
func (s *Site) Published(ctx context.Context) (millrace.View, []byte, error) {
	v := &view{site: s}
	var fingerprint string
	var state, manifest []byte
	err := s.store.read.row(ctx, "SELECT seq, fingerprint, state, manifest FROM published WHERE site = ? ORDER BY number DESC LIMIT 1",
		[]any{s.id}, &v.seq, &fingerprint, &state, &manifest)
	switch {
	case absent(err):
		err = fmt.Errorf("%w: nothing has been published yet", millrace.ErrNotFound)
	case err == nil && fingerprint != s.fingerprint:
		err = fmt.Errorf("%w: it was published under another configuration", millrace.ErrNotFound)
	case err == nil:
		err = json.Unmarshal(state, &v.info)
	}
	if err != nil {
		return nil, nil, explain("published view of site "+s.name, err)
	}
	return v, manifest, nil
}

// Publish implements [store.Site]. What was published under another
// configuration counts as none.
func (s *Site) Publish(ctx context.Context, from, to uint64, manifest []byte) error {
	what := fmt.Sprintf("publish sequence number %d of site %s", to, s.name)
	var x *indexing
	if s.config.Index && to <= forever {
		// Nearly all of it before, so that others can write in between.
		if err := s.index(ctx, int64(to), nil); err != nil {
			return explain(what, err)
		}
		x = s.indexing()
		defer s.indexed(x)
	}
	err := s.change(ctx, func(w *work) error {
		if x != nil {
			if err := x.publish(ctx, w, int64(to)); err != nil {
				return err
			}
		}
		if w.state.fingerprint != s.fingerprint {
			return fmt.Errorf("%w: its pages are derived by another configuration by now", millrace.ErrConflict)
		}
		if to > uint64(w.seq) {
			return fmt.Errorf("%w: there is no sequence number %d yet", millrace.ErrInvalid, to)
		}
		if to < uint64(w.floor) {
			return fmt.Errorf("%w: the view of sequence number %d has been compacted away", millrace.ErrConflict, to)
		}
		var number, seq int64
		var fingerprint string
		err := w.row("SELECT number, seq, fingerprint FROM published WHERE site = ? ORDER BY number DESC LIMIT 1",
			[]any{s.id}, &number, &seq, &fingerprint)
		if err != nil && !absent(err) {
			return err
		}
		if fingerprint != s.fingerprint {
			seq = 0
		}
		if uint64(seq) != from {
			return fmt.Errorf("%w: %d is published by now, not %d", millrace.ErrConflict, seq, from)
		}
		info, err := s.describe(w, w.state, int64(to))
		if err != nil {
			return err
		}
		state, err := json.Marshal(info)
		if err != nil {
			return err
		}
		// Tags that have ended while the edition was made are in it all the same.
		err = w.exec("UPDATE tag SET named = 1 WHERE site = ? AND until < 1099511627775 AND until > ? AND seq <= ? AND named = 0", s.id, to, to)
		if err != nil {
			return err
		}
		// Compact needs to know of the older ones, but not what they said.
		err = w.exec("UPDATE published SET state = x'', manifest = NULL WHERE site = ? AND number = ?", s.id, number)
		if err != nil {
			return err
		}
		return w.exec("INSERT INTO published (site, number, seq, time, fingerprint, state, manifest) VALUES (?, ?, ?, ?, ?, ?, ?)",
			s.id, number+1, to, w.now.UnixMilli(), s.fingerprint, state, manifest)
	})
	if err != nil {
		return explain(what, err)
	}
	if x != nil {
		// It is published; what is not merged now is merged the next time.
		if err := s.merge(ctx, 1); err != nil {
			s.store.log.Warn("the words of an index are not merged", "site", s.name, "err", err)
		}
	}
	s.store.writer.rest(ctx)
	return nil
}
