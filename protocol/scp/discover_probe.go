package scp

import (
	"context"
	"fmt"
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
)

const (
	// probeBytes is the maximum number of transferred bytes of a sitemap that a probe reads. The
	// SCP elements precede the pages.
	probeBytes = 256 << 10
	// deltaHead is the approximate size of a delta's first line in bytes. deltaRatio is the
	// approximate size of a page in a delta relative to its size in a snapshot, which compresses
	// better.
	deltaHead  = 300
	deltaRatio = 1.5
	maxAsked   = 2 // maximum number of collections whose size is requested if the sitemap lacks it
)

// probe finds the sitemap like a reader, and estimates costs from its elements.
func probe(ctx context.Context, client *http.Client, endpoint string, o *protocol.ReaderOptions) (*protocol.Offer, error) {
	r := newReader(client, endpoint, &ReaderOptions{ReaderOptions: kit.Value(o)})
	if r.Err != nil {
		return nil, r.Err
	}
	run := &run{reader: r, now: r.o.Now().UTC(), sites: []string{r.Root}, hosts: map[string]bool{}, probeCost: &protocol.Cost{}}
	f, err := run.discover(ctx)
	if err != nil {
		return nil, err
	}
	names := run.names(f.offer)
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: sitemap %s: no snapshot: %w", Name, f.URL, millrace.ErrNotFound)
	}
	offer := &protocol.Offer{Entry: f.URL, Detail: millrace.DetailBlocks, Fields: fields, First: *run.probeCost}
	if expired(f.offer.expires(names), run.now) {
		offer.First = offer.First.Add(protocol.Cost{Requests: 1, Bytes: f.size}, 1) // a second request, which bypasses all caches
	}
	offer.Unchanged.Requests = 1
	if f.Validators == (fetch.Validators{}) {
		offer.Unchanged.Bytes = f.size
	}
	offer.Changed = protocol.Cost{Requests: 1, Bytes: f.size}
	if s, _ := f.offer.of(names[0]); s != nil {
		offer.Collection = s.plain().url
	}
	if err := run.addCosts(ctx, f.offer, names, offer); err != nil {
		return nil, err
	}
	return offer, nil
}

// addCosts adds the cost of reading the named sections to an offer.
func (r *run) addCosts(ctx context.Context, o *offer, names []string, into *protocol.Offer) error {
	var size, deltas, deltaPages, deltaBytes int64
	counted, there, unsized, asked := true, false, 0, 0
	for _, name := range names {
		snapshot, all := o.of(name)
		for _, c := range append([]*offered{snapshot}, later(all, snapshot.generated)...) {
			if c.size() == 0 && asked < maxAsked {
				asked++
				n, err := r.sizeOf(ctx, c.files[0].url)
				if err != nil {
					return err
				}
				c.files[0].size = n
			}
			if c.size() == 0 {
				unsized++
			}
			into.First = into.First.Add(protocol.Cost{Requests: 1, Bytes: c.size()}, 1)
		}
		size += snapshot.size()
		if snapshot.pages < 0 {
			counted = false
		}
		into.Pages += snapshot.pages
		there = there || len(all) > 0
		for _, d := range all {
			if d.pages > 0 && d.size() > 0 {
				deltaPages += int64(d.pages)
				deltaBytes += max(d.size()-deltaHead, 0)
			}
		}
		if len(all) > 0 || o.frequency {
			deltas++
		}
	}
	if !counted {
		into.Pages = -1
	}
	switch {
	case deltas < int64(len(names)):
		// A snapshot that replaces deltas also shows deletions.
		into.Deletes = true
		into.Changed = into.Changed.Add(protocol.Cost{Requests: int64(len(names)), Bytes: size}, 1)
	default:
		into.Changed = into.Changed.Add(protocol.Cost{Requests: 1, Bytes: deltaHead}, deltas)
		if into.Pages > 0 {
			into.PerChange.Bytes = int64(float64(size) * deltaRatio / float64(into.Pages))
		}
		if deltaPages > 0 {
			into.PerChange.Bytes = max(into.PerChange.Bytes*2/3, deltaBytes/deltaPages)
		}
	}
	switch {
	case unsized > 0:
		into.Basis = fmt.Sprintf("the sitemap, without the sizes of %d of its collections", unsized)
	case deltas == int64(len(names)) && !there:
		into.Basis = "the sizes in the sitemap, which declares deltas but lists none"
	default:
		into.Basis = "the sizes in the sitemap"
	}
	return nil
}

// sizeOf requests the size of a collection in bytes. It returns 0 if the server does not send it.
func (r *run) sizeOf(ctx context.Context, target string) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, target, nil)
	if err != nil {
		return 0, fmt.Errorf("%s: collection: %w: %w", Name, err, millrace.ErrInvalid)
	}
	resp, err := fetch.Do(ctx, r.Client, req)
	if err != nil {
		return 0, fmt.Errorf("%s: collection: %w", Name, remote(ctx, err))
	}
	_ = resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return 0, fmt.Errorf("%s: collection: %w", Name, err)
	}
	return max(resp.ContentLength, 0), nil
}
