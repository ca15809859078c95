package store

import (
	"context"
	"iter"
)

// State stores small values by namespace and key. The values of a site have the site's name as
// their namespace. All methods are safe for concurrent use, including by several processes.
type State interface {
	// Value returns the value of a key, or nil if it is absent.
	Value(ctx context.Context, namespace, key string) ([]byte, error)
	// Swap replaces the value old of a key with new. The change is durable when Swap returns. An
	// empty value means that the key is absent. If the current value is not old, Swap returns
	// ErrConflict. If the namespace or the key is empty, it returns ErrInvalid.
	Swap(ctx context.Context, namespace, key string, old, new []byte) error
	// Namespaces yields the namespaces that contain a key, in order.
	Namespaces(ctx context.Context, key string) iter.Seq2[string, error]
}
