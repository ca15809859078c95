package agent

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/store"
)

// costsEvery is the interval at which a running pull adds its costs to the store. If the pull is
// killed, the costs since the last addition are lost.
const costsEvery = 2 * time.Second

// costMeter adds the costs of one pull to the store, in parts.
type costMeter struct {
	costs  store.Costs
	client *fetch.Client
	log    *slog.Logger
	stop   chan struct{}
	ended  sync.WaitGroup

	mu       sync.Mutex
	site     string // name of the site in the store
	protocol string
	saved    store.Traffic
	pages    store.Traffic // page counts, set when the pull ends
	html     bool          // pages were received as HTML
}

// measure starts a meter that adds the costs of a client to the store.
func measure(ctx context.Context, st store.Costs, client *fetch.Client, site string, log *slog.Logger, every time.Duration) *costMeter {
	m := &costMeter{costs: st, client: client, log: log, stop: make(chan struct{}), site: site}
	m.ended.Go(func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				m.save(ctx, m.wire())
			case <-m.stop:
				return
			}
		}
	})
	return m
}

// begin sets the site and the protocol to which later costs belong.
func (m *costMeter) begin(site, protocol string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.site, m.protocol = site, protocol
}

// sawHTML records that pages were received as HTML, whatever the protocol.
func (m *costMeter) sawHTML() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.html = true
}

// wire returns the traffic that the client has counted so far. It omits the HTML counts, because only
// the end of the pull shows whether the received HTML belongs to pages.
func (m *costMeter) wire() store.Traffic {
	s := m.client.Stats()
	return store.Traffic{Requests: s.Requests, Conditional: s.Conditional, NotModified: s.NotModified, Received: s.Received()}
}

// save adds the part of total that is not in the store yet. It does not retry after an error, so
// nothing is counted twice. The pull continues.
func (m *costMeter) save(ctx context.Context, total store.Traffic) {
	m.mu.Lock()
	defer m.mu.Unlock()
	more := total
	more.Sub(m.saved)
	if more == (store.Traffic{}) || m.protocol == "" {
		return
	}
	m.saved = total
	if err := m.costs.Add(ctx, m.site, m.protocol, more); err != nil {
		m.log.Warn("could not save pull statistics", "err", err)
	}
}

// count adds the page counts of one way. stored is the number of pages that the site has now. whole
// reports whether the way has read all of them.
func (m *costMeter) count(name string, stored int, whole bool, rep *mirror.Report) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.html = m.html || name == Crawl || len(rep.Fallbacks) > 0
	t := &m.pages
	t.Fetched, t.Unmodified, t.Text = t.Fetched+int64(rep.Fetched), t.Unmodified+int64(rep.Unmodified), t.Text+rep.Text
	if name == Crawl && !whole {
		// Each unmodified page took a request. Do not use rep.Unchanged: it also counts addresses that
		// were found but not requested.
		t.Unmodified += max(0, min(int64(stored-rep.Added-rep.Updated), m.wire().Requests-t.Fetched))
	}
	if t.Pages = t.Fetched + t.Unmodified; whole {
		t.Pages = max(int64(stored), t.Fetched)
		if rest := max(0, t.Pages-t.Fetched); name == Crawl || t.Unmodified > rest {
			t.Unmodified = rest // a crawl requests every page
		}
	}
}

// end stops the meter and adds the remaining costs. It returns the costs of this pull, and the total
// costs of the site.
func (m *costMeter) end(ctx context.Context, failed bool) (total, site store.Traffic) {
	close(m.stop)
	m.ended.Wait()
	total = m.wire()
	total.Pulls = 1
	if failed {
		total.Failed = 1
	}
	total.Add(m.pages)
	if m.html {
		s := m.client.Stats()
		total.HTML, total.HTMLReceived, total.HTMLBytes = s.HTML, s.HTMLReceived, s.HTMLBytes
	}
	if total.Received > 0 { // otherwise no server has responded
		m.save(ctx, total)
	}
	all, err := m.costs.Of(ctx, m.site)
	if err != nil {
		m.log.Warn("could not read pull statistics", "err", err)
		return total, total
	}
	for _, a := range all {
		site.Add(a.Traffic)
	}
	return total, site
}

// reportSavings ends the meter of a pull and reports the savings.
func (s *sitePull) reportSavings(ctx context.Context, failed bool) {
	ctx = context.WithoutCancel(ctx) // count the costs of an interrupted pull, too
	total, known := s.costs.end(ctx, failed)
	if known.Fetched == 0 && total.Pages > 0 {
		site, err := s.store.Site(ctx, s.costs.site, "")
		if err == nil {
			var v millrace.View
			if v, err = site.Head(ctx); err == nil {
				known, err = savings.Sample(ctx, store.Visible(v), known)
			}
		}
		if err != nil {
			s.o.Logger.Warn("could not read the text of pages", "err", err)
		}
	}
	s.r.Savings = savings.Of(total, known, s.o.Coefficients)
	s.r.BytesSaved, s.r.TokensSaved = int64(s.r.Savings.Bytes.Saved), int64(s.r.Savings.Tokens.Saved)
	s.r.Summary, _ = s.r.Savings.Text()
}
