package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// Feeds list the changes, newest first. /feed.atom and /feed.json contain the last entries of the
// log. /feed-2.atom and so on contain the earlier entries that are still in the log, in at most
// maxFeeds documents. A page is listed once, with its last change and the time of that commit. A
// client that has read a feed needs only the newer entries, including deletions.
const (
	feedItems  = 500
	maxFeeds   = 10
	feedFormat = 3 // changes when the bytes for the same view change
)

// feedForm is a format of feeds.
type feedForm struct{ suffix, mediaType string }

var feedForms = []feedForm{{".atom", atomType}, {".json", jsonFeedType}}

// feedForms returns the formats of the feeds. A compact site has only Atom.
func (d *siteDocuments) feedForms() []feedForm {
	if d.compact {
		return feedForms[:1]
	}
	return feedForms
}

func (f feedForm) path(n int) string {
	if n == 1 {
		return "/feed" + f.suffix
	}
	return "/feed-" + strconv.Itoa(n) + f.suffix
}

// feedNamed returns the format and the number of the feed document at a path.
func feedNamed(path string) (f feedForm, n int, ok bool) {
	name, ok := strings.CutPrefix(path, "/feed")
	if !ok {
		return f, 0, false
	}
	for _, f := range feedForms {
		number, ok := strings.CutSuffix(name, f.suffix)
		if !ok {
			continue
		}
		n := 1
		if number != "" {
			n, _ = strconv.Atoi(strings.TrimPrefix(number, "-"))
		}
		if n >= 1 && n <= maxFeeds && f.path(n) == path {
			return f, n, true
		}
	}
	return f, 0, false
}

// part is the part of the log that one document of a feed lists.
type part struct {
	n     int
	from  uint64 // sequence number before the part
	to    uint64 // last sequence number of the part
	log   bool   // whether the log reaches back this far; otherwise, the times of changes are unknown
	older bool   // whether an older part follows
}

// partOf returns the nth part. If the log does not reach back that far, the error is ErrNotFound.
func partOf(ctx context.Context, v millrace.View, n int) (part, error) {
	site := v.Site()
	end := func(n int) uint64 { return site.Seq - min(site.Seq, uint64(n)*feedItems) }
	p := part{n: n, from: end(n), to: end(n - 1), log: true}
	if n > 1 && (site.Volatile || p.to == 0) {
		return p, millrace.ErrNotFound
	}
	if site.Volatile {
		p.log = false
		return p, nil
	}
	reaches := func(seq uint64) (bool, error) {
		for _, err := range v.Changes(ctx, site.At(seq)) {
			if errors.Is(err, millrace.ErrConflict) {
				return false, nil
			}
			return err == nil, err
		}
		return true, nil
	}
	ok, err := reaches(p.from)
	for err == nil && !ok && p.from < p.to {
		// If the log was cut or is new, the first part may be incomplete: halve it until the log
		// reaches back that far.
		if n > 1 {
			return p, millrace.ErrNotFound
		}
		p.from += (p.to - p.from + 1) / 2
		ok, err = reaches(p.from)
	}
	if err != nil {
		return p, err
	}
	p.log = p.from < p.to
	if p.log && n < maxFeeds && p.from == end(n) && p.from > 0 {
		p.older, err = reaches(end(n + 1))
	}
	return p, err
}

// pageCount estimates the number of pages in the part. It is at most the number of changes, because
// a page that has changed again is in a newer part.
func (p part) pageCount(site millrace.Site) int64 {
	if !p.log {
		return int64(min(site.Pages, feedItems))
	}
	return int64(min(p.to-p.from, feedItems)) //nolint:gosec // feedItems is small
}

// changes returns the changes in the part, newest first, and the page at which the newer parts end,
// or "" if there is no newer part.
func (p part) changes(ctx context.Context, v millrace.View) (list []millrace.Change, after string, err error) {
	site := v.Site()
	for c, err := range v.Changes(ctx, site.At(p.from)) {
		if err != nil {
			return nil, "", err
		}
		if c.Kind != millrace.KindCheckpoint {
			list = append(list, c)
		}
	}
	if p.n > 1 {
		newer := 0
		for c, err := range v.Changes(ctx, site.At(p.to)) {
			if err != nil {
				return nil, "", err
			}
			if c.Kind == millrace.KindCheckpoint {
				continue
			}
			if newer++; c.Kind == millrace.Put && after == "" {
				after = c.URL
			}
		}
		list = list[:len(list)-newer]
	}
	slices.Reverse(list)
	return list, after, nil
}

