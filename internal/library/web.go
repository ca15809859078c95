package library

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/mcp"
	"github.com/millrace/millrace/protocol"
)

// Limits of a [Web].
const (
	maxAdded  = 100             // maximum number of added sites
	cachePage = 5 * time.Minute // lifetime of the cached last page, which may be read in parts
)

// Web adds sites to a store and keeps them up to date. It implements [mcp.Web] and is safe
// for concurrent use.
type Web struct {
	agent *agent.Agent
	log   *slog.Logger
	ctx   context.Context // ends when Close is called
	stop  context.CancelFunc
	tasks sync.WaitGroup

	mu    sync.Mutex
	sites map[string]*added // added sites, by root URL
	last  struct {          // the page that was read last
		url   string
		page  *millrace.Page
		terms []protocol.Terms
		until time.Time
	}
}

var _ mcp.Web = (*Web)(nil)

// added is a site that the Web keeps up to date.
type added struct {
	pulled chan struct{} // closed after the first pull
	report *agent.Report // report of the first pull
	err    error
}

// NewWeb returns a Web for the store of an agent. Call Close before you close the store.
func NewWeb(a *agent.Agent, log *slog.Logger) *Web {
	w := &Web{agent: a, log: log, sites: make(map[string]*added)}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// Close ends all work.
func (w *Web) Close() {
	w.stop()
	w.tasks.Wait()
}

// Page implements [mcp.Web].
func (w *Web) Page(ctx context.Context, pageURL string) (*millrace.Page, []protocol.Terms, error) {
	pageURL, err := ingest.URL(pageURL)
	if err != nil {
		return nil, nil, err
	}
	w.mu.Lock()
	last := w.last
	w.mu.Unlock()
	if last.url == pageURL && time.Now().Before(last.until) {
		return last.page, last.terms, nil
	}
	p, terms, err := w.agent.Page(ctx, pageURL)
	if err != nil {
		return nil, nil, err
	}
	p.Version = canon.SHA256Hex([]byte(p.Markdown()))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last.url, w.last.page, w.last.terms, w.last.until = pageURL, p, terms, time.Now().Add(cachePage)
	return p, terms, nil
}

// Add implements [mcp.Web]: it pulls a site and then keeps it up to date until Close. It returns
// after the first pull. If ctx ends before that, the pull continues, and pages is -1.
func (w *Web) Add(ctx context.Context, siteURL string) (root string, pages int, err error) {
	if root, err = ingest.Root(siteURL); err != nil {
		return "", 0, err
	}
	s, err := w.begin(root, siteURL)
	if err != nil {
		return root, 0, err
	}
	select {
	case <-s.pulled:
	case <-ctx.Done():
		return root, -1, nil
	}
	if s.err != nil {
		return root, 0, s.err
	}
	return root, s.report.Added + s.report.Updated + s.report.Unchanged, nil
}

// begin starts keeping a site up to date, unless that has already begun.
func (w *Web) begin(root, siteURL string) (*added, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sites[root]; s != nil {
		return s, nil
	}
	if len(w.sites) >= maxAdded {
		return nil, fmt.Errorf("%w: this program already updates %d sites, the maximum", millrace.ErrInvalid, maxAdded)
	}
	s := &added{pulled: make(chan struct{})}
	w.sites[root] = s
	w.tasks.Go(func() { w.keep(root, siteURL, s) })
	return s, nil
}

// keep pulls a site and watches it. After a failure of the first pull, the site can be added
// again.
func (w *Web) keep(root, siteURL string, s *added) {
	reports, err := w.agent.Pull(w.ctx, siteURL)
	if len(reports) > 0 {
		s.report = reports[0]
	} else {
		err = errors.Join(err, w.ctx.Err())
	}
	if s.err = err; err != nil {
		w.mu.Lock()
		delete(w.sites, root)
		w.mu.Unlock()
	}
	close(s.pulled)
	if err != nil {
		if w.ctx.Err() == nil {
			w.log.Warn("pull failed", "site", root, "err", err)
		}
		return
	}
	for e, err := range w.agent.Watch(w.ctx, []string{siteURL}, &agent.WatchOptions{Receiver: "mcp", FromNow: true}) {
		if err != nil {
			if w.ctx.Err() == nil {
				w.log.Warn("watch ended", "site", root, "err", err)
			}
			return
		}
		w.log.Debug("site has changed", "site", e.Site, "changes", len(e.Lines))
	}
}
