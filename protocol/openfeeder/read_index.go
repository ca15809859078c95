package openfeeder

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
)

const (
	// allTime is before the date of every page, so a sync since allTime lists all pages.
	allTime = "0001-01-01T00:00:01Z"
	// maxEmpty is the number of consecutive empty pages after which the reader stops reading an
	// index.
	maxEmpty = 10
	// maxPages is the maximum number of pages of an index or a reply.
	maxPages = 1 << 20
)

// query returns the URL of a request to the endpoint. pairs are the names and values of parameters.
func (f feed) query(pairs ...string) string {
	u, query, _ := strings.Cut(f.Endpoint, "?")
	sep := "?"
	if query != "" {
		u, sep = f.Endpoint, "&"
	}
	for i := 0; i < len(pairs); i += 2 {
		u += sep + pairs[i] + "=" + url.QueryEscape(pairs[i+1])
		sep = "&"
	}
	return u
}

// index fetches a page of the index (3.3).
func (r *reader) index(ctx context.Context, f feed, number int) (*index, error) {
	target := f.query("limit", strconv.Itoa(maxLimit), "page", strconv.Itoa(number))
	head, body, err := r.get(ctx, target, "")
	if err != nil {
		return nil, err
	}
	x, err := decodeIndex(body)
	if err != nil {
		return nil, kit.FormatURL(err, target)
	}
	if head.header.Get(versionHead) == "" {
		r.Note("9/x-openfeeder", target, "no X-OpenFeeder")
	}
	if x.TotalPages < 1 && len(x.Items) > 0 {
		r.Note("3.3/total-pages", target, "no total_pages: reading only the first page of the index")
	}
	return x, nil
}

// readIndex reads the complete site, and then the changes made in the meantime. If alone is set,
// this run has yielded no pages before. If, in addition, the whole index could be read, the final
// checkpoint is complete: all other stored pages are deleted.
func (r *run) readIndex(ctx context.Context, alone bool) error {
	first, err := r.index(ctx, r.is.Feed, 1)
	if err != nil {
		return r.wrap("index", err)
	}
	c := cursor{Root: r.is.Root, Found: r.is.Found, Feed: r.is.Feed, Token: first.SyncToken}
	complete := alone
	switch {
	case c.Token != "" && first.TotalPages <= 1:
		// An index with a token shows a single state of the site, and the site reports deletions.
		c.ReportsDeletions = true
		err = r.names(ctx, first)
	case c.Token != "":
		c.ReportsDeletions = true
		c.Token, err = r.everything(ctx)
	default:
		c.ReportsDeletions = r.was.ReportsDeletions && r.was.Feed == r.is.Feed
		if c.Token, err = r.now(ctx); err == nil {
			var all bool
			all, err = r.pages(ctx, first)
			complete = complete && all
		}
	}
	if err != nil {
		return err
	}
	if c.Token != "" {
		if err := r.catchUp(ctx, &c); err != nil {
			return err
		}
	}
	if !complete {
		c.ReportsDeletions, c.Polls = false, r.o.Compare // read everything again the next time
	}
	return r.Checkpoint(c, complete, "")
}

func (r *run) wrap(what string, err error) error { return fmt.Errorf("%s: %s: %w", Name, what, err) }

// catchUp yields the changes made while the index was read.
func (r *run) catchUp(ctx context.Context, c *cursor) error {
	token := c.Token
	err := r.since(ctx, token, "", func(reply *changes, etag string) error {
		s := &reply.Sync
		tracked := s.DeletedTracking == nil || *s.DeletedTracking
		c.ReportsDeletions = tracked && c.ReportsDeletions || len(reply.Deleted) > 0
		if c.ETag = ""; s.Next == "" && s.SyncToken == token {
			c.ETag = etag
		}
		c.Token = s.SyncToken
		return r.put(ctx, reply)
	})
	if gone(err) {
		return errResync
	}
	return err
}

// names yields the pages listed on a page of an index.
func (r *run) names(ctx context.Context, x *index) error {
	for i := range x.Items {
		if err := r.name(ctx, &x.Items[i], ""); err != nil {
			return err
		}
	}
	return nil
}