// entriesOf returns the entries of a part. If the view has no tags, deletions include those of
// pages that were never published.
func entriesOf(ctx context.Context, v millrace.View, of part, tagged bool) ([]*feedItem, error) {
	site := v.Site()
	scan := millrace.Scan{Order: millrace.BySeq, Limit: feedItems}
	var items []*feedItem
	at := make(map[string]*feedItem) // entries by URL
	if of.log {
		list, after, err := of.changes(ctx, v)
		if err != nil {
			return nil, err
		}
		scan.Limit, scan.After = 0, after
		for _, c := range list {
			it := &feedItem{URL: c.URL, Gone: true, Changed: c.Time}
			if c.Kind == millrace.Put {
				scan.Limit++
				at[c.URL] = it
			}
			items = append(items, it)
		}
		if scan.Limit == 0 {
			if !tagged {
				return items, nil
			}
			return named(ctx, v, items)
		}
	}
	for page, err := range v.Scan(ctx, scan) {
		if err != nil {
			return nil, err
		}
		var it *feedItem
		if it = at[page.URL]; it == nil && !of.log {
			it = &feedItem{URL: page.URL, Changed: site.Time}
		} else if it == nil {
			continue
		}
		if it.Modified = page.Modified; tagged {
			t, err := v.Tag(ctx, Name, page.URL)
			if errors.Is(err, millrace.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			it.Modified, it.Alternate = t.Modified, strings.TrimSuffix(site.EndpointBase, "/")+tagName(site, t)
		}
		it.Gone = false
		it.Published, it.Title, it.Author, it.Language, it.Tags = page.Published, page.Title, page.Author, page.Language, page.Tags
		it.Summary = cmp.Or(page.Description, page.Summary)
		if !of.log {
			items = append(items, it)
		}
	}
	if !tagged { // drop pages that the view does not show, because they are not deleted
		return slices.DeleteFunc(items, func(it *feedItem) bool { return it.Gone && at[it.URL] != nil }), nil
	}
	return named(ctx, v, items)
}

// named drops deleted pages that no edition has published: their URLs were never public.
func named(ctx context.Context, v millrace.View, items []*feedItem) ([]*feedItem, error) {
	var out []*feedItem
	for _, it := range items {
		if it.Gone {
			_, err := v.Tag(ctx, Name, it.URL)
			if errors.Is(err, millrace.ErrNotFound) && !errors.Is(err, millrace.ErrGone) {
				continue
			} else if !errors.Is(err, millrace.ErrNotFound) {
				return nil, err
			}
		}
		out = append(out, it)
	}
	return out, nil
}

// feed returns the feed document at a path. If the path is not that of a feed, the error is
// ErrNotFound.
func (d *siteDocuments) feed(ctx context.Context, v millrace.View, path string) (*millrace.Document, error) {
	form, n, ok := feedNamed(path)
	if !ok {
		return nil, millrace.ErrNotFound
	}
	of, err := partOf(ctx, v, n)
	if err != nil {
		return nil, err
	}
	site := v.Site()
	docs := strings.TrimSuffix(site.EndpointBase, "/")
	head := &feedHead{
		ID: docs + form.path(1), Self: docs + form.path(n), Home: site.Base, Title: cmp.Or(site.Title, site.Base),
		Language: site.Language, Updated: site.Time, Hubs: d.hubs,
	}
	if n > 1 {
		head.First, head.Previous, head.Hubs = docs+form.path(1), docs+form.path(n-1), nil
	}
	if of.older {
		head.Next = docs + form.path(n+1)
	}
	h := http.Header{
		"Content-Type": {form.mediaType + "; charset=utf-8"}, "Cache-Control": {"max-age=0, must-revalidate"},
		"Last-Modified": {site.Time.UTC().Format(http.TimeFormat)},
	}
	if head.Hubs != nil {
		for _, hub := range head.Hubs {
			h.Add("Link", millrace.Link{URL: hub, Rel: "hub"}.String())
		}
		h.Add("Link", millrace.Link{URL: head.Self, Rel: "self"}.String())
	}
	return &millrace.Document{
		Path: path, Header: h, Subject: millrace.Subject{PageCount: of.pageCount(site)},
		ETag: "feed-" + canon.SHA256Hex(fmt.Appendf(nil, "%d %s %d %s %v %+v", feedFormat, site.Epoch, site.Seq, site.Base, of, head))[:32],
		Write: func(ctx context.Context, w io.Writer) error {
			items, err := entriesOf(ctx, v, of, true)
			if err != nil {
				return fmt.Errorf("%s: feed: %w", Name, err)
			}
			if form.mediaType == jsonFeedType {
				return writeJSONFeed(w, head, items)
			}
			out := newAtom(w, head)
			for _, it := range items {
				out.item(it)
			}
			return out.Close()
		},
	}, nil
}

// WriteAtom writes the newest changes of a view without tags as an Atom feed, which has no URL of
// its own. It returns the number of entries.
func WriteAtom(ctx context.Context, w io.Writer, v millrace.View) (entries int, err error) {
	of, err := partOf(ctx, v, 1)
	if err != nil {
		return 0, err
	}
	items, err := entriesOf(ctx, v, of, false)
	if err != nil {
		return 0, err
	}
	site := v.Site()
	out := newAtom(w, &feedHead{ID: site.Base, Home: site.Base, Title: cmp.Or(site.Title, site.Base), Language: site.Language, Updated: site.Time})
	for _, it := range items {
		out.item(it)
	}
	return len(items), out.Close()
}

// advertiseFeeds adds links to the feeds to the home page, where readers look for them.
func (d *siteDocuments) advertiseFeeds(site millrace.Site, n *millrace.Advertisement) {
	docs := strings.TrimSuffix(site.EndpointBase, "/")
	for _, form := range d.feedForms() {
		n.Root = append(n.Root, millrace.Link{URL: docs + form.path(1), Rel: "alternate", Type: form.mediaType, HTML: true})
	}
}
