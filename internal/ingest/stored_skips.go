package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/store"
)

// storedSkip is the stored record of a page that a scan skipped.
type storedSkip struct {
	mirror.Skip
	Seen time.Time `json:"seen"` // last scan that reported it
}

const (
	maxStoredSkips = 1000                // maximum number of stored pages
	storedSkipTime = 30 * 24 * time.Hour // time after which a page that no scan has reported is dropped
)

// Skipped returns the skipped pages of the site, and their total number. Before the first scan of
// this process, it returns the pages that an earlier process skipped.
func (o *Origin) Skipped(ctx context.Context) ([]mirror.Skip, int, error) {
	if last := o.Last(); last != nil {
		return last.Report.Skipped, last.Report.SkippedN, nil
	}
	list, err := o.skipRecord().Load(ctx)
	skips := make([]mirror.Skip, len(list))
	for i, s := range list {
		skips[i] = s.Skip
	}
	return skips, len(skips), err
}

// skipRecord returns the record of skipped pages in the store.
func (o *Origin) skipRecord() state.JSON[[]storedSkip] {
	return state.JSON[[]storedSkip]{State: o.Store.State(), Namespace: o.Name, Key: "skipped pages"}
}

// keepSkips adds to a report the pages that earlier scans skipped, until they are read or
// disappear. This is necessary because a scan of a live site reports only pages that have changed.
// A scan of a folder reports all pages.
func (o *Origin) keepSkips(ctx context.Context, site store.Site, report *mirror.Report) error {
	view, err := site.Head(ctx)
	if err != nil && !errors.Is(err, millrace.ErrNotFound) {
		return err
	}
	now := time.Now().UTC().Truncate(24 * time.Hour)
	var earlier []mirror.Skip
	err = o.skipRecord().Update(ctx, func(list *[]storedSkip) error {
		next, reported := []storedSkip(nil), make(map[string]bool, len(report.Skipped))
		for _, s := range report.Skipped[:min(len(report.Skipped), maxStoredSkips)] {
			reported[s.URL] = true
			next = append(next, storedSkip{s, now})
		}
		earlier = nil
		for _, s := range *list {
			if !o.Live() || reported[s.URL] || now.Sub(s.Seen) > storedSkipTime || len(next) == maxStoredSkips {
				continue
			}
			if view != nil {
				_, err := view.Page(ctx, millrace.Ref{URL: s.URL})
				if err == nil {
					continue // the page was read
				}
				if !errors.Is(err, millrace.ErrNotFound) && !errors.Is(err, millrace.ErrInvalid) {
					return err
				}
			}
			next, earlier = append(next, s), append(earlier, s.Skip)
		}
		*list = next
		return nil
	})
	report.Skipped, report.SkippedN = append(report.Skipped, earlier...), report.SkippedN+len(earlier)
	return err
}
