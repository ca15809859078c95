package sqlitefile

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// Processes that open a new file at once all succeed. A connection in this test
// represents a process.
func TestUseWALAtOnce(t *testing.T) {
	t.Parallel()
	for range 50 {
		path := filepath.Join(t.TempDir(), "new #1?.db")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				db, err := Open(path, "_pragma=busy_timeout(5000)")
				if err != nil {
					t.Error(err)
					return
				}
				defer db.Close()
				c, err := db.Conn(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				if err := UseWAL(t.Context(), c, time.Minute); err != nil {
					t.Error(err)
				}
				var mode string
				if err := c.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
					t.Errorf("mode %q, %v", mode, err)
				}
				if _, err := c.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS t (n INTEGER)"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}
