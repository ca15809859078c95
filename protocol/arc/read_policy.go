package arc

import (
	"context"
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/policy"
)

// Policy returns the site's policy (E.6), /.well-known/arc-policy.json of the origin. The
// reader fetches it once in 24 hours. Absent members are zero, and the URLs in it are not
// fetched. The error is ErrNotFound if the site has none, or none for this reader
// ([fetch.Absent]), and ErrInvalid if it cannot be parsed. The caller must not change the
// policy and must apply it, except for its rate, which Page obeys. Policy implements
// [protocol.PolicyReader].
func (r *reader) Policy(ctx context.Context) (*millrace.Policy, error) { return r.policy.Get(ctx) }

func decodePolicy(_ *http.Response, body []byte, at string) (*millrace.Policy, error) {
	p, err := policy.ReadARC(body)
	return p, formatError(err, at, "E.6")
}
