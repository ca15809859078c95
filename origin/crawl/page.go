package crawl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
)

// extract builds the page from a response body.
func (c *Crawl) extract(ctx context.Context, r *result, resp *http.Response, data []byte) error {
	o := original{contentType: resp.Header.Get("Content-Type"), robots: resp.Header.Values("X-Robots-Tag"), modified: r.hint, body: data}
	if t, ok := lastModified(resp.Header); ok {
		o.modified = t.Unix()
	}
	res, err := c.make(ctx, r, &o)
	if res != nil {
		c.names.Add(res, r.url == c.scope.base)
		r.feeds = res.Feeds
		if r.url == c.scope.base {
			c.learnHome(res.Canonical)
		}
		if !res.NoFollow {
			r.links = c.links(res.Links)
		}
	}
	if err != nil || r.outcome != page {
		return err
	}
	c.canonical(r, res.Canonical)
	stored := r.version
	r.made = version{kind: isPage, by: r.rules.by, depth: r.depth, sketch: r.sketch}
	if r.made.validators(resp.Header); r.made.modified == 0 {
		r.made.hint = r.hint
	}
	r.page.URL = r.url
	if r.foreignCanonical != "" {
		r.page.URL, r.made.claim = r.foreignCanonical, key(r.foreignCanonical)
	}
	r.made.revise(r)
	r.same = stored.kind == isPage && !stored.stale && stored.revision == r.made.revision
	r.made.nothingNew = stored.kind == isPage && stored.nothingNew
	r.page.Original = o.encode() // a copy, because the buffer of the body is reused
	r.page.HTMLSize = millrace.HTMLSize{Bytes: int64(len(data)), Received: r.received}
	return nil
}

// make builds the page from its original, and sets the outcome to page, moved or empty. If
// extraction fails, the result is nil.
func (c *Crawl) make(ctx context.Context, r *result, o *original) (*extract.Result, error) {
	res, err := extract.HTML(ctx, o.body, r.url, o.options(r.rules.rules))
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, millrace.ErrInvalid), errors.Is(err, millrace.ErrTooLarge):
		r.outcome, r.err = empty, err
		return nil, nil //nolint:nilnil // see above
	default:
		return nil, err
	}
	p := res.Page
	if expired(o.robots, c.now()) {
		p.Access.NoIndex = true
	}
	switch {
	case res.Refresh != "" && len(p.Blocks) <= 1:
		r.outcome, r.to = moved, res.Refresh
	case res.Login:
		return res, errLogin
	case len(p.Blocks) == 0 && p.Title == "" && p.Description == "" && !p.Access.NoIndex:
		r.outcome, r.err = empty, fmt.Errorf("%w: no content: %w", millrace.ErrInvalid, res.Reason)
	default:
		r.outcome, r.page = page, p
		if millrace.ErrorCode(res.Reason) == "script-wall" {
			r.err = res.Reason
		}
		r.reading = read(p, r.url)
		o.date(p)
	}
	return res, nil
}

// canonical handles the canonical link of a page.
func (c *Crawl) canonical(r *result, canonical string) {
	if canonical == "" {
		return
	}
	canonical = c.local(canonical)
	u, v := c.scope.clean(canonical)
	switch {
	case v == inside && key(u) != key(r.url):
		r.canonical = u
	case v == outside && !strings.HasPrefix(canonical, c.scope.origin+"/"):
		// If every page names the home page of another site as canonical, this is a mistake, so the
		// link is ignored.
		if at, err := url.Parse(canonical); err == nil && (at.Path != "/" || at.RawQuery != "" || r.url == c.scope.base) {
			r.foreignCanonical = canonical
		}
	}
}

// learnHome stores the canonical link of the root if it is on another host. In a copy of a site,
// such as a test site or a site behind a proxy, every page has a canonical link to that host.
func (c *Crawl) learnHome(canonical string) {
	home := ""
	if _, v := c.scope.clean(canonical); v == outside && strings.HasSuffix(canonical, "/") && !strings.Contains(canonical, "?") &&
		!strings.HasPrefix(canonical, c.scope.origin+"/") {
		home = canonical
	}
	c.home.Store(&home)
}

// local maps an address of the site's canonical host to this host.
func (c *Crawl) local(u string) string {
	if home := c.home.Load(); home != nil && *home != "" {
		if rest, ok := strings.CutPrefix(u, *home); ok {
			return c.scope.base + rest
		}
	}
	return u
}

// links returns the cleaned links that may be pages of the site and that are new to this run, or
// had no page in this run.
func (c *Crawl) links(all []extract.Link) []string {
	var out []string
	for _, l := range all {
		if l.NoFollow {
			continue
		}
		u, v := c.scope.clean(c.local(l.URL))
		if v != inside && v != repetitive {
			continue
		}
		if e, ok := c.table.get(key(u)); ok && e.state != unknown && e.state != gone {
			continue
		}
		out = append(out, u)
	}
	return out
}

// expired reports whether an X-Robots-Tag declares the page out of date ("unavailable_after").
// Dates have the format of RFC 850, RFC 822 or ISO 8601. Invalid dates are ignored.
func expired(tags []string, now time.Time) bool {
	for _, tag := range tags {
		_, date, ok := strings.Cut(strings.ToLower(tag), "unavailable_after:")
		if !ok {
			continue
		}
		fields := strings.Fields(strings.ReplaceAll(date, ",", " , "))
		for n := len(fields); n > 0; n-- {
			text := strings.ReplaceAll(strings.Join(fields[:n], " "), " ,", ",")
			for _, layout := range []string{
				time.RFC3339, time.DateOnly, time.RFC1123, time.RFC1123Z, time.RFC850, time.RFC822,
				"2 Jan 2006 15:04:05 MST", "2 Jan 2006 15:04:05 -0700", "2 Jan 2006", "2006-01-02 15:04:05",
			} {
				if t, err := time.Parse(layout, strings.ToUpper(text)); err == nil {
					return t.Before(now)
				}
			}
		}
	}
	return false
}
