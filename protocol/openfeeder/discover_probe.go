package openfeeder

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
)

const (
	probeBytes = 1 << 20 // maximum number of transferred bytes of a document that a probe reads
	// Upper limits for the estimated number of pages of a feed, and for the number of requests per
	// page, whatever the server declares.
	mostPages = 1 << 28
	mostParts = 1 << 10
)

// probe finds the feed like a reader. It fetches the first and the last page of the index, the
// changes since now, and a few pages. From a static feed, it fetches only the first file of the
// index and a few pages.
func probe(ctx context.Context, client *http.Client, endpoint string, o *protocol.ReaderOptions) (*protocol.Offer, error) {
	r := newReader(client, endpoint, &ReaderOptions{ReaderOptions: kit.Value(o)})
	if r.Err != nil {
		return nil, r.Err
	}
	r.probeCost = new(protocol.Cost)
	f, err := r.discover(ctx)
	if err != nil {
		return nil, err
	}
	l := &feedProbe{reader: r, feed: f, offer: &protocol.Offer{
		Entry: f.Endpoint, Detail: millrace.DetailBlocks, Fields: fields, First: *r.probeCost,
	}}
	if f.Static {
		err = l.static(ctx)
	} else {
		err = l.served(ctx)
	}
	if err != nil {
		return nil, err
	}
	return l.offer, nil
}

// feedProbe is the state of one probe of a feed.
type feedProbe struct {
	*reader
	feed  feed
	offer *protocol.Offer
	items []item // received items
	named int64  // average size of an item in transferred bytes
}

// spent returns the cost of the requests that ask sends.
func (l *feedProbe) spent(ask func() error) (protocol.Cost, error) {
	before := *l.probeCost
	err := ask()
	return l.probeCost.Add(before, -1), err
}

// served probes a feed that has an endpoint.
func (l *feedProbe) served(ctx context.Context) error {
	var first *index
	page, err := l.spent(func() (err error) {
		first, err = l.index(ctx, l.feed, 1)
		return err
	})
	if err != nil {
		return l.wrap("index", err)
	}
	if err := l.count(ctx, first, page); err != nil {
		return err
	}
	var reply *changes
	var etag string
	empty, err := l.spent(func() (err error) {
		reply, etag, err = l.nothingNew(ctx, first.SyncToken)
		return err
	})
	if err != nil {
		return l.wrap("changes", err)
	}
	if err := l.pages(ctx, func(it *item) (int, error) { return l.sample(ctx, it) }); err != nil {
		return err
	}
	o, total := l.offer, int64(max(first.TotalPages, 1))
	fullRead := protocol.Cost{Requests: total, Bytes: int64(o.Pages) * l.named}
	if reply == nil {
		// Each refresh reads the whole index, which shows deletions.
		o.Deletes = true
		o.Unchanged = protocol.Cost{}.Add(page, 2).Add(fullRead, 1).Add(empty, 1)
		o.First = o.First.Add(o.Unchanged, 1)
		o.Changed = o.Unchanged
	} else {
		no := reply.Sync.DeletedTracking != nil && !*reply.Sync.DeletedTracking
		o.Deletes = first.SyncToken != "" && !no
		if o.Unchanged.Requests = 1; etag == "" {
			o.Unchanged.Bytes = empty.Bytes
		}
		o.Changed, o.PerChange = empty, o.PerChange.Add(protocol.Cost{Bytes: l.named}, 1)
		o.First = o.First.Add(page, 1).Add(empty, 1)
		switch {
		case first.SyncToken == "":
			o.First = o.First.Add(page, 1).Add(fullRead, 1)
		case total > 1:
			o.First = o.First.Add(protocol.Cost{Requests: 1 + int64(o.Pages)/syncItems, Bytes: fullRead.Bytes}, 1)
		}
	}
	return nil
}

func (l *feedProbe) wrap(what string, err error) error {
	return fmt.Errorf("%s: %s: %w", Name, what, err)
}

// count sets the number of pages, using the first and the last page of the index.
func (l *feedProbe) count(ctx context.Context, first *index, page protocol.Cost) error {
	first.TotalPages = min(first.TotalPages, maxPages)
	l.items = first.Items
	l.offer.Pages = len(first.Items)
	if len(first.Items) > 0 {
		l.named = page.Bytes / int64(len(first.Items))
	}
	if first.TotalPages <= 1 {
		return nil
	}
	last, err := l.index(ctx, l.feed, first.TotalPages)
	if err != nil {
		return l.wrap("index", err)
	}
	same := slices.EqualFunc(first.Items, last.Items, sameItem)
	if last.Page != 0 && last.Page != first.TotalPages || same {
		l.offer.Basis = "the only page of the index that the server returns"
		first.TotalPages = 1
		return nil
	}
	l.offer.Pages = min((first.TotalPages-1)*len(first.Items)+len(last.Items), mostPages)
	l.items = append(slices.Clone(first.Items), last.Items...)
	return nil
}

