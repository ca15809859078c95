//go:build unix

package postgres

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/internal/pgcluster"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
	"github.com/millrace/millrace/store/storetest"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(storetest.CrashLocation); dsn != "" {
		s, err := Open(context.Background(), dsn, nil)
		if err == nil {
			err = storetest.WriteForever(context.Background(), s)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testkit.Main(m)
}

// cluster returns a running server for one test.
func cluster(t *testing.T) *pgcluster.Cluster {
	t.Helper()
	testkit.Real(t, pgcluster.Programs...)
	c, err := pgcluster.New(t.Context(), os.TempDir(), "fsync=off", "full_page_writes=off", "autovacuum=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

var databases atomic.Int64

// database creates a database and returns its DSN.
func create(t testing.TB, c *pgcluster.Cluster) (name, dsn string) {
	t.Helper()
	name = fmt.Sprint("test", databases.Add(1))
	dsn, err := c.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Exec(context.Background(), "postgres", "DROP DATABASE "+name+" WITH (FORCE)") })
	return name, dsn
}

func openStore(t testing.TB, dsn string, o *store.Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// counted counts the rows that its stores write.
type counted struct{ of sync.Map } // *Store to *writes

func (c *counted) open(t testing.TB, dsn string, now func() time.Time) store.Store {
	t.Helper()
	w := new(writes)
	s, err := open(context.Background(), dsn, record.Options(&store.Options{Now: now}), migrations, func(c *pgxpool.Config) { c.ConnConfig.Tracer = w })
	if err != nil {
		t.Fatal(err)
	}
	c.of.Store(s, w)
	return s
}

func (c *counted) written(_ testing.TB, s store.Store) int64 {
	w, _ := c.of.Load(s)
	return w.(*writes).rows.Load()
}

// engine returns the engine on a server.
func engine(c *pgcluster.Cluster) storetest.Engine {
	var all counted
	return storetest.Engine{Durable: true, Open: all.open, Writes: all.written, Location: func(t testing.TB) string {
		_, dsn := create(t, c)
		return dsn
	}}
}

// TestRealStore runs the suite on a server.
func TestRealStore(t *testing.T) {
	storetest.Run(t, engine(cluster(t)))
}

// TestRealCrash kills writing processes, and checks the store after each.
func TestRealCrash(t *testing.T) {
	storetest.Crash(t, engine(cluster(t)), testkit.Size(5, 10, 200), func(opened store.Store) {
		var originals, names int64
		err := opened.(*Store).db.Reader(t.Context()).Row("SELECT (SELECT count(*) FROM original), (SELECT count(*) FROM memory)", nil, &originals, &names)
		if err != nil || originals != names {
			t.Errorf("%d names are stored, with %d originals (%v)", names, originals, err)
		}
	})
}

// TestRealPooler runs the suite through PgBouncer in transaction mode.
func TestRealPooler(t *testing.T) {
	testkit.Real(t, pgcluster.Pooler)
	c := cluster(t)
	pool, err := c.Pool(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := engine(c)
	e.Location = func(t testing.TB) string {
		name, _ := create(t, c)
		return pool(name)
	}
	storetest.Run(t, e)
}
