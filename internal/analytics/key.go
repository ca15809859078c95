package analytics

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// queryKeySize is the length of a key of queries in bytes.
const queryKeySize = 32

// QueryKey returns the key that a site's queries are hashed by, and makes one the
// first time. It stays in the store, so that a query has one hash for as long as
// the site is there. The key keeps readers of the hashes from finding out by
// trying what was asked.
func QueryKey(ctx context.Context, s store.State, site string) ([]byte, error) {
	key, err := state.Make(ctx, s, site, "analytics/query key",
		func(key []byte) bool { return len(key) == queryKeySize },
		func() ([]byte, error) {
			key := make([]byte, queryKeySize)
			_, err := rand.Read(key)
			return key, err
		})
	if err != nil {
		return nil, fmt.Errorf("key of queries: %w", err)
	}
	return key, nil
}
