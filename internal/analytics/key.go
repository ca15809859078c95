package analytics

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/millrace/millrace"
)

// Notes is where a site of a store keeps short texts by name. Its methods are
// those of the store's sites.
type Notes interface {
	// Cursor gives what is kept under a name, "" if nothing is.
	Cursor(ctx context.Context, from string) (millrace.Cursor, error)
	// Swap keeps new in the place of old, durably. ErrConflict: old is not what
	// is there.
	Swap(ctx context.Context, from string, old, new millrace.Cursor) error
}

// keyNote is the name that the key is kept under, keySize its length in bytes.
const (
	keyNote = "queries are hashed by"
	keySize = 32
)

// QueryKey gives the key that a site's queries are hashed by, and makes one the
// first time. It stays in the store, so that a query has one hash for as long as
// the site is there, and nobody who sees hashes without the store can find out by
// trying what was asked.
func QueryKey(ctx context.Context, site Notes) ([]byte, error) {
	for {
		kept, err := site.Cursor(ctx, keyNote)
		if err != nil {
			return nil, fmt.Errorf("the key of queries: %w", err)
		}
		if key, err := base64.RawStdEncoding.DecodeString(string(kept)); err == nil && len(key) == keySize {
			return key, nil
		}
		key := make([]byte, keySize)
		_, _ = rand.Read(key) // it never fails
		err = site.Swap(ctx, keyNote, kept, millrace.Cursor(base64.RawStdEncoding.EncodeToString(key)))
		if err != nil && !errors.Is(err, millrace.ErrConflict) { // somebody else was faster: its key is as good
			return nil, fmt.Errorf("the key of queries: %w", err)
		}
	}
}
