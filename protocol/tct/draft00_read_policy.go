package tct

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/policy"

	"github.com/millrace/millrace/internal/weblink"
)

// policyReader is the Source of a site for a draft with a policy descriptor.
type policyReader struct{ *tctReader }

// Policy returns the policy in the site's policy descriptor (7): the one at the root of the origin,
// else the one in the folder of the endpoint, else the one to which the list last linked. The
// reader fetches it at most once in 24 hours. Members that the descriptor lacks are zero. If the
// site has no policy, or none for this reader ([fetch.Absent]), the error is ErrNotFound; if the
// policy cannot be parsed, it is ErrInvalid. The caller must not change the policy, and must apply
// it. Policy implements [protocol.PolicyReader].
func (r policyReader) Policy(ctx context.Context) (*millrace.Policy, error) { return r.policy.Get(ctx) }

func (r *tctReader) decodePolicy(resp *http.Response, body []byte, at string) (*millrace.Policy, error) {
	p, err := policy.ReadTCT(body)
	if err != nil && !isJSON(resp) && !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return nil, fmt.Errorf("%s: policy: %s is neither a JSON object nor declared as JSON: %w", r.Name, at, millrace.ErrNotFound)
	}
	return p, r.d.FormatError(err, at, "7.2")
}

// isJSON reports whether the media type of a response is JSON.
func isJSON(resp *http.Response) bool {
	typ, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && (typ == mediaType || strings.HasSuffix(typ, "+json") || typ == "text/json")
}

// begin reads the policy before anything else (7.3).
func begin(ctx context.Context, r *tctReader) error {
	_, err := r.policy.Get(ctx)
	return r.policy.NoteOrRefuse(ctx, r.Root, err)
}

// described reads the policy to which a list links (7.3), if the usual URL has no policy.
func described(ctx context.Context, r *tctReader, resp *http.Response) error {
	if p, known := r.policy.Known(); !known || p != nil {
		return nil
	}
	for _, l := range weblink.Header(resp.Header, resp.Request.URL) {
		if !l.Is("describedby", "") || canon.Origin(l.URL) != canon.Origin(r.Root) {
			continue
		}
		_, err := r.policy.At(ctx, l.URL)
		if err == nil {
			return nil
		}
		if errors.Is(err, millrace.ErrNotFound) {
			r.Note("reader/policy", l.URL, "policy linked from the list not found: "+err.Error())
		} else if err := r.policy.NoteOrRefuse(ctx, l.URL, err); err != nil {
			return err
		}
	}
	return nil
}
