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

// Kind returns the kind of badge for the change: good, bad, or "".
func (c *changed) Kind() string {
	switch c.What {
	case changeAdded:
		return "good"
	case changeRemoved:
		return "bad"
	}
	return ""
}

// history is a part of a site's change log, newest first. Each page appears once, with its
// last change.
type history struct {
	Changes []changed
	Older   uint64 // sequence number at which the next, older part begins. If zero, this is the last part.
	Cut     bool   // older changes are no longer in the log
}

// Bounds of one part of a log. Sequence numbers have gaps, because the log stores only the
// last change of each page.
const (
	minHistory   = 50      // minimum number of changes in a part, unless the log ends
	historyStep  = 100     // sequence numbers per read
	historyStep2 = 1 << 20 // maximum number of sequence numbers per read, after empty reads
	historyReads = 60      // maximum number of reads
)

// readHistory reads the change log of a view backward from a sequence number. If what is "", it
// includes every kind of change.
func readHistory(ctx context.Context, v millrace.View, from uint64, what string) (*history, error) {
	site, h := v.Site(), new(history)
	to, step := min(from, site.Seq), uint64(historyStep)
	for reads := 0; to > 0 && len(h.Changes) < minHistory; reads++ {
		if reads == historyReads {
			break // the remaining changes belong to the next part
		}
		start := to - min(to, step)
		part, complete, err := between(ctx, v, start, to)
		switch {
		case errors.Is(err, millrace.ErrConflict) && step > 1:
			step = max(1, step/4)
			continue
		case errors.Is(err, millrace.ErrConflict):
			h.Cut = true
			return h, nil
		case err != nil:
			return nil, err
		case !complete && step > historyStep:
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

// between returns the changes after one sequence number up to another. complete is false if it
// stopped because there are too many changes.
func between(ctx context.Context, v millrace.View, after, to uint64) (part []changed, complete bool, err error) {
	site := v.Site()
	// Stop at the page that changes first after to, since each page appears once.
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
