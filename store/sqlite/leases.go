package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// leaseTable has the leases. A row stays when its lease ends, so that the fence
// rises.
const leaseTable = `
CREATE TABLE lease (
	name     TEXT PRIMARY KEY,
	holder   TEXT NOT NULL,
	fence    INTEGER NOT NULL,
	until    INTEGER NOT NULL, -- Unix ms
	duration INTEGER NOT NULL  -- ms
) WITHOUT ROWID;
`

// leases is the Leases of a store.
type leases struct{ store *Store }

// Leases implements [store.Store].
func (s *Store) Leases() store.Leases { return leases{s} }

// readLease returns the lease of a name, and whether it holds. One that ends
// later than its duration from now does not: the clock was set back.
func readLease(q querier, name string, now time.Time) (l store.Lease, holds bool, err error) {
	l.Name = name
	var until, duration int64
	err = q.row("SELECT holder, fence, until, duration FROM lease WHERE name = ?", []any{name}, &l.Holder, &l.Fence, &until, &duration)
	if absent(err) {
		return l, false, nil
	}
	l.Expires = time.UnixMilli(until).UTC()
	left := until - now.UnixMilli()
	return l, 0 < left && left <= duration, err
}

// checkLease returns ErrConflict unless a lease is zero or holds.
func checkLease(q querier, l store.Lease, now time.Time) error {
	if l == (store.Lease{}) {
		return nil
	}
	is, holds, err := readLease(q, l.Name, now)
	if err == nil && (!holds || is.Fence != l.Fence || is.Holder != l.Holder) {
		err = millrace.Coded("lease-lost", fmt.Errorf("lease %s: %w: it has expired or another process has it", l.Name, millrace.ErrConflict))
	}
	return err
}

// Acquire implements [store.Leases].
func (s leases) Acquire(ctx context.Context, name, holder string, d time.Duration) (l store.Lease, err error) {
	what := "lease " + name
	if name == "" || holder == "" || d < time.Millisecond {
		return l, millrace.Coded("bad-lease", fmt.Errorf("%s: %w: its name or its holder is empty, or it has no duration", what, millrace.ErrInvalid))
	}
	err = s.store.writer.do(ctx, func(t *tx) error {
		now := s.store.now().UTC()
		var holds bool
		if l, holds, err = readLease(t, name, now); err != nil {
			return err
		}
		switch {
		case !holds:
			l.Fence++
		case l.Holder != holder:
			return millrace.Coded("lease-held", fmt.Errorf("%w: %s has it", millrace.ErrConflict, l.Holder))
		}
		l.Holder, l.Expires = holder, now.Add(d).Truncate(time.Millisecond)
		return t.exec(`INSERT INTO lease (name, holder, fence, until, duration) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET holder = excluded.holder, fence = excluded.fence, until = excluded.until, duration = excluded.duration`,
			name, holder, l.Fence, l.Expires.UnixMilli(), d.Milliseconds())
	})
	return l, explain(what, err)
}

// Release implements [store.Leases].
func (s leases) Release(ctx context.Context, l store.Lease) error {
	return explain("lease "+l.Name, s.store.writer.do(ctx, func(t *tx) error {
		return t.exec("UPDATE lease SET until = 0 WHERE name = ? AND holder = ? AND fence = ?", l.Name, l.Holder, l.Fence)
	}))
}
