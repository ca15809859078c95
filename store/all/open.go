// Package all opens a store by its name. It is the only package that imports the engines.
package all

import (
	"context"
	"fmt"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
	"github.com/millrace/millrace/store/sqlite"
)

// Memory names a store in memory, which is lost when it is closed. Its publications show only
// the dates that the sources have set. They have no tokens and no deltas, because the next
// store could not continue them.
const Memory = "memory:"

// Open opens the store that dsn names: [Memory], or a file, which Open creates if it does not
// exist. If dsn is a URL, or the file is not a store, Open returns ErrInvalid. If the file
// cannot be written, it returns ErrForbidden. If a read-only store does not exist, it returns
// ErrNotFound. o may be nil.
func Open(ctx context.Context, dsn string, o *store.Options) (store.Store, error) {
	if dsn == Memory {
		st := memory.New(o)
		st.Volatile = true
		return st, nil
	}
	if scheme, _, is := strings.Cut(dsn, "://"); is {
		return nil, millrace.Coded("store-scheme", fmt.Errorf("open store: %w: unknown scheme %q; name a file", millrace.ErrInvalid, scheme))
	}
	st, err := sqlite.Open(ctx, dsn, o)
	if err != nil {
		return nil, err // a nil *sqlite.Store would be a non-nil Store
	}
	return st, nil
}
