package ingest

import (
	"context"

	"github.com/millrace/millrace/store"
)

// SiteNames returns the names of the sites of a store.
func SiteNames(ctx context.Context, st store.Store) (names []string, err error) {
	for name, err := range st.Sites(ctx) {
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}
