package arc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/weblink"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/kit"
)

// Policy gives what the site's policy says (E.6): /.well-known/arc-policy.json
// of the origin. The reader asks once in 24 hours. What the document does not
// say is zero, and no URL of it was asked for. ErrNotFound: the site has none,
// or none for this reader ([fetch.Absent]); ErrInvalid: it cannot be understood.
// The caller must not change the policy, and decides what it means for the
// caller; to a rate in it Page keeps. It is part of [protocol.PolicyReader].
func (r *Reader) Policy(ctx context.Context) (*millrace.Policy, error) {
	if r.Err != nil {
		return nil, r.Err
	}
	p, known := r.policy.Known(r.o.Now())
	if !known {
		var err error
		if p, err = r.askPolicy(ctx); err != nil && !errors.Is(err, millrace.ErrNotFound) {
			return nil, err
		}
		r.policy.Keep(p, r.o.Now())
	}
	if p == nil {
		return nil, fmt.Errorf("%s: %s has no policy: %w", Name, r.Root, millrace.ErrNotFound)
	}
	return p, nil
}

// askPolicy reads the policy of the site. HTML in its place is none.
func (r *Reader) askPolicy(ctx context.Context) (*millrace.Policy, error) {
	at := strings.TrimSuffix(r.Root, "/") + pathPolicy
	resp, err := r.Get(ctx, at, "application/json", fetch.Validators{})
	if err != nil {
		return nil, kit.PolicyError(Name, err)
	}
	defer resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, kit.PolicyError(Name, err)
	}
	if weblink.IsHTML(resp.Header) {
		return nil, fmt.Errorf("%s: policy: %s is HTML: %w", Name, at, millrace.ErrNotFound)
	}
	body, err := fetch.ReadBody(resp, policy.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("%s: policy: %w", Name, err)
	}
	p, err := policy.ReadARC(body)
	if err != nil {
		return nil, formatError(err, at, "E.6")
	}
	if err := kit.AskPolicy(&r.o.ReaderOptions, protocol.Terms{URL: at, Policy: p, Names: policy.ARCNames}); err != nil {
		return nil, err
	}
	return p, nil
}

// accept gives the error of a policy if it ends the stream, and notes it
// otherwise.
func (r *Reader) accept(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, millrace.ErrNotFound) {
		return nil
	}
	if kit.EndsStream(ctx, &r.o.ReaderOptions, err) {
		return err
	}
	r.Note("reader/policy", strings.TrimSuffix(r.Root, "/")+pathPolicy, "the policy cannot be read: "+err.Error())
	return nil
}
