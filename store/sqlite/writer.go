package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace"
)

// writer is the only connection that writes. Statements run without the caller's
// context, because the driver would start a goroutine for each. Callers check their
// context between statements.
type writer struct {
	turn  chan struct{} // holds one token while the connection is in use
	db    *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt

	// The holder of turn guards the following fields:
	open  *group        // group whose transaction is open, or nil
	most  time.Duration // longest use of the lock without a pause
	used  time.Duration // time for which the lock has been in use so far
	ended time.Time     // end of the last transaction

	idle *time.Timer // calls releaseCache
}

// group is a transaction that several writes share, so they cost a single sync of the disk. The
// first write begins it. Writes that are waiting for their turn join it, each with its own
// savepoint. Then the first write commits the transaction for all of them.
type group struct {
	began time.Time
	done  chan struct{} // closed when the transaction has ended
	err   error         // why the transaction was not committed; set before done is closed
}

// maxGroup is the age of a group after which a new write begins another group.
const maxGroup = 50 * time.Millisecond

// poll is the interval at which SQLite polls for the lock of another process.
const poll = 100 * time.Millisecond

// maxTries is the number of times that a transaction waits for the lock of another process, such as
// one that adds many sites. Between two waits, the transaction checks its context.
const maxTries = 12

// tx is the part of a transaction that belongs to one write.
type tx struct{ w *writer }

// do runs f in an atomic transaction, and returns after the commit.
func (w *writer) do(ctx context.Context, f func(t *tx) error) error {
	if w.db == nil {
		return millrace.Coded("store-read-only", fmt.Errorf("%w: the store is open for reading only", millrace.ErrForbidden))
	}
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if w.open != nil && time.Since(w.open.began) > maxGroup {
		w.end(nil)
	}
	first := w.open == nil
	if first {
		if err := w.begin(ctx); err != nil {
			<-w.turn
			return err
		}
	}
	g := w.open
	if err := w.join(ctx, first, f); err != nil {
		return err
	}
	if first {
		// A channel serves its senders in order, so all waiting writes have joined now.
		w.turn <- struct{}{}
		if w.open == g {
			w.end(nil)
		}
		<-w.turn
	}
	<-g.done
	return g.err
}

// begin begins a transaction and its group.
func (w *writer) begin(ctx context.Context) error {
	if err := w.pause(ctx); err != nil {
		return err
	}
	err := (&tx{w}).Exec("BEGIN IMMEDIATE")
	for try := 1; try < maxTries && millrace.ErrorCode(err) == "store-busy" && ctx.Err() == nil; try++ {
		err = (&tx{w}).Exec("BEGIN IMMEDIATE")
	}
	if err != nil {
		return err
	}
	w.open = &group{began: time.Now(), done: make(chan struct{})}
	return nil
}

// join runs f in the open transaction, and passes the turn on. If f fails, none of its changes
// remain. The first write needs no savepoint, because it can roll back the whole transaction.
func (w *writer) join(ctx context.Context, first bool, f func(t *tx) error) (err error) {
	defer func() { <-w.turn }()
	t := &tx{w}
	if !first {
		if err := t.Exec("SAVEPOINT one"); err != nil {
			w.end(err)
			return err
		}
	}
	err = errors.New("a write panicked")
	defer func() {
		switch {
		case err == nil:
		case first:
			w.end(err)
		default:
			// SQLite may have rolled back everything already, for example on a full disk.
			if undo := errors.Join(t.Exec("ROLLBACK TO one"), t.Exec("RELEASE one")); undo != nil {
				w.end(err)
			}
		}
	}()
	if err = f(t); err == nil {
		err = ctx.Err()
	}
	if err == nil && !first {
		err = t.Exec("RELEASE one")
	}
	return err
}

// end commits the open transaction, or rolls it back because of err.
func (w *writer) end(err error) {
	g, t := w.open, &tx{w}
	if err == nil {
		err = t.Exec("COMMIT")
	}
	if err != nil {
		_ = t.Exec("ROLLBACK") // fails if SQLite has rolled back already
	}
	w.open, w.ended = nil, time.Now()
	w.used += w.ended.Sub(g.began)
	g.err = err
	close(g.done)
}

// pause lets other processes write after a long use of the lock. Without it, this process would
// always acquire the lock again before they poll.
func (w *writer) pause(ctx context.Context) error {
	switch {
	case time.Since(w.ended) > poll:
		w.used = 0
	case w.used > w.most:
		w.used = 0
		select {
		case <-time.After(poll + poll/2):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (w *writer) pragma(ctx context.Context, p string) error {
	_, err := w.conn.ExecContext(ctx, "PRAGMA "+p)
	return err
}

// cacheTime is how long the memory of the writer's cache is kept after a publication, because another
// publication may follow and use the cache.
const cacheTime = 2 * time.Second

// releaseCache releases the memory of the writer's cache, unless a transaction is running.
func (w *writer) releaseCache() {
	select {
	case w.turn <- struct{}{}:
		_ = w.pragma(context.Background(), "shrink_memory")
		<-w.turn
	default:
	}
}

func (w *writer) close() error {
	if w.db == nil {
		return nil // the store is read-only
	}
	if w.idle != nil {
		w.idle.Stop()
	}
	w.turn <- struct{}{} // wait for the current write
	defer func() { <-w.turn }()
	if w.open != nil {
		w.end(nil)
	}
	for _, st := range w.stmts {
		st.Close()
	}
	var err error
	if w.conn != nil {
		if err = w.conn.Close(); errors.Is(err, sql.ErrConnDone) {
			err = nil
		}
	}
	return errors.Join(err, w.db.Close())
}
