package dashboard

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// Kinds of changes.
const (
	changeAdded   = "added"
	changeUpdated = "changed"
	changeRemoved = "removed"
)

// changed is the last change of one page.
type changed struct {
	What string // changeAdded, changeUpdated or changeRemoved
	Path string // path of the page, relative to the base
	URL  string
	Time time.Time
}

// Clock returns the time of day.
func (c *changed) Clock() string { return c.Time.UTC().Format("15:04") }

// Kind returns the kind of the badge.
func (c *changed) Kind() string {
	switch c.What {
	case changeAdded:
		return "good"
	case changeRemoved:
		return "bad"
	}
	return ""
}

// history is a part of a site's log, newest first. Each page appears once, with its
// last change.
type history struct {
	Changes []changed
	Older   uint64 // sequence number of the next part; 0 = no older part
	Cut     bool   // older changes are no longer in the log
}

// Bounds of one part of a log. Sequence numbers may have gaps, because only the
// last change of a page is kept.
const (
	historyLeast = 50      // changes wanted
	historyStep  = 100     // sequence numbers per read
	historyStep2 = 1 << 20 // the same after an empty read
	historyReads = 60
)

// recall reads the log of a view backward from a sequence number. what = ""
// includes every kind of change.
func recall(ctx context.Context, v millrace.View, from uint64, what string) (*history, error) {
	site, h := v.Site(), new(history)
	to, step := min(from, site.Seq), uint64(historyStep)
	for reads := 0; to > 0 && len(h.Changes) < historyLeast; reads++ {
		if reads == historyReads {
			break // the rest is the next part
		}
		start := to - min(to, step)
		part, whole, err := between(ctx, v, start, to)
		switch {
		case errors.Is(err, millrace.ErrConflict) && step > 1:
			step = max(1, step/4)
			continue
		case errors.Is(err, millrace.ErrConflict):
			h.Cut = true
			return h, nil
		case err != nil:
			return nil, err
		case !whole && step > historyStep:
			step = max(historyStep, step/16)
			continue
		}
		if len(part) == 0 {
			step = min(step*16, historyStep2)
		}
		slices.Reverse(part)
		for _, c := range part {
			if what == "" || c.What == what {
				c.Path = canon.Relative(site.Base, c.URL)
				h.Changes = append(h.Changes, c)
			}
		}
		to = start
	}
	h.Older = to
	return h, nil
}

// between returns the changes after one sequence number up to another; false if
// there are too many.
func between(ctx context.Context, v millrace.View, after, to uint64) (part []changed, whole bool, err error) {
	site := v.Site()
	// A page appears once, so its first later change is where to stop.
	end := ""
	if to < site.Seq {
		for c, err := range v.Changes(ctx, site.At(to)) {
			if err != nil {
				return nil, false, err
			}
			if c.Kind != millrace.KindCheckpoint {
				end = c.URL
			}
			break
		}
	}
	for c, err := range v.Changes(ctx, site.At(after)) {
		switch {
		case err != nil:
			return nil, false, err
		case c.Kind == millrace.KindCheckpoint, c.URL == end:
			return part, true, nil
		case len(part) == historyStep:
			return nil, false, nil
		}
		is := changed{What: changeUpdated, URL: c.URL, Time: c.Time}
		switch {
		case c.Kind == millrace.Delete:
			is.What = changeRemoved
		case c.New:
			is.What = changeAdded
		}
		part = append(part, is)
	}
	return part, true, nil
}
