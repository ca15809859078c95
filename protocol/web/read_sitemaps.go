package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/sitemap"
)

// leaves returns the sitemaps of pages.
func (c cursor) leaves() (urls []string) {
	for _, l := range c.Lists {
		if !l.Index {
			urls = append(urls, l.URL)
		}
	}
	return urls
}

// roots returns the sitemaps that are in no index, including the missing ones.
func (c cursor) roots() (urls []string) {
	for _, l := range c.Lists {
		if !l.In {
			urls = append(urls, l.URL)
		}
	}
	return append(urls, c.Missing...)
}

// find returns the state of a sitemap in the cursor, or a state without validators for a new
// sitemap.
func (c cursor) find(u string) list {
	for _, l := range c.Lists {
		if l.URL == u {
			return l
		}
	}
	return list{Resource: kit.Resource{URL: u}}
}

// readSitemaps reads the sitemaps that have changed. If there are several sitemaps of pages, each
// is a section of the stream.
func (r *run) readSitemaps(ctx context.Context, named []string) error {
	files, lists, complete, err := r.resolve(ctx, named)
	defer func() {
		for _, f := range files {
			f.close()
		}
	}()
	if err != nil {
		return err
	}
	r.is.Lists = lists
	same := slices.Equal(r.is.leaves(), r.was.leaves())
	again := false // whether to read all sitemaps although none has changed
	if same {
		if again, err = r.verifies(ctx); err != nil {
			return err
		}
	}
	if same && !again {
		return r.readChanged(ctx, files, complete)
	}
	if moved, err := r.moved(ctx); err != nil || moved {
		return cmp.Or(err, errMoved)
	}
	if err := r.probe(ctx, files); err != nil {
		return err
	}
	if len(r.was.Lists) > 0 && !same {
		// No earlier section covers deletions. This checkpoint makes a sink start over if it has
		// applied only a part of the stream.
		if err := r.mark(cursor{}, false, ""); err != nil {
			return err
		}
	}
	return r.readAll(ctx, files, complete)
}

// resolve fetches the named sitemaps and those in indexes, and returns the sitemaps of pages.
// complete is false if a sitemap that existed before is missing, as on an outdated replica.
func (r *run) resolve(ctx context.Context, named []string) (files []*file, lists []list, complete bool, err error) {
	complete = true
	var other error
	var missing []string
	for _, u := range named {
		f, children, err := r.open(ctx, r.was.find(u))
		switch {
		case err != nil && !absent(err):
			return files, nil, false, err
		case err != nil:
			if other = cmp.Or(other, err); !r.usual {
				missing = append(missing, u)
				complete = complete && slices.Contains(r.was.Missing, u)
				r.Note("sitemaps-index/there", u, "not a sitemap: "+err.Error())
			}
			continue
		case f.Index:
			lists = append(lists, f.list)
			for _, c := range children {
				if known := func(l list) bool { return l.URL == c }; slices.ContainsFunc(lists, known) {
					continue
				}
				l := r.was.find(c)
				l.In, l.Index = true, false
				lists, files = append(lists, l), append(files, &file{list: l})
			}
		default:
			lists, files = append(lists, f.list), append(files, f)
		}
		if len(lists) > maxLists {
			return files, nil, false, fmt.Errorf("%s: %s has %d sitemaps: %w", Name, r.Root, len(lists), millrace.ErrTooLarge)
		}
		if r.usual {
			break
		}
	}
	r.is.Missing = missing
	if len(lists) == 0 {
		return files, nil, false, fmt.Errorf("%s: sitemap %w at %s: %w", Name, millrace.ErrNotFound, r.Root, other)
	}
	return files, lists, complete, nil
}

// readAll yields the entries of all sitemaps, and then one checkpoint.
func (r *run) readAll(ctx context.Context, files []*file, complete bool) error {
	if err := r.readFeed(ctx); err != nil {
		return err
	}
	for _, f := range files {
		if f.spool == nil {
			// If the set of sitemaps has changed, unchanged sitemaps must be read as well.
			f.Validators, f.same = fetch.Validators{}, false
		}
		ok, err := r.pages(ctx, f, len(files) > 1)
		if err != nil {
			return err
		}
		complete = complete && ok
	}
	if err := r.putUnseen(); err != nil {
		return err
	}
	mismatch, err := r.awaitPages()
	if err != nil {
		return err
	}
	if r.feed != nil && r.feed.tombstones {
		ahead := r.feed.ahead()
		mismatch += ahead
		complete = complete && ahead == 0 // the pages in the feed exist, whether or not the lists contain them
	}
	r.trust()
	if r.is.Mismatch = mismatch; mismatch != 0 && mismatch != r.was.Mismatch {
		r.again()
		complete = false // a page that is missing from an outdated list may be new
	}
	return r.mark(r.is, complete, "")
}

