package ingest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
)

// TermsRecord is the stored usage policy of an origin. Every pull that reads the policy, or finds
// it absent, writes the record, so programs that pass the pages on can also pass on the terms. If
// all pulls of a site ignored its policy, there is no record.
type TermsRecord struct {
	Time  time.Time        `json:"time"`  // time at which the policy was read
	Terms []protocol.Terms `json:"terms"` // one for each document; empty = the site has no policy
}

// Terms is the stored value of an origin's usage policy.
func Terms(st store.State, u *url.URL) state.JSON[TermsRecord] {
	return state.JSON[TermsRecord]{State: st, Namespace: u.Scheme + "://" + u.Host, Key: "policy"}
}

// SiteTerms returns the usage policy of a mirrored site as it was last read. The record is empty
// if the site has no policy, if no pull has read the policy, or if the site has no URL (a folder).
func SiteTerms(ctx context.Context, st store.State, site store.Site) (TermsRecord, error) {
	v, err := site.Head(ctx)
	if err != nil {
		return TermsRecord{}, err
	}
	u, err := url.Parse(v.Site().Base)
	if err != nil || u.Host == "" {
		return TermsRecord{}, nil //nolint:nilerr // the site is a folder or file, which publishes no terms
	}
	return LoadTerms(ctx, st, u)
}

// LoadTerms returns the record of an origin, with a zero time if it has none. An invalid
// record is ErrInvalid.
func LoadTerms(ctx context.Context, st store.State, u *url.URL) (TermsRecord, error) {
	r, err := Terms(st, u).Load(ctx)
	if err != nil {
		return TermsRecord{}, err
	}
	for _, t := range r.Terms {
		if err == nil && t.Policy == nil {
			err = errors.New("document without a policy")
		} else if err == nil {
			err = t.Policy.Validate()
		}
	}
	if err != nil {
		return TermsRecord{}, fmt.Errorf("policy of %s: %w: %w", u.Host, millrace.ErrInvalid, err)
	}
	return r, nil
}
