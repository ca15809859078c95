package all

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace"
)

// A name other than [Memory] and a URL is the path of a file. A URL with an unknown scheme is an
// error.
func TestOpen(t *testing.T) {
	for dsn, code := range map[string]string{
		Memory:                                 "",
		filepath.Join(t.TempDir(), "store.db"): "",
		filepath.Join(t.TempDir(), "a:b"):      "",
		t.TempDir():                            "is-folder",
		"mysql://localhost/x":                  "store-scheme",
		"postgres://localhost/x?sslmode=maybe": "store-dsn",
	} {
		st, err := Open(t.Context(), dsn, nil)
		if got := millrace.ErrorCode(err); err != nil && (got != code || !errors.Is(err, millrace.ErrInvalid)) || err == nil && code != "" {
			t.Errorf("%s: %v, want %q", dsn, err, code)
		}
		if err != nil && st != nil {
			t.Errorf("%s: returned a store and an error", dsn)
		}
		if err == nil {
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
