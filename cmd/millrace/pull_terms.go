package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/millrace/millrace"
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

// termsOf names the memory of an origin's policy.
func termsOf(u *url.URL) string { return "policy of " + u.Scheme + "://" + u.Host }

// siteTerms gives the documents in which a mirrored site says what its content
// may be used for, as they were read last: purposes, requirements such as
// attribution, and the terms. There are none if the site has said nothing, if
// nobody has asked it, and if the site is no URL, such as a folder.
func siteTerms(ctx context.Context, site store.Site) ([]protocol.Terms, error) {
	r, err := siteTermsRecord(ctx, site)
	return r.Terms, err
}

// siteTermsRecord is siteTerms with the time when they were read, zero if they
// never were.
func siteTermsRecord(ctx context.Context, site store.Site) (termsRecord, error) {
	v, err := site.Head(ctx)
	if err != nil {
		return termsRecord{}, err
	}
	u, err := url.Parse(v.Site().Base)
	if err != nil || u.Host == "" {
		return termsRecord{}, nil //nolint:nilerr // it is no site of the web
	}
	return loadTerms(ctx, site, termsOf(u))
}

// loadTerms gives what is remembered, a zero time if nothing is. ErrInvalid: it
// is of no use.
func loadTerms(ctx context.Context, site store.Site, name string) (termsRecord, error) {
	cursor, err := site.Cursor(ctx, name)
	if err != nil || cursor == "" {
		return termsRecord{}, err
	}
	var r termsRecord
	err = json.Unmarshal([]byte(cursor), &r)
	for _, t := range r.Terms {
		if err == nil && t.Policy == nil {
			err = errors.New("a document without its policy")
		} else if err == nil {
			err = t.Policy.Validate()
		}
	}
	if err != nil {
		return termsRecord{}, fmt.Errorf("%s: %w: %w", name, millrace.ErrInvalid, err)
	}
	return r, nil
}

// save keeps the record in the memory of a site.
func (r termsRecord) save(ctx context.Context, site store.Site, name string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = site.Apply(ctx, name, []millrace.Change{
		{Kind: millrace.Mark, Mark: &millrace.Milestone{Cursor: millrace.Cursor(b)}},
	})
	return err
}
