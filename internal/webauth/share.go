package webauth

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// Used nonces are stored as a log in the State of a store. Processes append to its last segment,
// and read what others have appended.
const (
	shareEvery  = time.Second
	recordSize  = 24
	segmentSize = 512 * recordSize
	maxSegments = 2 * maxNonces * recordSize / segmentSize
)

// position is a position in the log.
type position struct{ segment, bytes int }

// share is the log of one site.
type share struct {
	*nonces
	state store.State
	name  string
	first state.JSON[int] // the first segment; earlier ones are deleted
}

// Share exchanges used nonces with other processes through the State of a store, until the context
// ends. name is the namespace of the site. Two seconds after one process has accepted a nonce, all
// other processes refuse that nonce.
func (v *Verifier) Share(ctx context.Context, st store.State, name string, log *slog.Logger) {
	s := &share{v.nonces, st, name, state.JSON[int]{State: st, Namespace: name, Key: "nonces"}}
	s.mu.Lock()
	s.shared = true
	s.mu.Unlock()
	failing := false
	for {
		err := s.exchange(ctx, v.now())
		if err != nil && !failing && ctx.Err() == nil {
			log.WarnContext(ctx, "could not share used nonces; other processes may accept them again", "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shareEvery)
			defer cancel()
			_ = s.exchange(last, v.now()) // if this fails, the process ends like a killed one
			return
		case <-time.After(shareEvery):
		}
	}
}

func (s *share) segment(n int) string { return fmt.Sprintf("nonces/%d", n) }

// exchange reads the nonces of other processes, and appends the nonces of this process.
func (s *share) exchange(ctx context.Context, now time.Time) error {
	fresh := s.take()
	for {
		value, err := s.state.Value(ctx, s.name, s.segment(s.read.segment))
		if err == nil && len(value) == 0 {
			var first int
			if first, err = s.first.Load(ctx); err == nil && s.read.segment < first {
				s.read = position{segment: first}
				continue
			}
		}
		if err != nil {
			s.giveBack(fresh)
			return err
		}
		s.merge(value, now)
		switch {
		case len(value) >= segmentSize:
			s.read = position{segment: s.read.segment + 1}
			continue
		case len(fresh) == 0:
			return nil
		}
		n := min(len(fresh), (segmentSize-len(value))/recordSize)
		next := value[:len(value):len(value)]
		for _, f := range fresh[:n] {
			next = binary.BigEndian.AppendUint64(append(next, f.id[:]...), uint64(f.end)) //nolint:gosec // after 1970
		}
		err = s.state.Swap(ctx, s.name, s.segment(s.read.segment), value, next)
		if err == nil {
			fresh, s.read.bytes = fresh[n:], len(next)
			if len(value) == 0 {
				err = s.drop(ctx, now)
			}
		}
		if err != nil && !errors.Is(err, millrace.ErrConflict) {
			s.giveBack(fresh)
			return err
		}
	}
}

// merge adds the nonces of a segment after the position up to which it was read.
func (s *share) merge(segment []byte, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; s.read.bytes+recordSize <= len(segment); s.read.bytes += recordSize {
		b := segment[s.read.bytes:]
		is := nonce{[16]byte(b), int64(binary.BigEndian.Uint64(b[16:]))} //nolint:gosec // as appended
		if is.end >= now.Unix() {
			s.add(is)
		}
	}
}

// drop deletes the first segments if all their nonces have expired, or if there are too many
// segments.
func (s *share) drop(ctx context.Context, now time.Time) error {
	for {
		first, err := s.first.Load(ctx)
		if err != nil || first >= s.read.segment {
			return err
		}
		old, err := s.state.Value(ctx, s.name, s.segment(first))
		if err != nil {
			return err
		}
		for b := old; len(b) >= recordSize && s.read.segment-first < maxSegments; b = b[recordSize:] {
			if int64(binary.BigEndian.Uint64(b[16:])) >= now.Unix() { //nolint:gosec // as appended
				return nil
			}
		}
		if err := s.first.Update(ctx, func(is *int) error { *is = max(*is, first+1); return nil }); err != nil {
			return err
		}
		if err := s.state.Swap(ctx, s.name, s.segment(first), old, nil); err != nil {
			return err
		}
	}
}
