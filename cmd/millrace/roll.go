package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// rolls are the sources that may have decided which pages a site has.
func rolls(site string) []string {
	if !strings.Contains(site, "://") {
		return nil
	}
	names := []string{site + " crawl", site + " wordpress"}
	every, _ := rooms("")
	for _, room := range every {
		names = append(names, site+" "+room.Name)
	}
	return names
}

// retirement is what the State of a store has of a source that is not the
// site's roll any more. It counts while the source has no cursor: one that
// comes back starts over.
type retirement struct {
	Done    bool `json:"done"`
	Doubted int  `json:"doubted,omitempty"` // pages that went with it; not believed yet
}

// noneRead is the error of a way that names pages and gives none of them.
func noneRead(n int) error {
	return fmt.Errorf("%w: none of the %d pages that the site names could be read", millrace.ErrInvalid, n)
}

// barren gives an error for a source that has skipped pages and that nothing
// is held of. Its place is forgotten: a list that is unchanged the next time
// would stand for a site without pages, and what other sources have given
// would go.
func barren(ctx context.Context, site store.Site, from string, skipped int) error {
	for _, err := range site.KnownRefs(ctx, from) {
		return err
	}
	_, err := site.Apply(ctx, from, []millrace.Change{{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{}}})
	return errors.Join(noneRead(skipped), err)
}

// active reports whether a source has decided last which pages a site has.
func active(ctx context.Context, site store.Site, from string) (bool, error) {
	c, err := site.Cursor(ctx, from)
	return c != "", err
}

// partialOf is the value that reports whether no pull of a site has completed yet.
func partialOf(st store.State, site string) state.JSON[bool] {
	return state.JSON[bool]{State: st, Namespace: site, Key: "partial"}
}

// beginPartial sets that value for a site without pages.
func beginPartial(ctx context.Context, st store.State, site store.Site, name string) error {
	if v, err := site.Head(ctx); err != nil || v.Site().Pages > 0 {
		return err
	}
	return partialOf(st, name).Save(ctx, true)
}

// retire lets the source from alone decide which pages there are, after it had
// a whole look at the site: what only another one has named, in the days when
// it was the roll, goes. Of the rest it forgets the versions, because a page
// that stands does not say again what it leads to. As everywhere, the loss of
// a fifth is believed the second time only; doubted counts it until then.
func retire(ctx context.Context, st store.State, site store.Site, from string, others ...string) (deleted, doubted int, err error) {
	for _, other := range others {
		if other == from {
			continue
		}
		gone, lost, err := retireOne(ctx, st, site, from, other)
		deleted, doubted = deleted+gone, doubted+lost
		if err != nil {
			return deleted, doubted, fmt.Errorf("retire %s: %w", other, err)
		}
	}
	return deleted, doubted, nil
}

func retireOne(ctx context.Context, st store.State, site store.Site, from, other string) (deleted, doubted int, err error) {
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
	held, lost := 0, 0
	err = compare(ctx, site, from, other, func(_ millrace.Ref, kept bool) error {
		if held++; !kept {
			lost++
		}
		return nil
	})
	if err != nil || held == 0 && cursor == "" {
		return 0, 0, err
	}
	if lost*5 >= held && lost > 0 && was.Doubted != lost {
		doubted = lost
	}
	var batch []millrace.Change
	apply := func() error {
		t, err := site.Apply(ctx, other, batch)
		deleted += t.Deleted
		batch = batch[:0]
		return err
	}
	if doubted == 0 {
		err = compare(ctx, site, from, other, func(ref millrace.Ref, kept bool) error {
			c := millrace.Change{Kind: millrace.Delete, Ref: ref}
			if kept {
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
		return deleted, doubted, err
	}
	return deleted, doubted, stored.Save(ctx, retirement{Done: doubted == 0, Doubted: doubted})
}

// compare goes through what one source is remembered by, and tells of each
// name whether another one knows it too.
func compare(ctx context.Context, site store.Site, from, other string, each func(ref millrace.Ref, kept bool) error) error {
	for ref, err := range site.KnownRefs(ctx, other) {
		if err != nil {
			return err
		}
		kept := false
		for _, err := range site.KnownRefs(ctx, from, ref.URL) {
			if err != nil {
				return err
			}
			kept = true
		}
		if err := each(ref, kept); err != nil {
			return err
		}
	}
	return nil
}
