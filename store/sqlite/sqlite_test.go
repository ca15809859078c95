package sqlite

import (
	"context"
	"testing"
	"time"

	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/storetest"
)

// suited fits a Store to the suite.
type suited struct{ *Store }

func (s suited) Site(ctx context.Context, name string, c store.Config) (store.Site, error) {
	site, err := s.Store.Site(ctx, name, c)
	if err != nil {
		return nil, err
	}
	return site, nil
}

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Engine{
		Open: func(t testing.TB, place string, now func() time.Time) storetest.Store {
			t.Helper()
			s, err := Open(context.Background(), place, &Options{Now: now})
			if err != nil {
				t.Fatal(err)
			}
			return suited{s}
		},
		Writes: func(t testing.TB, s storetest.Store) int64 {
			t.Helper()
			var n int64
			err := s.(suited).writer.do(context.Background(), func(t *tx) error {
				return t.row("SELECT total_changes()", nil, &n)
			})
			if err != nil {
				t.Fatal(err)
			}
			return n
		},
	})
}
