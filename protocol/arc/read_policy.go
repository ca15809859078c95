package arc

import (
	"context"
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/policy"
)

// Policy gives what the site's policy says (E.6): /.well-known/arc-policy.json
// of the origin. The reader asks once in 24 hours. What the document does not
// say is zero, and no URL of it was asked for. ErrNotFound: the site has none,
// or none for this reader ([fetch.Absent]); ErrInvalid: it cannot be understood.
// The caller must not change the policy, and decides what it means for the
// caller; to a rate in it Page keeps. It is part of [protocol.PolicyReader].
func (r *reader) Policy(ctx context.Context) (*millrace.Policy, error) { return r.policy.Get(ctx) }

func decodePolicy(_ *http.Response, body []byte, at string) (*millrace.Policy, error) {
	p, err := policy.ReadARC(body)
	return p, formatError(err, at, "E.6")
}
