package wordpress

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/weblink"
)

// postType is a type of items that has a place in the API.
type postType struct {
	slug  string // "post"
	name  string // "Posts"
	route string // "wp/v2/posts"
}

// builtin are the types that are pages of the site for certain. The others
// are looked at.
func (t postType) builtin() bool { return t.slug == "post" || t.slug == "page" }

// internal are types that are parts of pages, or files.
func internal(slug string) bool {
	return slug == "attachment" || slug == "nav_menu_item" || strings.HasPrefix(slug, "wp_")
}

const maxTypes = 200

// askTypes asks for the types that may have pages.
func (s *Site) askTypes(ctx context.Context, f *site) ([]postType, error) {
	var listed map[string]struct {
		Slug      string `json:"slug"`
		Name      string `json:"name"`
		Base      string `json:"rest_base"`
		Namespace string `json:"rest_namespace"` // since 5.9
	}
	at := f.route("wp/v2/types", nil) // without _fields: they would be taken for the names of types
	if _, err := s.get(ctx, at, &listed); err != nil {
		return nil, err
	}
	if len(listed) > maxTypes {
		return nil, fmt.Errorf("%w: %s has %d types", millrace.ErrTooLarge, at, len(listed))
	}
	var out []postType
	f.listed = slices.Sorted(maps.Keys(listed))
	for _, t := range listed {
		if t.Namespace == "" {
			t.Namespace = "wp/v2"
		}
		if t.Slug == "" || t.Base == "" || internal(t.Slug) || slices.Contains(s.not, t.Slug) || strings.ContainsAny(t.Base+t.Namespace, "(?#%") {
			continue
		}
		out = append(out, postType{slug: t.Slug, name: plain(t.Name), route: t.Namespace + "/" + t.Base})
	}
	slices.SortFunc(out, func(a, b postType) int { return strings.Compare(a.slug, b.slug) })
	return out, nil
}

// public reports whether the items of a type have pages. A plugin may give a
// type a place in the API although only its own parts are made of it.
func (r *run) public(ctx context.Context, t postType, now typeScan) (bool, error) {
	if t.builtin() || len(now.items) == 0 {
		return true, nil
	}
	asked := 0
	for _, it := range now.items {
		at, err := r.place(r.f, it.Link)
		if err != nil || it.hidden() {
			continue
		}
		if asked == maxProbes {
			break
		}
		asked++
		if open, err := r.shown(ctx, it, at); err != nil || open {
			return open, err
		}
	}
	return asked == 0, nil
}

// maxProbes is how many items of a type are looked at: one that leads elsewhere
// or is closed says nothing about the others.
const maxProbes = 3

// shown reports whether the link of an item leads to a page of its own.
func (r *run) shown(ctx context.Context, it item, at string) (bool, error) {
	resp, err := r.Site.do(ctx, http.MethodHead, at)
	if errors.Is(err, millrace.ErrForbidden) || errors.Is(err, millrace.ErrInvalid) {
		return false, nil // robots.txt disallows it, or it redirects to another site
	}
	if err != nil {
		return false, err
	}
	resp.Body.Close()
	if millrace.StatusErr(resp.StatusCode) != nil {
		return resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusGone &&
			resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden, nil
	}
	if resp.Request != nil && resp.Request.URL != nil {
		if led, _ := r.place(r.f, resp.Request.URL.String()); led != at {
			return false, nil
		}
	}
	return isOf(resp.Header, r.f, it.ID), nil
}

// isOf reports whether a page says that it is of an item. A link to a type
// without pages may lead to the home. Where no link to the API is in the
// header nothing is said, and the answer will do.
func isOf(header http.Header, f *site, id int64) bool {
	says := false
	for _, l := range weblink.Header(header, nil) {
		switch {
		case l.Is(apiRel, ""):
			says = true
		case l.Is("alternate", "application/json"): // since 5.5
			if _, n, ok := f.item(l.URL); ok {
				return n == strconv.FormatInt(id, 10)
			}
		case l.Is("shortlink", ""):
			if u, err := url.Parse(l.URL); err == nil && u.Query().Get("p") == strconv.FormatInt(id, 10) {
				return true
			}
		}
	}
	return !says
}
