// Package all opens a store by its name. It is the only package that knows the
// engines.
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

// Memory names a store that is lost when it is closed. Its publications give no
// date of a page that the source has not given, and no tokens and deltas, which the
// next store would not know.
const Memory = "memory:"

// Open opens the store that dsn names: [Memory], or a file, which it creates
// if need be. ErrInvalid: dsn is a URL, or the file is not a store; ErrForbidden:
// the file cannot be written; ErrNotFound: a read-only store does not exist. o
// may be nil.
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
		return nil, err // not a nil *sqlite.Store, which is not a nil Store
	}
	return st, nil
}
