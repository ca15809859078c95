package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/state"
	origins "github.com/millrace/millrace/origin/all"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/store"
)

// Sources returns the names of the sources that may be the primary source of a live site.
func Sources(site string) []string {
	if !strings.Contains(site, "://") {
		return nil
	}
	var names []string
	for _, o := range origins.Origins(false) {
		names = append(names, site+" "+o.Name)
	}
	for _, p := range all.Protocols() {
		names = append(names, site+" "+p.Name)
	}
	return names
}

// retirement records that a source is no longer the primary source of its site. The
// record is valid while the source has no cursor: a source that is used again starts
// over.
type retirement struct {
	Done        bool `json:"done"`
	Unconfirmed int  `json:"unconfirmed,omitempty"` // pages whose deletion is not confirmed yet
}

// NoPagesError returns the error for a source that lists n pages and returned none of them.
func NoPagesError(n int) error {
	return fmt.Errorf("%w: cannot read any of the %d listed pages", millrace.ErrInvalid, n)
}

// CheckSkipped returns an error if a source skipped pages and returned none. In this case, it also
// deletes the cursor of the source. Otherwise the next read would find an unmodified list, and the
// pages of the other sources would be deleted.
func CheckSkipped(ctx context.Context, site store.Site, from string, skipped int) error {
	for _, err := range site.KnownRefs(ctx, from) {
		return err
	}
	_, err := site.Apply(ctx, from, []millrace.Change{{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{}}})
	return errors.Join(NoPagesError(skipped), err)
}

// IsPrimary reports whether a source is the primary source of a site: the last one that determined
// which pages the site has.
func IsPrimary(ctx context.Context, site store.Site, from string) (bool, error) {
	c, err := site.Cursor(ctx, from)
	return c != "", err
}

// Partial is the stored value that is true until a pull of a site has completed.
func Partial(st store.State, site string) state.JSON[bool] {
	return state.JSON[bool]{State: st, Namespace: site, Key: "partial"}
}

// BeginPartial sets [Partial] for a site without pages.
func BeginPartial(ctx context.Context, st store.State, site store.Site, name string) error {
	if v, err := site.Head(ctx); err != nil || v.Site().Pages > 0 {
		return err
	}
	return Partial(st, name).Save(ctx, true)
}

// Retire makes the source from the primary source of a site, after from has read the whole site.
// It deletes pages that only the other sources list. It also deletes the versions that the other
// sources have stored. Otherwise, if such a source were used again, it would not get the links of
// unmodified pages. If a fifth of the pages or more would be deleted, Retire deletes them only when
// the next call confirms it. Until then, Retire returns their number as unconfirmed.
func Retire(ctx context.Context, st store.State, site store.Site, from string, others ...string) (deleted, unconfirmed int, err error) {
	for _, other := range others {
		if other == from {
			continue
		}
		gone, lost, err := retire(ctx, st, site, from, other)
		deleted, unconfirmed = deleted+gone, unconfirmed+lost
		if err != nil {
			return deleted, unconfirmed, fmt.Errorf("retire %s: %w", other, err)
		}
	}
	return deleted, unconfirmed, nil
}

func retire(ctx context.Context, st store.State, site store.Site, from, other string) (deleted, unconfirmed int, err error) {
	cursor, err := site.Cursor(ctx, other)
	if err != nil {
		return 0, 0, err
	}
	stored := state.JSON[retirement]{State: st, Namespace: other, Key: "retirement"}
	var was retirement
	if cursor == "" {
		if was, err = stored.Load(ctx); err != nil || was.Done {
			return 0, 0, err
		}
	}
	total, lost := 0, 0
	err = compare(ctx, site, from, other, func(_ millrace.Ref, listed bool) error {
		if total++; !listed {
			lost++
		}
		return nil
	})
	if err != nil || total == 0 && cursor == "" {
		return 0, 0, err
	}
	if lost*5 >= total && lost > 0 && was.Unconfirmed != lost {
		unconfirmed = lost
	}
	var batch []millrace.Change
	apply := func() error {
		t, err := site.Apply(ctx, other, batch)
		deleted += t.Deleted
		batch = batch[:0]
		return err
	}
	if unconfirmed == 0 {
		err = compare(ctx, site, from, other, func(ref millrace.Ref, present bool) error {
			c := millrace.Change{Kind: millrace.Delete, Ref: ref}
			if present {
				c.Kind, c.Version = millrace.Put, ""
			}
			if batch = append(batch, c); len(batch) < 1000 {
				return nil
			}
			return apply()
		})
		if err != nil {
			return deleted, 0, err
		}
	}
	batch = append(batch, millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{}})
	if err := apply(); err != nil {
		return deleted, unconfirmed, err
	}
	return deleted, unconfirmed, stored.Save(ctx, retirement{Done: unconfirmed == 0, Unconfirmed: unconfirmed})
}

// compare calls each for every page that the source other lists. listed reports whether from also
// lists it.
func compare(ctx context.Context, site store.Site, from, other string, each func(ref millrace.Ref, listed bool) error) error {
	for ref, err := range site.KnownRefs(ctx, other) {
		if err != nil {
			return err
		}
		found := false
		for _, err := range site.KnownRefs(ctx, from, ref.URL) {
			if err != nil {
				return err
			}
			found = true
		}
		if err := each(ref, found); err != nil {
			return err
		}
	}
	return nil
}
