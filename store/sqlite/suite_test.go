package sqlite

import (
	"context"
	"testing"
	"time"

	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/storetest"
)

var engine = storetest.Engine{
	Durable: true,
	Open: func(t testing.TB, path string, now func() time.Time) store.Store {
		t.Helper()
		s, err := Open(context.Background(), path, &store.Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		return s
	},
	Writes: func(t testing.TB, s store.Store) int64 {
		t.Helper()
		var n int64
		err := s.(*Store).db.writer.do(context.Background(), func(t *tx) error {
			return t.Row("SELECT total_changes()", nil, &n)
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	},
}

func TestStore(t *testing.T) { storetest.Run(t, engine) }
