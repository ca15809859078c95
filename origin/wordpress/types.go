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

// postType is a type of items in the API.
type postType struct {
	slug  string // such as "post"
	name  string // such as "Posts"
	route string // such as "wp/v2/posts"
}

// builtin reports whether items of a type are certainly pages of the site. All other types are
// checked.
func (t postType) builtin() bool { return t.slug == "post" || t.slug == "page" }

// internal reports whether items of a type are files or parts of pages.
func internal(slug string) bool {
	return slug == "attachment" || slug == "nav_menu_item" || strings.HasPrefix(slug, "wp_")
}

const maxTypes = 200

// askTypes fetches the types that may have pages.
func (s *Site) askTypes(ctx context.Context, f *site) ([]postType, error) {
	var listed map[string]struct {
		Slug      string `json:"slug"`
		Name      string `json:"name"`
		Base      string `json:"rest_base"`
		Namespace string `json:"rest_namespace"` // since WordPress 5.9
	}
	at := f.route("wp/v2/types", nil) // without _fields, because the names of types would be interpreted as fields
	if _, err := s.get(ctx, at, &listed); err != nil {
		return nil, err
	}
	if len(listed) > maxTypes {
		return nil, fmt.Errorf("%w: %s lists %d types", millrace.ErrTooLarge, at, len(listed))
	}
	var out []postType
	f.listed = slices.Sorted(maps.Keys(listed))
	for _, t := range listed {
		if t.Namespace == "" {
			t.Namespace = "wp/v2"
		}
		if t.Slug == "" || t.Base == "" || internal(t.Slug) || slices.Contains(s.skipTypes, t.Slug) || strings.ContainsAny(t.Base+t.Namespace, "(?#%") {
			continue
		}
		out = append(out, postType{slug: t.Slug, name: plain(t.Name), route: t.Namespace + "/" + t.Base})
	}
	slices.SortFunc(out, func(a, b postType) int { return strings.Compare(a.slug, b.slug) })
	return out, nil
}

// public reports whether the items of a type have pages. A plugin may add a type to the API that
// only this plugin uses.
func (r *run) public(ctx context.Context, t postType, now typeScan) (bool, error) {
	if t.builtin() || len(now.items) == 0 {
		return true, nil
	}
	asked := 0
	for _, it := range now.items {
		at, err := r.underRoot(r.f, it.Link)
		if err != nil || it.hidden() {
			continue
		}
		if asked == maxProbes {
			break
		}
		asked++
		if open, err := r.hasOwnPage(ctx, it, at); err != nil || open {
			return open, err
		}
	}
	return asked == 0, nil
}

// maxProbes is the maximum number of items of a type that are checked. One item is not enough,
// because it may redirect or be closed.
const maxProbes = 3

// hasOwnPage reports whether the link of an item leads to a page for this item.
func (r *run) hasOwnPage(ctx context.Context, it item, at string) (bool, error) {
	resp, err := r.Site.do(ctx, http.MethodHead, at)
	if errors.Is(err, millrace.ErrForbidden) || errors.Is(err, millrace.ErrInvalid) {
		return false, nil // robots.txt disallows the link, or it redirects to another site
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
		if led, _ := r.underRoot(r.f, resp.Request.URL.String()); led != at {
			return false, nil
		}
	}
	return isOf(resp.Header, r.f, it.ID), nil
}

// isOf reports whether a page belongs to an item. The link of an item whose type has no pages may
// redirect to the home page. If the header contains no link to the API, isOf returns true.
func isOf(header http.Header, f *site, id int64) bool {
	says := false
	for _, l := range weblink.Header(header, nil) {
		switch {
		case l.Is(apiRel, ""):
			says = true
		case l.Is("alternate", "application/json"): // since WordPress 5.5
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
