package kit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol"
)

// policyAge is how long a policy is kept.
const policyAge = 24 * time.Hour

// Policy keeps the policy of a site for a day. It is safe for concurrent use.
type Policy struct {
	mu     sync.Mutex
	read   time.Time // zero = not yet
	policy *millrace.Policy
}

// Known returns the policy, nil if the site has none, and whether it is known.
func (p *Policy) Known(now time.Time) (*millrace.Policy, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if age := now.Sub(p.read); p.read.IsZero() || age < 0 || age >= policyAge {
		return nil, false
	}
	return p.policy, true
}

// Keep keeps a policy; nil = the site has none.
func (p *Policy) Keep(policy *millrace.Policy, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read, p.policy = now, policy
}

// PolicyError returns an error of a request for a policy: ErrNotFound if the
// policy is absent ([fetch.Absent]).
func PolicyError(name string, err error) error {
	if fetch.Absent(err) {
		return fmt.Errorf("%s: policy: %w: %v", name, millrace.ErrNotFound, err) //nolint:errorlint // another sentinel would say another thing
	}
	return fmt.Errorf("%s: policy: %w", name, err)
}

// RefusedError is an error of ReaderOptions.Policy. It ends the stream.
type RefusedError struct{ error }

// Unwrap returns the error of the caller.
func (e RefusedError) Unwrap() error { return e.error }

// AskPolicy calls ReaderOptions.Policy, if there is one.
func AskPolicy(o *protocol.ReaderOptions, t protocol.Terms) error {
	if o.Policy == nil {
		return nil
	}
	if err := o.Policy(t); err != nil {
		return RefusedError{err}
	}
	return nil
}

// EndsStream reports whether an error of a policy ends the stream: the caller has
// refused the policy, or would have to judge one that cannot be read.
func EndsStream(ctx context.Context, o *protocol.ReaderOptions, err error) bool {
	_, refused := errors.AsType[RefusedError](err)
	unclear := o.Policy != nil && (errors.Is(err, millrace.ErrInvalid) || errors.Is(err, millrace.ErrTooLarge))
	return refused || unclear || ctx.Err() != nil
}
