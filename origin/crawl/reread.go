package crawl

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
)

// extractionRules contains the rules of an extraction.
type extractionRules struct {
	rules *extract.Rules
	by    string // text that identifies the rules in the versions of pages
}

// setRules sets the rules of the extraction, which may be nil.
func (c *Crawl) setRules(rules *extract.Rules) {
	by := strconv.Itoa(c.extractor)
	if f := rules.Fingerprint(); f != "" {
		by += "-" + f
	}
	c.ruling = &extractionRules{rules, by}
}

// change returns the change for a page that was extracted again.
func (r *result) change() millrace.Change {
	return millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: r.url, Version: r.page.Version}, Page: r.page}
}

// storedRefs calls each with the stored refs, approximately in their order. If a page was extracted
// with other rules, storedRefs extracts it again if possible, and passes the result as made.
// Otherwise, made is nil.
func (c *Crawl) storedRefs(ctx context.Context, rules *extractionRules, each func(t *task, made *result) error) error {
	// Batches keep all processors busy, but hold few pages in memory.
	some := make([]task, 0, min(c.o.Concurrency, 2*runtime.GOMAXPROCS(0)))
	settle := func() error {
		made, errs := make([]*result, len(some)), make([]error, len(some))
		var workers sync.WaitGroup
		for i := range some {
			workers.Go(func() { made[i], errs[i] = c.reextract(ctx, rules, &some[i]) })
		}
		workers.Wait()
		for i := range some {
			if errs[i] != nil {
				return errs[i]
			}
			if err := each(&some[i], made[i]); err != nil {
				return err
			}
		}
		some = some[:0]
		return nil
	}
	for ref, err := range c.knownRefs(ctx) {
		if err != nil {
			return fmt.Errorf("read stored refs: %w", err)
		}
		t := storedTask(ref, rules)
		if c.o.Original == nil || t.version.old == nil {
			if err := each(&t, nil); err != nil {
				return err
			}
			continue
		}
		if some = append(some, t); len(some) == cap(some) {
			if err := settle(); err != nil {
				return err
			}
		}
	}
	return settle()
}

// reextract extracts a page again from its stored original. The page keeps its address and the
// validators of the stored version. If the result is nil, the page must be fetched.
func (c *Crawl) reextract(ctx context.Context, rules *extractionRules, t *task) (*result, error) {
	if _, v := c.scope.clean(t.url); v == outside {
		return nil, nil //nolint:nilnil // see above
	}
	data, err := c.o.Original(ctx, t.url)
	var o original
	if err == nil {
		o, err = parseOriginal(data)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, millrace.ErrNotFound), errors.Is(err, millrace.ErrInvalid):
		return nil, nil //nolint:nilnil // see above
	case err != nil:
		return nil, fmt.Errorf("read stored original of %s: %w", t.url, err)
	}
	if len(o.body) > large {
		select {
		case c.heavy <- struct{}{}:
			defer func() { <-c.heavy }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	r := &result{task: task{url: t.url}, rules: rules}
	res, err := c.make(ctx, r, &o)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil || r.outcome != page {
		return nil, nil //nolint:nilnil,nilerr // a visit will determine the state of the page
	}
	c.canonical(r, res.Canonical)
	r.made, r.page.URL = *t.version.old, r.url
	if r.made.claim != 0 {
		if r.foreignCanonical == "" || key(r.foreignCanonical) != r.made.claim {
			return nil, nil //nolint:nilnil // the page would have another address
		}
		r.page.URL = r.foreignCanonical
	}
	r.made.by, r.made.sketch = rules.by, r.sketch
	if r.made.revision != "" {
		r.made.revise(r)
	}
	r.page.Version, r.page.Original = r.made.String(), data
	r.page.HTMLSize.Bytes = int64(len(o.body))
	return r, nil
}

// wasReextracted reports whether this run has extracted the page of an address again. Such a page
// has already been yielded.
func (r *run) wasReextracted(k uint64) bool {
	_, ok := slices.BinarySearch(r.reextracted, k)
	return ok
}
