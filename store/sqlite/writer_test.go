package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/sqlitefile"
	"github.com/millrace/millrace/store/internal/sqlstore"
)

// Writes that wait for their turn while another write runs join its transaction.
func TestWritesShareTransaction(t *testing.T) {
	fault := errors.New("a fault")
	rollBack := func(t *tx) error { return errors.Join(t.Exec("ROLLBACK"), fault) } // like SQLite on a full disk
	fails := func(*tx) error { return fault }
	for name, c := range map[string]struct {
		writes []func(t *tx) error // after the write of its number
		stored []int
		errs   []int
	}{
		"all succeed":          {[]func(*tx) error{nil, nil, nil}, []int{0, 1, 2}, nil},
		"the first fails":      {[]func(*tx) error{fails, nil, nil}, []int{1, 2}, []int{0}},
		"another fails":        {[]func(*tx) error{nil, fails, nil}, []int{0, 2}, []int{1}},
		"one panics":           {[]func(*tx) error{nil, func(*tx) error { panic(fault) }, nil}, []int{0, 2}, []int{1}},
		"one rolls back":       {[]func(*tx) error{nil, rollBack, nil}, []int{2}, []int{0, 1}},
		"the first rolls back": {[]func(*tx) error{rollBack, nil, nil}, []int{1, 2}, []int{0}},
		"the last rolls back":  {[]func(*tx) error{nil, nil, rollBack}, nil, []int{0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := openFile(t.Context(), filepath.Join(t.TempDir(), "x.db"), settings{})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				w, start := s.db.writer, make(chan struct{})
				if err := w.do(t.Context(), func(t *tx) error { return t.Exec("CREATE TABLE n (n INTEGER)") }); err != nil {
					t.Fatal(err)
				}
				errs := make([]error, len(c.writes))
				for i, write := range c.writes {
					go func() {
						defer func() {
							if r := recover(); r != nil {
								errs[i] = r.(error)
							}
						}()
						errs[i] = w.do(t.Context(), func(tx *tx) error {
							<-start
							if seen := numbers(t, s); len(seen) > 0 && name == "all succeed" {
								t.Errorf("write %d: others see %v before the commit", i, seen)
							}
							if err := tx.Exec("INSERT INTO n VALUES (?)", i); err != nil || write == nil {
								return err
							}
							return write(tx)
						})
					}()
					synctest.Wait() // wait until it runs or waits for its turn
				}
				close(start)
				synctest.Wait()
				var failed []int
				for i, err := range errs {
					if err != nil {
						failed = append(failed, i)
					}
				}
				if got := numbers(t, s); !slices.Equal(got, c.stored) || !slices.Equal(failed, c.errs) {
					t.Errorf("stored %v, want %v; failed %v, want %v: %v", got, c.stored, failed, c.errs, errs)
				}
			})
		})
	}
}

// A write whose context ends before its turn does not affect the others.
func TestWriteCanceledBeforeItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := openFile(t.Context(), filepath.Join(t.TempDir(), "x.db"), settings{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		w, start, first := s.db.writer, make(chan struct{}), make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			first <- w.do(t.Context(), func(t *tx) error { <-start; return t.Exec("CREATE TABLE n (n INTEGER)") })
		}()
		synctest.Wait()
		second := make(chan error, 1)
		go func() {
			second <- w.do(ctx, func(t *tx) error { return t.Exec("INSERT INTO n VALUES (1)") })
		}()
		synctest.Wait()
		cancel()
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("the second write: %v", err)
		}
		close(start)
		if err := <-first; err != nil {
			t.Error(err)
		}
		if got := numbers(t, s); len(got) > 0 {
			t.Errorf("stored %v", got)
		}
	})
}

// numbers returns the committed numbers.
func numbers(t *testing.T, s *Store) (got []int) {
	err := s.db.Reader(t.Context()).Rows("SELECT n FROM n ORDER BY n", nil, func(scan sqlstore.Scanner) error {
		var n int
		err := scan(&n)
		got = append(got, n)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return got
}

// A write waits for a transaction of another process that is longer than its timeout.
func TestWriteWaits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	var stores [2]*Store
	for i := range stores {
		var err error
		if stores[i], err = openFile(t.Context(), path, settings{wait: time.Second}); err != nil {
			t.Fatal(err)
		}
		defer stores[i].Close()
	}
	third, err := sqlitefile.Open(path, "_pragma=busy_timeout(3000)")
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	written := make(chan error)
	err = stores[0].db.writer.do(t.Context(), func(*tx) error {
		go func() { written <- stores[1].db.writer.do(t.Context(), func(*tx) error { return nil }) }()
		if _, err := third.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err == nil {
			t.Error("two transactions have the lock")
		}
		return nil
	})
	if err := errors.Join(err, <-written); err != nil {
		t.Error(err)
	}
}