// again makes the next run read all sitemaps.
func (r *run) again() {
	r.is.Found = time.Time{}
	if r.is.Feed != nil {
		r.is.Feed = &feedState{URL: r.is.Feed.URL}
	}
	r.is.Lists = slices.Clone(r.is.Lists)
	for i := range r.is.Lists {
		r.is.Lists[i].Validators = fetch.Validators{}
	}
}

// readChanged yields the entries of each sitemap that has changed, followed by a checkpoint. The
// last checkpoint covers all results of the run.
func (r *run) readChanged(ctx context.Context, files []*file, complete bool) error {
	so := r.was
	so.Lists = slices.Clone(r.was.Lists)
	var last *millrace.Checkpoint
	var total uint64
	for _, f := range files {
		if f.same {
			continue
		}
		ok, err := r.pages(ctx, f, len(files) > 1)
		if err != nil {
			return err
		}
		if f.same {
			continue
		}
		if moved, err := r.moved(ctx); err != nil || moved {
			return cmp.Or(err, errMoved)
		}
		mismatch, err := r.awaitPages()
		if err != nil {
			return err
		}
		if last != nil {
			if err := r.mark(so, last.Complete, last.Section); err != nil {
				return err
			}
		}
		if total += mismatch; mismatch == 0 {
			for i := range so.Lists {
				if so.Lists[i].URL == f.URL {
					so.Lists[i] = f.list
				}
			}
		}
		last = &millrace.Checkpoint{Complete: complete && ok}
		if len(files) > 1 {
			last.Section = f.URL
		}
	}
	if last == nil {
		return r.mark(r.is, false, "")
	}
	if r.is.Mismatch = total; total != 0 && total != r.was.Mismatch {
		feed := r.was.Feed
		if r.again(); feed != nil {
			r.is.Feed = &feedState{URL: feed.URL, Trusted: feed.Trusted, Since: feed.Since, Top: feed.Top}
		}
	}
	return r.mark(r.is, last.Complete, last.Section)
}

// pages yields the entries of a sitemap. It returns false if some of them could not be read,
// because the unread rest may contain further pages.
func (r *run) pages(ctx context.Context, f *file, several bool) (complete bool, err error) {
	if f.spool == nil {
		got, err := r.load(ctx, f.list)
		switch {
		case err == nil:
			f.at, f.spool, f.same, f.Validators = got.at, got.spool, got.same, got.Validators
		case absent(err):
			r.Note("sitemaps-index/there", f.URL, "cannot read a sitemap of an index: "+err.Error())
			f.Validators = fetch.Validators{}
			r.keep(f)
			return false, nil
		default:
			return false, err
		}
		if f.same {
			return true, nil
		}
	}
	defer f.close()
	section := ""
	if several {
		section = f.URL
	}
	nested := 0
	err = f.entries(r.o.MaxList, func(e sitemap.Entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.Sitemap {
			nested++
			return nil
		}
		u, ok := r.own(f.at, e.URL)
		if !ok {
			return nil
		}
		if r.feed != nil {
			r.feed.compare(u, e.Modified)
		}
		return r.put(u, section, stateOf(e.Modified), e.Modified)
	})
	complete = nested == 0
	if nested > 0 {
		r.Note("reader/sitemap-index", f.URL, fmt.Sprintf("skipped an index inside an index, which names %d sitemaps", nested))
	}
	if _, invalid := errors.AsType[*millrace.FormatError](err); invalid || errors.Is(err, millrace.ErrTooLarge) {
		r.Note("sitemaps-format/xml", f.URL, strings.TrimSpace(err.Error()))
		complete, err = false, nil
	}
	if err != nil {
		return false, err
	}
	r.keep(f)
	return complete, nil
}

// keep records the state of a sitemap whose entries were applied.
func (r *run) keep(f *file) {
	for i := range r.is.Lists {
		if r.is.Lists[i].URL == f.URL {
			r.is.Lists[i] = f.list
		}
	}
}

// stateOf returns the state of a page for its time in a list, or "" if there is no time.
func stateOf(modified time.Time) string {
	if modified.IsZero() {
		return ""
	}
	return modified.UTC().Format(time.RFC3339Nano)
}
