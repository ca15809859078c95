package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/discover"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/internal/webauth"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/store"
)

// Crawl is the way to read a site that speaks no protocol: by its HTML pages and
// their links. See [Options.Via] and [Report.Via].
const Crawl = discover.Web

// Coefficients are what savings are computed with.
type Coefficients = savings.Coefficients

// Savings is what a pull has saved against fetching every page as HTML.
type Savings = savings.Saved

// Options are what an [Agent] works with. The zero value is ready to use.
type Options struct {
	// Via is the name of the protocol to read sites by, or [Crawl]. If empty, the
	// cheapest way that a site offers.
	Via string
	// Purpose is what the content is for. If empty, [millrace.AIInput].
	Purpose millrace.Purpose
	// IgnorePolicy reads sites against their policy and robots.txt.
	IgnorePolicy bool
	// Parallel is the number of sites that are pulled at once. If zero, 4. The
	// sites of one host are pulled one after the other.
	Parallel int

	// MaxPages limits the pages that one pull requests of a site, and MaxBytes the
	// bytes that it receives, headers included. The next pull continues. Files of
	// many pages are read whole, or not at all. If zero, there is no limit.
	MaxPages int
	MaxBytes int64
	// MaxDepth limits the links between the start of a crawl and a page. If zero,
	// 30. MaxTime limits the time of one crawl; the next one continues. If zero,
	// there is no limit.
	MaxDepth int
	MaxTime  time.Duration
	// MaxList and Handshake are those of [protocol.ReaderOptions].
	MaxList   int64
	Handshake bool

	// Keep, Drop and Comments correct the extraction of pages that are crawled, as
	// those of [extract.RulesOptions] do.
	Keep, Drop []string
	Comments   bool

	// Key returns the key for an origin, such as "https://example.com", or "". If
	// nil, there are no keys.
	Key func(origin string) string
	// Sign adds a signature to each request before it is sent. If nil, requests
	// are not signed.
	Sign func(*http.Request) error
	// UserAgent names the agent to servers. If empty, millrace/VERSION with
	// Contact, an address or URL for the owners of sites.
	UserAgent, Contact string
	// Delay is the least time between two requests to one host. If zero, 250 ms,
	// and none on loopback; a negative value is none.
	Delay time.Duration
	// AllowPrivate allows loopback and private addresses.
	AllowPrivate bool
	// Dial connects in place of the network. If nil, the network.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Coefficients are those of [Report.Savings]. If zero, the default ones.
	Coefficients Coefficients
	// Progress receives the progress of pulls. It is called from several
	// goroutines at once, and must not block. If nil, progress is not reported.
	Progress func(Progress)
	// Logger receives what happens. If nil, nothing is logged.
	Logger *slog.Logger
}

// Agent mirrors sites into a store. It is safe for concurrent use.
type Agent struct {
	store    store.Store
	o        Options
	rules    *extract.Rules
	shared   *fetch.Client             // the clients of all sites share its queues
	verifier *webauth.ResponseVerifier // has the keys of sites
}

// New returns an agent that mirrors sites into st. nil options are the zero
// value. An option that cannot be used is [millrace.ErrInvalid].
func New(st store.Store, o *Options) (*Agent, error) {
	a := &Agent{store: st}
	if o != nil {
		a.o = *o
	}
	if a.o.Purpose == "" {
		a.o.Purpose = millrace.AIInput
	}
	if a.o.Parallel < 1 {
		a.o.Parallel = 4
	}
	if a.o.Key == nil {
		a.o.Key = func(string) string { return "" }
	}
	if a.o.Coefficients == (Coefficients{}) {
		a.o.Coefficients = savings.Default()
	}
	if a.o.Logger == nil {
		a.o.Logger = slog.New(slog.DiscardHandler)
	}
	if _, ok := named(a.o.Via); !ok && a.o.Via != "" && a.o.Via != Crawl {
		return nil, fmt.Errorf("%w: unknown protocol %q", millrace.ErrInvalid, a.o.Via)
	}
	var err error
	if a.rules, err = a.corrections().Compile(); err != nil {
		return nil, err
	}
	a.shared = fetch.New(a.clientOptions(nil))
	a.verifier = webauth.NewResponseVerifier(fetch.New(webauth.ClientOptions(a.clientOptions(nil))).HTTP())
	return a, nil
}

func (a *Agent) corrections() ingest.Rules {
	return ingest.Rules{Keep: a.o.Keep, Drop: a.o.Drop, Comments: a.o.Comments}
}

// named returns the protocol of a name.
func named(name string) (p protocol.Protocol, ok bool) {
	for _, p := range all.Protocols() {
		if p.Name == name {
			return p, true
		}
	}
	return p, false
}

// protocols returns those that sites may be read by.
func (a *Agent) protocols() []protocol.Protocol {
	if a.o.Via == "" {
		return all.Protocols()
	}
	if p, ok := named(a.o.Via); ok {
		return []protocol.Protocol{p}
	}
	return nil
}

// Pull mirrors the site of each URL once, by the cheapest way that it offers. A
// site that speaks no protocol is crawled in the folder of the URL. Pull returns
// a report for each site that was begun, in the order of urls, and the errors of
// all sites that could not be pulled, which do not stop the others. What was
// read before an error is in the store.
func (a *Agent) Pull(ctx context.Context, urls ...string) ([]*Report, error) {
	all := make([]*Report, len(urls))
	jobs := make(chan []int)
	var workers sync.WaitGroup
	for range min(a.o.Parallel, len(urls)) {
		workers.Go(func() {
			for job := range jobs {
				for _, i := range job {
					if ctx.Err() != nil && i > 0 {
						break
					}
					all[i] = a.pull(ctx, urls[i])
				}
			}
		})
	}
	for _, job := range byHost(urls) {
		jobs <- job
	}
	close(jobs)
	workers.Wait()
	var reports []*Report
	var errs []error
	for _, r := range all {
		if r != nil {
			reports, errs = append(reports, r), append(errs, r.Err)
		}
	}
	return reports, errors.Join(errs...)
}

// byHost returns the indexes of URLs in groups of one host each, in the order of
// their first ones.
func byHost(urls []string) (groups [][]int) {
	at := map[string]int{}
	for i, raw := range urls {
		host := raw
		if root, err := ingest.Root(raw); err == nil {
			if u, err := url.Parse(root); err == nil {
				host = u.Host
			}
		}
		n, ok := at[host]
		if !ok {
			n = len(groups)
			at[host] = n
			groups = append(groups, nil)
		}
		groups[n] = append(groups[n], i)
	}
	return groups
}
