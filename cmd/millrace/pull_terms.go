package main

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

// termsRecord is what a mirror keeps of the policy of an origin: the JSON that
// is the cursor of the source "policy of ORIGIN" of each of the origin's sites,
// such as "policy of https://example.com". It is written by every pull that has
// heard of a policy, or that there is none, so that whoever hands the pages on
// can hand on what is asked of those who use them. A site that was pulled with
// --ignore-policy alone has none: nobody was asked.
type termsRecord struct {
	Time  time.Time        `json:"time"`  // when it was read
	Terms []protocol.Terms `json:"terms"` // of each document; none = the site has none
}

// termsOf is where the State of a store has the policy of an origin.
func termsOf(st store.State, u *url.URL) state.JSON[termsRecord] {
	return state.JSON[termsRecord]{State: st, Namespace: u.Scheme + "://" + u.Host, Key: "policy"}
}

// siteTerms gives the documents in which a mirrored site says what its content
// may be used for, as they were read last: purposes, requirements such as
// attribution, and the terms. There are none if the site has said nothing, if
// nobody has asked it, and if the site is no URL, such as a folder.
func siteTerms(ctx context.Context, st store.State, site store.Site) ([]protocol.Terms, error) {
	r, err := siteTermsRecord(ctx, st, site)
	return r.Terms, err
}

// siteTermsRecord is siteTerms with the time when they were read, zero if they
// never were.
func siteTermsRecord(ctx context.Context, st store.State, site store.Site) (termsRecord, error) {
	v, err := site.Head(ctx)
	if err != nil {
		return termsRecord{}, err
	}
	u, err := url.Parse(v.Site().Base)
	if err != nil || u.Host == "" {
		return termsRecord{}, nil //nolint:nilerr // it is no site of the web
	}
	return loadTerms(ctx, st, u)
}

// loadTerms gives what is remembered, a zero time if nothing is. ErrInvalid: it
// is of no use.
func loadTerms(ctx context.Context, st store.State, u *url.URL) (termsRecord, error) {
	r, err := termsOf(st, u).Load(ctx)
	if err != nil {
		return termsRecord{}, err
	}
	for _, t := range r.Terms {
		if err == nil && t.Policy == nil {
			err = errors.New("a document without its policy")
		} else if err == nil {
			err = t.Policy.Validate()
		}
	}
	if err != nil {
		return termsRecord{}, fmt.Errorf("policy of %s: %w: %w", u.Host, millrace.ErrInvalid, err)
	}
	return r, nil
}
