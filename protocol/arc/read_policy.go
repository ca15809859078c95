package arc

import (
	"context"
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/policy"
)

// Policy returns the site's policy (E.6), which is at /.well-known/arc-policy.json of the origin.
// The reader fetches it at most once in 24 hours. Absent members are zero. URLs in the policy are
// not fetched. If the site has no policy, or none for this reader ([fetch.Absent]), the error is
// ErrNotFound; if the policy cannot be parsed, it is ErrInvalid. The caller must not change the
// policy. It must apply the policy, except for the rate, which Page obeys. Policy implements
// [protocol.PolicyReader].
func (r *reader) Policy(ctx context.Context) (*millrace.Policy, error) { return r.policy.Get(ctx) }

func decodePolicy(_ *http.Response, body []byte, at string) (*millrace.Policy, error) {
	p, err := policy.ReadARC(body)
	return p, formatError(err, at, "E.6")
}
