package analytics

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// queryKeySize is the length of a query key in bytes.
const queryKeySize = 32

// QueryKey returns the key for the hashes of a site's queries, and creates it on first use. The
// store keeps it, so equal queries keep equal hashes. A reader of the hashes who does not know the
// key cannot test guesses of queries.
func QueryKey(ctx context.Context, s store.State, site string) ([]byte, error) {
	key, err := state.Make(ctx, s, site, "analytics/query key",
		func(key []byte) bool { return len(key) == queryKeySize },
		func() ([]byte, error) {
			key := make([]byte, queryKeySize)
			_, err := rand.Read(key)
			return key, err
		})
	if err != nil {
		return nil, fmt.Errorf("query key: %w", err)
	}
	return key, nil
}
