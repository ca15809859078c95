package edition

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/store"
)

// Among the processes that publish one publication with one configuration, one is the builder. It
// holds a lease from its election on, so that editions do not alternate between processes that may
// run different versions of the program. Correctness does not depend on the election: to publish, a
// process also holds the lease of the publication, and replaces the edition by a compare-and-swap.

var errNotBuilder = millrace.Coded("lease-held", fmt.Errorf("%w: another process is the builder", millrace.ErrConflict))

// Builder reports whether this process builds the editions. If not, it serves the editions of the
// process that does.
func (s *Server) Builder() bool { return s.term.Load() != nil }

// elect makes this process the builder while it holds the lease, until the context ends.
func (s *Server) elect(ctx context.Context) {
	for ctx.Err() == nil {
		terms, endTerm := context.WithCancelCause(ctx)
		s.terms.Store(&endTerm)
		key := sha256.Sum256([]byte(s.key))
		name := fmt.Sprintf("%s by %x", (*s.publication.Load()).Name(), key[:4])
		lease.Keep(terms, s.from.Store.Leases(), name, s.log, func(ctx context.Context) {
			s.term.Store(&ctx)
			s.log.DebugContext(ctx, "building editions")
			s.wake()
			select {
			case s.elected <- struct{}{}:
			default:
			}
			<-ctx.Done()
			s.term.Store(nil)
		})
		if errors.Is(context.Cause(terms), errResigned) {
			select {
			case <-ctx.Done():
			case <-time.After(retryEvery):
			}
		}
		endTerm(nil)
	}
}

// errResigned is the cause with which a term ends if this process could not publish. Another
// process may succeed.
var errResigned = errors.New("resigned")

// endTerm ends the term of this process, or its wait for one. The process then waits for another
// term.
func (s *Server) endTerm(cause error) {
	if endTerm := s.terms.Load(); endTerm != nil {
		(*endTerm)(cause)
	}
}

// asBuilder is a leaseFunc. If this process is the builder, it acts like [lease.Hold], and cancels
// the context of f when the term ends. Otherwise it returns errNotBuilder.
func (s *Server) asBuilder(ctx context.Context, leases store.Leases, name string, f func(ctx context.Context, l store.Lease) error) error {
	t := s.term.Load()
	if t == nil {
		return errNotBuilder
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(*t, cancel)()
	return lease.Hold(ctx, leases, name, f)
}
