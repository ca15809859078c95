package wordpress

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/sitemap"
)

const (
	mapAge = 24 * time.Hour // the types in a sitemap are cached for this time
	maxMap = 4 << 20        // maximum size of the sitemap index in bytes
)

// mapName matches the sitemap of one type's items in WordPress since 5.5. Sitemaps that plugins
// create have other names.
var mapName = regexp.MustCompile(`/wp-sitemap-posts-([a-z0-9_-]{1,64})-\d+\.xml$`)

// reportUnread reports a skip for each type with public pages that are not read, because the type
// is not in the API or its items did not look like pages. It also logs excluded types that do not
// exist. It fetches the site's sitemap once a day.
func (r *run) reportUnread(ctx context.Context) error {
	now := r.now().UTC()
	scanned, err := time.Parse(time.RFC3339, r.is.Scanned)
	if age := now.Sub(scanned); err != nil || age < 0 || age >= mapAge {
		names, ok := r.mapped(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if ok {
			r.is.Scanned, r.is.Mapped = now.Format(time.RFC3339), names
		}
	}
	unread := slices.DeleteFunc(slices.Clone(r.is.Mapped), func(slug string) bool {
		return slices.Contains(r.f.listed, slug) && !slices.Contains(r.closed, slug)
	})
	unknown := slices.DeleteFunc(slices.Clone(r.skipTypes), func(slug string) bool { return slices.Contains(r.f.listed, slug) })
	for _, slug := range unread {
		why := millrace.Coded("type-not-in-api", fmt.Errorf("%w: pages of type %s are not in the REST API; --as crawl reads them", millrace.ErrForbidden, slug))
		if err := r.skip(r.root.String()+"wp-sitemap-posts-"+slug+"-1.xml", why, false); err != nil {
			return err
		}
	}
	none := strings.Join(unknown, ", ")
	if was := r.warned.Swap(&none); was != nil && *was == none {
		return nil
	}
	if none != "" {
		r.log.WarnContext(ctx, "excluded types not found", "site", r.root, "types", none, "known", strings.Join(r.f.listed, ", "))
	}
	return nil
}

// mapped returns the types in the index of the site's sitemaps. It sends one request. ok is false
// if a later request may succeed.
func (r *run) mapped(ctx context.Context) (names []string, ok bool) {
	at := r.root.String() + "wp-sitemap.xml"
	if r.f.api.Query().Has("rest_route") { // the site uses no permalinks
		at = r.root.String() + "?sitemap=index"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return nil, true
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.log.DebugContext(ctx, "cannot read sitemap index", "site", r.root, "err", err)
		return nil, false
	}
	if err := fetch.CheckStatus(resp); err != nil {
		resp.Body.Close()
		r.log.DebugContext(ctx, "cannot read sitemap index", "site", r.root, "err", err)
		return nil, resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests
	}
	body, err := fetch.Decode(resp)
	if err != nil {
		return nil, true
	}
	defer body.Close()
	for e, err := range sitemap.Parse(body, &sitemap.Options{MaxBytes: maxMap}) {
		if err != nil || len(names) == maxTypes {
			break // use the entries before the error
		}
		if slug := mapType(e.URL); slug != "" && !internal(slug) && !slices.Contains(names, slug) {
			names = append(names, slug)
		}
	}
	slices.Sort(names)
	return names, true
}

// mapType returns the type whose items are in a sitemap, or "" for other sitemaps.
func mapType(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return ""
	}
	if m := mapName.FindStringSubmatch(u.Path); m != nil {
		return m[1]
	}
	if q := u.Query(); q.Get("sitemap") == "posts" {
		if m := mapName.FindStringSubmatch("/wp-sitemap-posts-" + q.Get("sitemap-subtype") + "-1.xml"); m != nil {
			return m[1]
		}
	}
	return ""
}
