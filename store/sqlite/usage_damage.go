package sqlite

import (
	"context"
	"fmt"
	"sync"
)

// toldDamage is which kept things are damaged that the log has told of. The zero
// value works.
type toldDamage struct{ of sync.Map }

// passed reports whether an error says that something kept of a site cannot be
// read: then readers go on without it, and the log tells of it, once. what and
// where say which it is.
func (s *Store) passed(ctx context.Context, site int64, err error, what string, where ...any) bool {
	if !damaged(err) {
		return false
	}
	if _, told := s.told.of.LoadOrStore(fmt.Sprint(site, what, where), true); !told {
		s.log.ErrorContext(ctx, what, where...)
	}
	return true
}
