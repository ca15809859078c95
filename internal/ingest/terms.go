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

// TermsRecord is the stored policy of an origin. Every pull that has read a
// policy, or found it absent, writes the record, so that programs which pass
// the pages on can pass on its terms. A site that was only pulled with its
// policy ignored has no record.
type TermsRecord struct {
	Time  time.Time        `json:"time"`  // when it was read
	Terms []protocol.Terms `json:"terms"` // of each document; none = the site has none
}

// Terms is the value of the policy of an origin in the State of a store.
func Terms(st store.State, u *url.URL) state.JSON[TermsRecord] {
	return state.JSON[TermsRecord]{State: st, Namespace: u.Scheme + "://" + u.Host, Key: "policy"}
}

// SiteTerms returns the documents in which a mirrored site says what its content
// may be used for, as they were read last. There are none if the site has none,
// if no pull has asked for them, and if the site is no URL, such as a folder.
func SiteTerms(ctx context.Context, st store.State, site store.Site) (TermsRecord, error) {
	v, err := site.Head(ctx)
	if err != nil {
		return TermsRecord{}, err
	}
	u, err := url.Parse(v.Site().Base)
	if err != nil || u.Host == "" {
		return TermsRecord{}, nil //nolint:nilerr // it is no site of the web
	}
	return LoadTerms(ctx, st, u)
}

// LoadTerms returns the record of an origin, with a zero time if it has none. A
// record that cannot be used is ErrInvalid.
func LoadTerms(ctx context.Context, st store.State, u *url.URL) (TermsRecord, error) {
	r, err := Terms(st, u).Load(ctx)
	if err != nil {
		return TermsRecord{}, err
	}
	for _, t := range r.Terms {
		if err == nil && t.Policy == nil {
			err = errors.New("a document without its policy")
		} else if err == nil {
			err = t.Policy.Validate()
		}
	}
	if err != nil {
		return TermsRecord{}, fmt.Errorf("policy of %s: %w: %w", u.Host, millrace.ErrInvalid, err)
	}
	return r, nil
}