// nothingNew requests the changes since a token, or since now. There should be none. If the site
// does not support such requests, it returns nil.
func (l *feedProbe) nothingNew(ctx context.Context, token string) (*changes, string, error) {
	if token == "" {
		token = l.o.Now().UTC().Truncate(time.Second).Format(time.RFC3339)
	}
	target := l.feed.query("since", token)
	head, body, err := l.get(ctx, target, "")
	switch {
	case err != nil && ctx.Err() == nil && (gone(err) || errors.Is(err, millrace.ErrInvalid) || errors.Is(err, millrace.ErrNotFound)):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	}
	reply, err := decodeChanges(body)
	if err != nil {
		return nil, "", nil //nolint:nilerr // the server does not support since
	}
	return reply, head.header.Get("ETag"), nil
}

// pages fetches a few of the listed pages, and estimates the cost of the others. get sends one
// request for a page, and returns the number of requests for the whole page.
func (l *feedProbe) pages(ctx context.Context, get func(it *item) (int, error)) error {
	var got int64
	var sum protocol.Cost
	var first error
	for _, it := range kit.ProbeSample(l.items) {
		parts := 0
		cost, err := l.spent(func() (err error) {
			parts, err = get(&it)
			return err
		})
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, millrace.ErrUnavailable) {
				return err
			}
			if first == nil {
				first = err
			}
			continue
		}
		got++
		sum = sum.Add(protocol.Cost{Requests: int64(parts), Bytes: cost.Bytes * int64(parts)}, 1)
	}
	o := l.offer
	if got == 0 {
		return first
	}
	if o.Basis == "" && got < int64(o.Pages) {
		o.Basis = fmt.Sprintf("the index and %d of its pages", got)
	}
	// A long page takes several requests, so the total is extrapolated, not the cost of each page.
	o.First = o.First.Add(protocol.Cost{
		Requests: sum.Requests * int64(o.Pages) / got, Bytes: sum.Bytes * int64(o.Pages) / got,
	}, 1)
	o.PerChange = protocol.Cost{Requests: (sum.Requests + got - 1) / got, Bytes: sum.Bytes / got}
	return nil
}

// sample fetches the first part of a page, and returns the number of its parts.
func (l *feedProbe) sample(ctx context.Context, it *item) (int, error) {
	u, err := l.feed.url(l.Root, it.URL)
	if err != nil {
		return 0, err
	}
	w, _, err := l.part(ctx, l.feed, u, millrace.Ref{URL: u}, 1)
	if err != nil {
		return 0, err
	}
	return max(1, (min(w.Meta.TotalChunks, mostParts*maxLimit)+maxLimit-1)/maxLimit), nil
}

// static probes a static feed.
func (l *feedProbe) static(ctx context.Context) error {
	var first *index
	var f *kit.Resource
	page, err := l.spent(func() error {
		head, body, err := l.get(ctx, l.feed.Endpoint, "")
		if err != nil {
			return l.wrap("index", err)
		}
		f = &kit.Resource{URL: l.feed.Endpoint}
		f.ETag, f.Modified = head.header.Get("ETag"), head.header.Get("Last-Modified")
		first, err = decodeIndex(body)
		return kit.FormatURL(err, l.feed.Endpoint)
	})
	if err != nil {
		return err
	}
	files := int64(max(min(first.TotalPages, maxPages), 1))
	o := l.offer
	o.Deletes = true // pages that are missing from the index are deleted
	l.items = first.Items
	o.Pages = min(len(first.Items)*int(files), mostPages)
	if files > 1 {
		o.Basis = "the first file of the index and a few of its pages"
	}
	o.First = o.First.Add(page, files)
	o.Unchanged.Requests = files
	// A refresh requests file after file until one has changed, then all files.
	o.Changed = protocol.Cost{Requests: files, Bytes: page.Bytes}.Add(page, files)
	if f.ETag == "" && f.Modified == "" {
		o.Unchanged = protocol.Cost{}.Add(page, files)
		o.Changed = o.Unchanged
	}
	return l.pages(ctx, func(it *item) (int, error) {
		target, err := l.documentAt(it.Document, l.feed)
		if err != nil || it.Document == "" {
			return 0, errors.Join(err, fmt.Errorf("%s: %s has no document: %w", Name, it.URL, millrace.ErrNotFound))
		}
		_, _, err = l.part(ctx, l.feed, it.URL, millrace.Ref{URL: it.URL, Location: target}, 1)
		return 1, err
	})
}
