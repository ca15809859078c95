// Package all opens an artifact store by its name.
package all

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/artifact/dir"
	"github.com/millrace/millrace/artifact/s3"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// Store is an open artifact store.
type Store interface {
	artifact.Store
	io.Closer
}

// Open opens the artifact store that belongs to the page store st. name is a folder or the URL of a
// bucket, such as "s3://bucket/prefix?endpoint=https://host". cache is the folder in which objects
// of a bucket are cached. A bucket belongs to one page store, which st identifies. log may be nil.
// If the URL has another scheme, Open returns ErrInvalid. See [dir.Open] and [s3.Open].
func Open(ctx context.Context, name, cache string, st store.State, log *slog.Logger) (Store, error) {
	if scheme, _, is := strings.Cut(name, "://"); is && !strings.HasPrefix(name, s3.Scheme) {
		return nil, millrace.Coded("store-scheme", fmt.Errorf("open artifacts: %w: unknown scheme %q; name a folder, or a URL that starts with s3://", millrace.ErrInvalid, scheme))
	} else if !is {
		return opened(dir.Open(name))
	}
	id, err := state.Make(ctx, st, "artifacts", "owner", func(b []byte) bool { return len(b) > 0 }, func() ([]byte, error) { return []byte(rand.Text()), nil })
	if err != nil {
		return nil, err
	}
	return opened(s3.Open(ctx, name, string(id), cache, &s3.Options{Logger: log}))
}

// opened converts a pointer to the interface type. After an error, it returns a nil interface,
// because a nil pointer would become a Store that is not nil.
func opened[S Store](s S, err error) (Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
