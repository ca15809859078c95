package arc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/weblink"
	"github.com/millrace/millrace/protocol"
)

// terms is a policy with when it was read. A site without one has none.
type terms struct {
	read   time.Time // zero = not yet
	policy *millrace.Policy
}

// Policy gives what the site's policy says (E.6): /.well-known/arc-policy.json
// of the origin. The reader asks once in 24 hours. What the document does not
// say is zero, and no URL of it was asked for. ErrNotFound: the site has none,
// or none for this reader ([fetch.Absent]); ErrInvalid: it cannot be understood.
// The caller must not change the policy, and decides what it means for the
// caller; to a rate in it Page keeps. It is part of [protocol.PolicyReader].
func (r *Reader) Policy(ctx context.Context) (*millrace.Policy, error) {
	if r.err != nil {
		return nil, r.err
	}
	t := r.remembered()
	if t.read.IsZero() {
		p, err := r.askPolicy(ctx)
		if err != nil && !errors.Is(err, millrace.ErrNotFound) {
			return nil, err
		}
		t = r.remember(p)
	}
	if t.policy == nil {
		return nil, fmt.Errorf("%s: %s has no policy: %w", Name, r.root, millrace.ErrNotFound)
	}
	return t.policy, nil
}

func (r *Reader) remembered() terms {
	r.mu.Lock()
	defer r.mu.Unlock()
	if age := r.o.Now().Sub(r.terms.read); age < 0 || age >= discoveryAge {
		return terms{}
	}
	return r.terms
}

func (r *Reader) remember(p *millrace.Policy) terms {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.terms = terms{read: r.o.Now(), policy: p}
	return r.terms
}

// askPolicy reads the policy of the site. HTML in its place is none.
func (r *Reader) askPolicy(ctx context.Context) (*millrace.Policy, error) {
	at := strings.TrimSuffix(r.root, "/") + pathPolicy
	resp, err := r.get(ctx, http.MethodGet, at, "application/json", fetch.Validators{})
	if err != nil {
		return nil, policyErr(err)
	}
	defer resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, policyErr(err)
	}
	if weblink.IsHTML(resp.Header) {
		return nil, fmt.Errorf("%s: policy: %s is HTML: %w", Name, at, millrace.ErrNotFound)
	}
	body, err := fetch.ReadBody(resp, maxPolicy)
	if err != nil {
		return nil, fmt.Errorf("%s: policy: %w", Name, err)
	}
	p, err := readPolicy(body)
	if err != nil {
		return nil, formatError(err, at, "E.6")
	}
	if r.o.Policy != nil {
		if err := r.o.Policy(protocol.Terms{URL: at, Policy: p, Names: policyNames}); err != nil {
			return nil, refused{err}
		}
	}
	return p, nil
}

// maxPolicy is the most bytes of a policy.
const maxPolicy = 1 << 20

// policyNames are the members of a policy that bind its readers.
var policyNames = protocol.MemberNames{
	Purposes: map[millrace.Purpose]string{
		millrace.AIInput: "purposes.ai-input", millrace.AITrain: "purposes.ai-train", millrace.Search: "purposes.search",
	},
	PerSecond: "crawl_rate", PerDay: "requests_per_day",
}

// policyErr says whether a policy that was not given is there.
func policyErr(err error) error {
	if fetch.Absent(err) {
		return fmt.Errorf("%s: policy: %w: %v", Name, millrace.ErrNotFound, err) //nolint:errorlint // another sentinel would say another thing
	}
	return fmt.Errorf("%s: policy: %w", Name, err)
}

// refused is what the caller has against a policy. It ends the stream.
type refused struct{ error }

// Unwrap gives the caller's own error.
func (e refused) Unwrap() error { return e.error }

// accept gives the error of a policy if it ends the stream, and notes it
// otherwise.
func (r *Reader) accept(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, millrace.ErrNotFound) {
		return nil
	}
	_, no := errors.AsType[refused](err)
	unclear := r.o.Policy != nil && (errors.Is(err, millrace.ErrInvalid) || errors.Is(err, millrace.ErrTooLarge))
	if no || unclear || ctx.Err() != nil {
		return err
	}
	r.note("reader/policy", strings.TrimSuffix(r.root, "/")+pathPolicy, "the policy cannot be read: "+err.Error())
	return nil
}
