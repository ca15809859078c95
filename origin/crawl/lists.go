package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/sitemap"
)

// Limits of the lists of a site: sitemaps, sitemap indexes and feeds.
const (
	maxLists     = 1000 // maximum number of lists in a run and in a cursor
	maxListDepth = 3    // maximum nesting depth of sitemap indexes
	maxSiteFeeds = 10
	absentAge    = 7 * 24 * time.Hour // a missing sitemap at a usual path is requested again after this time
)

// list is one list of addresses. The cursor stores the list. If a list is unchanged, the sink knows
// all of its addresses.
type list struct {
	URL string `json:"u"`
	fetch.Validators
	Feed   bool   `json:"feed,omitempty"`
	Parent string `json:"in,omitempty"`   // URL of the index that names the list
	Absent int64  `json:"gone,omitempty"` // time at which the list was missing, in seconds since 1970

	depth    int
	usual    bool // the list is at a usual path, and no document names it
	dirty    bool // an address in the list could not be fetched; the next run reads the list again, even if this run is interrupted
	changed  bool // the list was read in this run; false after a 304
	complete bool // the list was read to its end
}

// readLists fetches the lists that robots.txt or the home page names, and adds their addresses. If
// a list is unavailable, readLists reports it and continues.
func (r *run) readLists(ctx context.Context, feeds []string) error {
	r.trusted = map[string]bool{r.scope.origin: true}
	var todo []list
	for _, s := range r.robots.Sitemaps() {
		u, err := canon.Resolve(r.root, s)
		if err != nil || sitemap.IsOther(u) {
			continue
		}
		// robots.txt may name lists on other hosts (sitemaps.org, "Sitemaps & Cross Submits").
		// Their addresses must still belong to the site.
		r.trusted[canon.Origin(u)] = true
		todo = append(todo, list{URL: u})
	}
	if len(todo) == 0 {
		todo = r.usualLists()
	}
	if feeds == nil {
		for _, l := range r.since.Lists {
			if l.Feed {
				feeds = append(feeds, l.URL)
			}
		}
	}
	for i, f := range feeds {
		if i < maxSiteFeeds && canon.Origin(f) == r.scope.origin {
			todo = append(todo, list{URL: f, Feed: true})
		}
	}
	before := map[string]list{}
	for _, l := range r.since.Lists {
		before[l.URL] = l
	}
	done := map[uint64]bool{}
	for i := 0; i < len(todo); i++ {
		l := todo[i]
		if done[key(l.URL)] || l.usual && r.hasSitemap() {
			continue
		}
		done[key(l.URL)] = true
		if len(r.lists) == maxLists {
			r.missed = true
			return r.skip(l.URL, false, millrace.Coded("list-count", fmt.Errorf("%w: more than %d lists; the others are not read", millrace.ErrTooLarge, maxLists)))
		}
		old := before[l.URL]
		l.Validators, l.Absent = old.Validators, old.Absent
		if l.usual && l.Absent != 0 && r.now().Sub(time.Unix(l.Absent, 0)).Abs() < absentAge {
			r.lists = append(r.lists, l)
			continue
		}
		l.Absent = 0
		if r.reread {
			l.Validators = fetch.Validators{}
		}
		r.lists = append(r.lists, l)
		children, err := r.readList(ctx, len(r.lists)-1)
		if isFatal(err) || ctx.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}
		now := &r.lists[len(r.lists)-1]
		if err != nil {
			if l.usual && (errors.Is(err, millrace.ErrNotFound) || errors.Is(err, millrace.ErrForbidden) || errors.Is(err, sitemap.ErrHTML)) {
				now.Validators, now.Absent = fetch.Validators{}, r.now().Unix()
				continue
			}
			now.dirty = true
			r.missed = r.missed || errors.Is(err, millrace.ErrUnavailable)
			if err := r.skip(l.URL, false, err); err != nil {
				return err
			}
		}
		if !now.changed {
			for _, c := range r.since.Lists {
				if c.Parent == l.URL {
					children = append(children, c.URL)
				}
			}
		}
		for _, c := range children {
			if l.depth+1 >= maxListDepth {
				if err := r.skip(c, false, millrace.Coded("list-depth", fmt.Errorf("%w: sitemap indexes nest more than %d levels", millrace.ErrTooLarge, maxListDepth))); err != nil {
					return err
				}
				break
			}
			todo = append(todo, list{URL: c, Parent: l.URL, depth: l.depth + 1})
		}
	}
	return nil
}

