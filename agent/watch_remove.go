package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/store"
)

// removed is the name of the source that deletes the pages of a removed site.
const removed = "removed"

// remove deletes the pages of a site, and removes the site once its receiver has received the
// deletions. Until then, the site is due again after retryAfter.
func (w *watch) remove(ctx context.Context, t *turn) error {
	t.result = store.TurnResult{Due: w.storeNow(ctx).Add(retryAfter), Error: t.Site.Error, State: t.Site.State, Delay: t.Delay}
	names := []string{t.Site.Name}
	if t.Site.Name == "" { // no pull has completed yet
		root, err := ingest.Root(t.Site.URL)
		if err != nil {
			return err
		}
		names = []string{root, t.Site.URL}
	}
	waiting := false
	for _, name := range names {
		site, err := w.a.store.Site(ctx, name, "")
		if errors.Is(err, millrace.ErrNotFound) {
			continue
		}
		if err == nil {
			err = deletePages(ctx, site.Fenced(t.Lease), name)
		}
		d := w.delivery(t.Site, name)
		more := false
		if err == nil {
			w.deliveries.wake(d)
			more, err = w.deliveries.waiting(ctx, d)
		}
		if err == nil && !more { // nothing compacts the site later
			err = site.Fenced(t.Lease).Compact(ctx, 0, w.retention(t.Site))
		}
		if err != nil {
			return fmt.Errorf("remove %s: %w", name, err)
		}
		waiting = waiting || more
	}
	if waiting {
		return nil
	}
	n, err := w.fleet.Remove(ctx, store.FleetQuery{Sites: []string{t.Site.URL}, Removing: true}, false)
	if err == nil && n > 0 {
		w.a.o.Logger.Info("removed site with its pages", "site", t.Site.URL)
	}
	return err
}

// deletePages deletes the pages of a site, and resets its sources. If the site is added again, they
// start over.
func deletePages(ctx context.Context, site store.Site, name string) error {
	for _, from := range ingest.Sources(name) {
		if c, err := site.Cursor(ctx, from); err != nil || c == "" {
			if err != nil {
				return err
			}
			continue
		}
		if _, err := site.Apply(ctx, from, []millrace.Change{{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{}}}); err != nil {
			return err
		}
	}
	for {
		v, err := site.Head(ctx)
		if err != nil {
			return err
		}
		var batch []millrace.Change
		for p, err := range v.Scan(ctx, millrace.Scan{Limit: 200}) {
			if err != nil {
				return err
			}
			batch = append(batch, millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: p.URL}})
		}
		if len(batch) == 0 {
			return nil
		}
		if _, err := site.Apply(ctx, removed, batch); err != nil {
			return err
		}
	}
}
