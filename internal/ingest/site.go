package ingest

import (
	"context"
	"fmt"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// SiteNames returns the names of the sites of a store.
func SiteNames(ctx context.Context, st store.Store) (names []string, err error) {
	for name, err := range st.Sites(ctx) {
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// Visible is a site whose head has only what may be public.
type Visible struct{ store.Site }

// Head implements [store.Site].
func (s Visible) Head(ctx context.Context) (millrace.View, error) {
	v, err := s.Site.Head(ctx)
	if err != nil {
		return nil, err
	}
	return store.Visible(v), nil
}

// Head opens a site of a store to read it, and returns its newest view of what may be
// public.
func Head(ctx context.Context, st store.Store, name string) (store.Site, millrace.View, error) {
	site, err := st.Site(ctx, name, "")
	if err != nil {
		return nil, nil, err
	}
	v, err := Visible{site}.Head(ctx)
	return site, v, err
}

// FindSite returns one of the names of the sites of a store: the one that is wanted
// by its name or by where its pages are.
func FindSite(ctx context.Context, st store.Store, names []string, want string) (string, error) {
	want = strings.TrimSuffix(want, "/")
	for _, n := range names {
		if strings.TrimSuffix(n, "/") == want {
			return n, nil
		}
	}
	for _, n := range names {
		// A site that has not been published has no other name.
		if _, v, err := Head(ctx, st, n); err == nil && strings.TrimSuffix(v.Site().Base, "/") == want {
			return n, nil
		}
	}
	return "", fmt.Errorf("%s: it is not in the store; there is: %s", want, strings.Join(names, ", "))
}
