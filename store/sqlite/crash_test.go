package sqlite

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/storetest"
)

func TestMain(m *testing.M) {
	for variable, run := range map[string]func(path string) error{storetest.CrashLocation: writeForever, usageChild: recordForever} {
		if path := os.Getenv(variable); path != "" {
			fmt.Fprintln(os.Stderr, run(path))
			os.Exit(1)
		}
	}
	testkit.Main(m)
}

func writeForever(path string) error {
	s, err := Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	return storetest.WriteForever(context.Background(), s)
}

// TestCrash kills writing processes, and checks the file after each.
func TestCrash(t *testing.T) {
	storetest.Crash(t, engine, testkit.Size(10, 20, 300), func(opened store.Store) {
		s := opened.(*Store)
		var check string
		if err := s.db.read.row(t.Context(), "PRAGMA integrity_check", nil, &check); err != nil || check != "ok" {
			t.Errorf("integrity: %s, %v", check, err)
		}
		var originals, urls int
		err := s.db.read.row(t.Context(), "SELECT (SELECT count(*) FROM original), (SELECT count(*) FROM memory)", nil, &originals, &urls)
		if err != nil || originals != urls {
			t.Errorf("%d URLs are stored, with %d originals (%v)", urls, originals, err)
		}
	})
}
