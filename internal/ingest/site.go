package ingest

import (
	"context"
	"fmt"
	"slices"
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

// CheckLabel returns ErrNotFound if no site of a fleet has a label. The label "" means any.
func CheckLabel(ctx context.Context, f store.Fleet, label string) error {
	if label == "" {
		return nil
	}
	for _, err := range f.Sites(ctx, store.FleetQuery{Label: label}) {
		return err
	}
	return fmt.Errorf("label %q: %w: no site has it; millrace sites list shows the labels", label, millrace.ErrNotFound)
}

// SitesWithLabel returns the names of the sites of a store that have a label (see [store.FleetSite])
// and a mirror, in order. If no site has the label, it returns ErrNotFound.
func SitesWithLabel(ctx context.Context, st store.Store, label string) (names []string, err error) {
	if err := CheckLabel(ctx, st.Fleet(), label); err != nil {
		return nil, err
	}
	for s, err := range st.Fleet().Sites(ctx, store.FleetQuery{Label: label}) {
		if err != nil {
			return nil, err
		}
		if s.Name != "" {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Visible is a site whose Head returns public pages only.
type Visible struct{ store.Site }

// Head implements [store.Site].
func (s Visible) Head(ctx context.Context) (millrace.View, error) {
	v, err := s.Site.Head(ctx)
	if err != nil {
		return nil, err
	}
	return store.Visible(v), nil
}

// Head opens a site of a store for reading, and returns its newest public view.
func Head(ctx context.Context, st store.Store, name string) (store.Site, millrace.View, error) {
	site, err := st.Site(ctx, name, "")
	if err != nil {
		return nil, nil, err
	}
	v, err := Visible{site}.Head(ctx)
	return site, v, err
}

// FindSite returns the one of names whose site has the name want, or whose pages have the base URL
// want.
func FindSite(ctx context.Context, st store.Store, names []string, want string) (string, error) {
	want = strings.TrimSuffix(want, "/")
	for _, n := range names {
		if strings.TrimSuffix(n, "/") == want {
			return n, nil
		}
	}
	for _, n := range names {
		// A site without a published view has no base URL.
		if _, v, err := Head(ctx, st, n); err == nil && strings.TrimSuffix(v.Site().Base, "/") == want {
			return n, nil
		}
	}
	return "", fmt.Errorf("%s: not in the store; use one of %s", want, strings.Join(names, ", "))
}