// everything lists all pages of one state of the site, as the changes since allTime, and returns
// the token of that state. The pages of an index may have different states, so a page could be
// missed because it moved between them.
func (r *run) everything(ctx context.Context) (token string, err error) {
	err = r.since(ctx, allTime, "", func(reply *changes, _ string) error {
		token = reply.Sync.SyncToken
		reply.Deleted = nil
		return r.put(ctx, reply)
	})
	if gone(err) {
		err = errResync
	}
	return token, err
}

// now returns a token for the present state, or "" if the site has no tokens.
func (r *run) now(ctx context.Context) (token string, err error) {
	err = r.since(ctx, r.o.Now().UTC().Truncate(time.Second).Format(time.RFC3339), "", func(reply *changes, _ string) error {
		token = reply.Sync.SyncToken
		return nil
	})
	switch {
	case err == nil:
		return token, nil
	case gone(err), errors.Is(err, millrace.ErrInvalid), errors.Is(err, millrace.ErrNotFound):
		return "", ctx.Err() // the response is the index, or an error
	}
	return "", err
}

// pages reads an index page by page, and starts over if the index changes in the meantime. It
// reports whether it has read the whole index.
func (r *run) pages(ctx context.Context, first *index) (complete bool, err error) {
	for range 3 {
		full, err := r.pass(ctx)
		if err != nil || !full {
			return false, err
		}
		last := first
		if first, err = r.index(ctx, r.is.Feed, 1); err != nil {
			return false, r.wrap("index", err)
		}
		if first.TotalPages == last.TotalPages && slices.EqualFunc(first.Items, last.Items, sameItem) {
			return true, nil
		}
	}
	r.Note("reader/index-moves", r.is.Feed.Endpoint, "the index changed while it was read; deletions are not yet known")
	return false, nil
}

// pass reads every page of the index once. complete is false if the server does not return all
// pages.
func (r *run) pass(ctx context.Context) (complete bool, err error) {
	var before *index
	empty := 0
	for number, total := 1, 1; number <= total; number++ {
		x, err := r.index(ctx, r.is.Feed, number)
		if err != nil {
			return false, r.wrap("index", err)
		}
		if total = min(x.TotalPages, maxPages); number > 1 {
			same := len(x.Items) > 0 && slices.EqualFunc(x.Items, before.Items, sameItem)
			if x.Page != 0 && x.Page != number || same {
				r.Note("3.1/page", r.is.Feed.query("page", strconv.Itoa(number)),
					fmt.Sprintf("page %d repeats page %d: the server ignores parameters", number, max(x.Page, 1)))
				return false, nil
			}
		}
		if err := r.names(ctx, x); err != nil {
			return false, err
		}
		if empty++; len(x.Items) > 0 {
			empty = 0
		}
		if empty == maxEmpty {
			break
		}
		before = x
	}
	return true, nil
}

func sameItem(a, b item) bool { return a.URL == b.URL && a.Updated == b.Updated }

// since requests the changes since a token or a date. It calls take with each page of the reply and
// its ETag, or with nil for a 304.
func (r *run) since(ctx context.Context, since, etag string, take func(reply *changes, etag string) error) error {
	target := r.is.Feed.query("since", since)
	for range maxPages {
		head, body, err := r.get(ctx, target, etag)
		if errors.Is(err, millrace.ErrUnmodified) && etag != "" {
			return take(nil, etag)
		}
		if err != nil {
			return r.wrap("changes", err)
		}
		reply, err := decodeChanges(body)
		if err != nil {
			return ignoredQuery(err, body, target)
		}
		if c := reply.Sync.Counts; c.Added != len(reply.Added) || c.Updated != len(reply.Updated) || c.Deleted != len(reply.Deleted) {
			r.Note("3.4/counts", target, "sync.counts differ from the lists")
		}
		if err := take(reply, head.header.Get("ETag")); err != nil || reply.Sync.Next == "" {
			return err
		}
		endpoint, err := url.Parse(r.is.Feed.Endpoint)
		if err != nil {
			return r.wrap("changes", err)
		}
		next, err := canon.Resolve(endpoint, reply.Sync.Next)
		if err != nil || next == target || !kit.SameOrigin(r.is.Feed.Endpoint, next) {
			return &millrace.FormatError{Protocol: Name, URL: target, Position: "/sync/next", Section: "3.4", Reason: "not a URL: " + quote(reply.Sync.Next), Err: err}
		}
		target, etag = next, ""
	}
	return fmt.Errorf("%s: reply exceeds %d pages: %w", Name, maxPages, millrace.ErrTooLarge)
}