// usualLists returns the usual URLs of sitemaps. They are used if no document names a sitemap. They
// are in the folder of the site and, if that is not the host's root, also at the root.
func (r *run) usualLists() (lists []list) {
	for _, name := range []string{"sitemap.xml", "sitemap_index.xml", "wp-sitemap.xml"} {
		lists = append(lists, list{URL: r.scope.base + name, usual: true})
	}
	if other := r.scope.origin + "/"; other != r.scope.base {
		lists = append(lists, list{URL: other + "sitemap.xml", usual: true})
	}
	return lists
}

// hasSitemap reports whether the run found a sitemap at a usual path.
func (r *run) hasSitemap() bool {
	return slices.ContainsFunc(r.lists, func(l list) bool { return l.usual && l.Absent == 0 })
}

// readList fetches list n and adds its addresses. If the list is a sitemap index, readList returns
// the lists in it.
func (r *run) readList(ctx context.Context, n int) (children []string, err error) {
	l := &r.lists[n]
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	req.Header.Set("Accept", "application/xml, text/xml, application/rss+xml, application/atom+xml, text/plain, */*;q=0.5")
	l.Validators.Set(req.Header)
	resp, err := fetch.Do(ctx, r.client, req)
	for r.shouldRetry(ctx, err) {
		resp, err = fetch.Do(ctx, r.client, req)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNotModified && l.Validators != (fetch.Validators{}) {
		return nil, nil
	}
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, err
	}
	final := resp.Request.URL
	if at := canon.Origin(final.String()); !r.trusted[at] {
		return nil, millrace.Coded("list-elsewhere", fmt.Errorf("%w: the list redirects to another site, %s", millrace.ErrForbidden, at))
	}
	l.changed = true
	validators := fetch.ValidatorsOf(resp)
	l.Validators = fetch.Validators{}
	if l.Feed {
		err = r.readFeed(n, resp)
	} else {
		children, err = r.readSitemap(n, resp, final)
	}
	if err == nil {
		l.Validators, l.complete = validators, true
	}
	return children, err
}

// readSitemap adds the addresses of a sitemap, or returns the sitemaps in an index.
func (r *run) readSitemap(n int, resp *http.Response, at *url.URL) (children []string, err error) {
	body, err := fetch.Decode(resp)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	for e, err := range sitemap.Parse(body, nil) {
		if err != nil {
			if errors.Is(err, sitemap.ErrFeed) {
				return children, nil // a feed; it is read if the home page links to it
			}
			return children, err
		}
		u, err := canon.Resolve(at, e.URL)
		if err != nil {
			continue
		}
		if e.Sitemap {
			if r.trusted[canon.Origin(u)] && len(children) < maxLists {
				children = append(children, u)
			}
			continue
		}
		if err := r.listed(u, n, e.Modified); err != nil {
			return children, err
		}
	}
	// Reading to the end verifies the length and the digest of the body.
	_, err = io.Copy(io.Discard, io.LimitReader(body, 1<<20))
	return children, err
}

// listed adds an address from list n, with its modification time in the list.
func (r *run) listed(u string, n int, modified time.Time) error {
	u, v := r.scope.clean(r.local(u))
	if v == repetitive && len(u) <= maxAddress {
		v = inside // the owner of the site lists this address
	}
	if v != inside {
		return nil
	}
	hint := int64(0)
	if !modified.IsZero() && !modified.After(r.started) {
		hint = modified.Unix()
		r.newest = max(r.newest, hint)
	}
	k := key(u)
	if err := r.found(task{url: u, depth: 1, hint: hint, list: n + 1, listed: true}); err != nil {
		return err
	}
	if e, ok := r.table.get(k); ok {
		if u != r.scope.base { // the base was fetched before the lists
			e.date(hint)
		}
		if l := &r.lists[n]; !l.Feed {
			e.flags = e.flags&^byMask | listed | l.number()<<byShift
		}
		r.table.set(k, e)
	}
	return nil
}

// number returns the number of the list in the flags of an entry. The first number is 1.
func (l *list) number() uint8 { return uint8(1 + key(l.URL)%(byMask>>byShift)) }

// withdrawn marks as due the addresses that a changed sitemap no longer contains.
func (r *run) withdrawn() {
	var changed [byMask>>byShift + 1]bool
	any := false
	for i := range r.lists {
		if l := &r.lists[i]; l.changed && l.complete && !l.Feed {
			changed[l.number()], any = true, true
		}
	}
	if any {
		r.table.withdrawn(changed)
	}
}

// lost marks the list that contains an address as dirty, because the address was not fetched.
func (r *run) lost(t *task) {
	if t.list > 0 && t.list <= len(r.lists) {
		r.lists[t.list-1].dirty = true
	}
}
