package protocol

import (
	"context"
	"errors"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// maxChanged is the maximum number of changed pages that [SameTags] reads.
const maxChanged = 1000

// SameTags reports whether the same pages have a tag of a protocol in v and in an earlier view of
// the same log, which last describes. If so, changed lists the identities of the pages that changed
// between the views, in order. Only the tags of these pages can differ, and no tag has a different
// N. If SameTags returns false, the pages may differ. It also returns false if last is newer or
// belongs to another log, if the log no longer contains last, or if more than 1,000 pages changed.
func SameTags(ctx context.Context, v millrace.View, name string, last millrace.Site) (changed []string, same bool, err error) {
	site := v.Site()
	// A log that continues another one can have other tags without any changes.
	if site.Epoch != last.Epoch || site.Base != last.Base || site.EndpointBase != last.EndpointBase || site.Tagged[name] != last.Tagged[name] || site.Seq < last.Seq {
		return nil, false, nil
	}
	if site.Seq == last.Seq {
		return nil, site.Time.Equal(last.Time) && site.Pages == last.Pages, nil
	}
	// If every changed page has a tag, all previously tagged pages still have one. The number of
	// tags is the same, so no other page has one.
	for c, err := range v.Changes(ctx, site.At(last.Seq)) {
		if err == nil && c.Kind == millrace.KindCheckpoint {
			continue
		}
		if len(changed) == maxChanged {
			return nil, false, nil
		}
		if err == nil {
			_, err = v.Tag(ctx, name, c.URL) // a deleted page has no tag
		}
		if errors.Is(err, millrace.ErrConflict) || errors.Is(err, millrace.ErrNotFound) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		changed = append(changed, canon.Relative(site.Base, c.URL))
	}
	slices.Sort(changed)
	return changed, true, nil
}
