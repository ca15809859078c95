package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/store"
)

// coefficients are the flags of every command that tells what was saved.
type coefficients struct {
	KWhPerGB        float64 `name:"kwh-per-gb" default:"0.06" placeholder:"N" help:"kWh that the network takes for a GB, for what was saved (default: ${default}). millrace report names the sources of these numbers."`
	BytesPerToken   float64 `name:"bytes-per-token" default:"4" placeholder:"N" help:"Bytes in a token of a model (default: ${default})."`
	HTMLPerText     float64 `name:"html-per-text" default:"14.8" placeholder:"N" help:"Bytes of HTML for a byte of text, for sites whose HTML was not had (default: ${default})."`
	HTMLCompression float64 `name:"html-compression" default:"5.1" placeholder:"N" help:"Bytes of HTML for a byte on the wire, for the same sites (default: ${default})."`
}

func (c *coefficients) values() savings.Coefficients {
	return savings.Coefficients{
		KWhPerGB: c.KWhPerGB, BytesPerToken: c.BytesPerToken, HTMLPerText: c.HTMLPerText, HTMLCompression: c.HTMLCompression,
	}
}

func (c *coefficients) validate() error {
	if err := c.values().Validate(); err != nil {
		return usageError("--" + err.Error())
	}
	return nil
}

// bookEvery is how often a pull that goes on books what it has cost so far: that
// much of one that is killed is missing in the sums.
const bookEvery = 2 * time.Second

// meter books what one pull costs, in parts, each of them once.
type meter struct {
	costs  store.Costs
	client *fetch.Client
	log    *slog.Logger
	stop   chan struct{}
	ended  sync.WaitGroup

	mu       sync.Mutex
	site     string // in the store
	protocol string
	booked   store.Traffic
	pages    store.Traffic // what is known of pages when the pull ends
	html     bool          // pages came as HTML
}

// measure starts to book what a client receives.
func measure(ctx context.Context, st store.Costs, client *fetch.Client, site string, log *slog.Logger, every time.Duration) *meter {
	m := &meter{costs: st, client: client, log: log, stop: make(chan struct{}), site: site}
	m.ended.Go(func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				m.book(ctx, m.wire())
			case <-m.stop:
				return
			}
		}
	})
	return m
}

// begin says by which protocol a site is pulled from now on.
func (m *meter) begin(site, protocol string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.site, m.protocol = site, protocol
}

// sawHTML says that pages came as HTML, whatever the protocol.
func (m *meter) sawHTML() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.html = true
}

// wire is what the client has counted so far. Whether HTML that came was that
// of pages is known at the end.
func (m *meter) wire() store.Traffic {
	s := m.client.Stats()
	return store.Traffic{Requests: s.Requests, Conditional: s.Conditional, NotModified: s.NotModified, Received: s.Received()}
}

// book books what is not booked yet of a total. What cannot be booked is not
// tried again, so that nothing counts twice: it is no reason to stop.
func (m *meter) book(ctx context.Context, total store.Traffic) {
	m.mu.Lock()
	defer m.mu.Unlock()
	more := total
	more.Sub(m.booked)
	if more == (store.Traffic{}) || m.protocol == "" {
		return
	}
	m.booked = total
	if err := m.costs.Add(ctx, m.site, m.protocol, more); err != nil {
		m.log.Warn("what the pull has cost is missing in the sums of the store", "error", err)
	}
}

// see counts what one way has brought. known is how many pages it vouches for,
// -1 if it did not see the whole site.
func (m *meter) see(name string, known int, rep *mirror.Report) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.html = m.html || name == webCrawl || len(rep.Fallbacks) > 0
	t := &m.pages
	t.Fetched, t.Unmodified, t.Text = t.Fetched+int64(rep.Fetched), t.Unmodified+int64(rep.Unmodified), t.Text+rep.Text
	if name == webCrawl { // it does not ask for pages, it names those that it has looked at
		t.Unmodified += max(0, int64(rep.Unchanged-(rep.Fetched-rep.Added-rep.Updated)))
	}
	if t.Pages = t.Fetched + t.Unmodified; known >= 0 {
		t.Pages = max(int64(known), t.Fetched)
		if rest := max(0, t.Pages-t.Fetched); name == webCrawl || t.Unmodified > rest {
			t.Unmodified = rest // a crawl looks at every page
		}
	}
}

// end books the rest, and gives all that the pull has cost, the protocol that
// it is booked under, and what is known of the site.
func (m *meter) end(ctx context.Context, failed bool) (total, site store.Traffic) {
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
	if total.Received > 0 { // nobody was there
		m.book(ctx, total)
	}
	all, err := m.costs.List(ctx)
	if err != nil {
		m.log.Warn("what earlier pulls have cost cannot be read", "error", err)
		return total, total
	}
	for _, a := range all {
		if a.Site == m.site {
			site.Add(a.Traffic)
		}
	}
	return total, site
}

// textSample is how many pages tell how much text those of a site have, when
// they came before what comes was counted.
const textSample = 200

// sampled adds to what is known of a site how much text its pages have, if that
// is missing.
func sampled(ctx context.Context, v millrace.View, site store.Traffic) (store.Traffic, error) {
	if site.Fetched > 0 {
		return site, nil
	}
	for p, err := range v.Scan(ctx, millrace.Scan{Limit: textSample, Bodies: true}) {
		if err != nil {
			return site, err
		}
		site.Fetched++
		site.Text += int64(len(p.Title) + len(millrace.Text(p.Blocks)))
	}
	return site, nil
}

// settle ends the meter of a pull, and enters into its report what was saved.
func (c *pullCommand) settle(ctx context.Context, p *process, st store.Store, r *pullReport, failed bool) {
	m := r.meter
	ctx = context.WithoutCancel(ctx) // what an interrupted pull has cost counts, too
	total, known := m.end(ctx, failed)
	if known.Fetched == 0 && total.Pages > 0 {
		_, v, err := headOf(ctx, st, m.site)
		if err == nil {
			known, err = sampled(ctx, v, known)
		}
		if err != nil {
			p.log.Warn("how much text the pages have cannot be read", "error", err)
		}
	}
	r.Savings = savings.Of(total, known, c.values())
	r.BytesSaved, r.TokensSaved = int64(r.Savings.Bytes.Saved), int64(r.Savings.Tokens.Saved)
	r.Summary, _ = r.Savings.Text()
}

// appendSaved appends what was saved in two lines, or in none.
func appendSaved(b []byte, indent string, s *savings.Saved) []byte {
	if s == nil || s.Pages == 0 {
		return b
	}
	saved, counted := s.Text()
	return fmt.Appendf(b, "%s%s\n%s%s\n", indent, saved, indent, counted)
}
