package dashboard

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/analytics"
)

// averagesCache caches the average figures of the pages, because their computation scans every page.
type averagesCache struct {
	mu     sync.Mutex
	pages  analytics.Pages
	at     time.Time     // end of the last computation, even if it failed; zero = none yet
	making chan struct{} // closed at the end of the computation; nil if none is running
}

const (
	averagesMaxAge  = 10 * time.Minute
	averagesWait    = 100 * time.Millisecond // time for which the first request waits for the figures
	averagesMaxWait = 2 * time.Minute
)

// averages returns the last average figures of the site's pages. It starts a computation if they are
// old. The first request waits a short time for the figures.
func (d *Dashboard) averages(ctx context.Context) analytics.Pages {
	pages, first, making := d.prepare(ctx)
	y := &d.averagesCache
	if !first || making == nil {
		return pages
	}
	select {
	case <-making:
	case <-time.After(averagesWait):
	case <-ctx.Done():
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.pages
}

// prepare starts a computation if one is due. It returns the current figures. first reports that no
// computation has ended yet, and making is closed when the running one ends; nil if none is
// running.
func (d *Dashboard) prepare(ctx context.Context) (pages analytics.Pages, first bool, making <-chan struct{}) {
	y := &d.averagesCache
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.making == nil && d.site.Pages != nil && d.now().Sub(y.at).Abs() > averagesMaxAge {
		y.making = make(chan struct{})
		go d.measure(context.WithoutCancel(ctx), y.making)
	}
	return y.pages, y.at.IsZero(), y.making
}

func (d *Dashboard) measure(ctx context.Context, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, averagesMaxWait)
	defer cancel()
	var pages analytics.Pages
	view, err := d.site.Pages.Head(ctx)
	if err == nil {
		pages, err = analytics.Measure(ctx, d.site.Pages, view, d.site.Coefficients)
	}
	y := &d.averagesCache
	y.mu.Lock()
	defer y.mu.Unlock()
	if err == nil {
		y.pages = pages
	} else {
		d.log.Warn("could not measure pages", "err", err)
	}
	y.at, y.making = d.now(), nil // also after an error, to delay the next attempt
	close(done)
}
