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
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/protocol/kit"

	"github.com/millrace/millrace/internal/weblink"
	"github.com/millrace/millrace/protocol"
)

// policyReader is the source that a site in a draft with a policy descriptor is.
type policyReader struct{ *tctReader }

// Policy gives what the site's policy descriptor says (7): the one at the root
// of the origin, else in the folder of the endpoint, else the one that the
// list has last named. The reader asks once in 24 hours. What the descriptor
// does not say is zero, and no URL of it was asked for. ErrNotFound: the site
// has none, or none for this reader ([fetch.Absent]); ErrInvalid: it cannot be
// understood. The caller must not change the policy, and decides what it means
// for the caller. It is part of [protocol.PolicyReader].
func (r policyReader) Policy(ctx context.Context) (*millrace.Policy, error) { return r.policy00(ctx) }

func (r *tctReader) policy00(ctx context.Context) (*millrace.Policy, error) {
	if r.Err != nil {
		return nil, r.Err
	}
	if p, known := r.policy.Known(r.Options.Now()); known {
		if p == nil {
			return nil, fmt.Errorf("%s: %s has no policy: %w", r.d.Name, r.Root, millrace.ErrNotFound)
		}
		return p, nil
	}
	for _, at := range r.places(policyName) {
		p, err := r.policyAt(ctx, at)
		if err == nil {
			r.policy.Keep(p, r.Options.Now())
			return p, nil
		}
		if !errors.Is(err, millrace.ErrNotFound) {
			return nil, err
		}
	}
	r.policy.Keep(nil, r.Options.Now())
	return nil, fmt.Errorf("%s: %s has no policy: %w", r.d.Name, r.Root, millrace.ErrNotFound)
}

// policyAt reads a policy descriptor. HTML in its place is none.
func (r *tctReader) policyAt(ctx context.Context, at string) (*millrace.Policy, error) {
	resp, err := r.Get(ctx, at, mediaType, fetch.Validators{})
	if err != nil {
		return nil, kit.PolicyError(r.d.Name, err)
	}
	defer resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, kit.PolicyError(r.d.Name, err)
	}
	if weblink.IsHTML(resp.Header) {
		return nil, fmt.Errorf("%s: policy: %s is HTML: %w", r.d.Name, at, millrace.ErrNotFound)
	}
	body, err := fetch.ReadBody(resp, policy.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("%s: policy: %w", r.d.Name, err)
	}
	p, err := policy.ReadTCT(body)
	if err != nil {
		if !isJSON(resp) && !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
			return nil, fmt.Errorf("%s: policy: %s is no object of JSON, and does not say that it is: %w", r.d.Name, at, millrace.ErrNotFound)
		}
		return nil, r.d.FormatError(err, at, "7.2")
	}
	if err := kit.AskPolicy(r.Options, protocol.Terms{URL: at, Policy: p, Names: policy.TCTNames}); err != nil {
		return nil, err
	}
	return p, nil
}

// isJSON reports whether a response says that it is JSON.
func isJSON(resp *http.Response) bool {
	typ, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && (typ == mediaType || strings.HasSuffix(typ, "+json") || typ == "text/json")
}

// begin reads the policy before anything else (7.3).
func begin(ctx context.Context, r *tctReader) error {
	_, err := r.policy00(ctx)
	return r.heed(ctx, r.Root, err)
}

// heed gives the error of a policy if it ends the stream, and notes it
// otherwise.
func (r *tctReader) heed(ctx context.Context, at string, err error) error {
	if err == nil || errors.Is(err, millrace.ErrNotFound) {
		return nil
	}
	if kit.EndsStream(ctx, r.Options, err) {
		return err
	}
	r.Note("reader/policy", at, "its policy cannot be read: "+err.Error())
	return nil
}

// described reads the policy that a list links to (7.3), if there was none
// where it should be.
func described(ctx context.Context, r *tctReader, resp *http.Response) error {
	if p, known := r.policy.Known(r.Options.Now()); !known || p != nil {
		return nil
	}
	for _, l := range weblink.Header(resp.Header, resp.Request.URL) {
		if !l.Is("describedby", "") || canon.Origin(l.URL) != canon.Origin(r.Root) {
			continue
		}
		p, err := r.policyAt(ctx, l.URL)
		if err == nil {
			r.policy.Keep(p, r.Options.Now())
			return nil
		}
		if errors.Is(err, millrace.ErrNotFound) {
			r.Note("reader/policy", l.URL, "the policy that the list names is not there: "+err.Error())
		} else if err := r.heed(ctx, l.URL, err); err != nil {
			return err
		}
	}
	return nil
}
