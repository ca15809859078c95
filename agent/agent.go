package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
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

// Crawl names the way that reads the HTML pages of a site and follows their links. It is for
// sites without a protocol. See [Options.Via] and [Report.Via].
const Crawl = discover.Web

// Coefficients are the constants from which [Report.Savings] is computed.
type Coefficients = savings.Coefficients

// Figure is one figure of [Savings], with its baseline.
type Figure = savings.Figure

// Basis says whether a [Figure] was measured or is an estimate.
type Basis = savings.Basis

// HTMLSize is the mean size of a site's HTML pages.
type HTMLSize = savings.HTML

// HTMLOrigin is the source of an [HTMLSize].
type HTMLOrigin = savings.Origin

// Savings describes what a pull saved compared with fetching every page as HTML.
type Savings = savings.Saved

// VerifyCounts counts the signatures of a site's responses.
type VerifyCounts = webauth.VerifyCounts

// Options are the options of an [Agent]. The zero value is ready to use.
type Options struct {
	// Via is the name of the protocol by which sites are read, or [Crawl]. If empty, the agent
	// chooses the cheapest way that a site offers.
	Via string
	// Purpose is the intended use of the content. If empty, [millrace.AIInput].
	Purpose millrace.Purpose
	// IgnorePolicy makes the agent ignore the policies and robots.txt of sites.
	IgnorePolicy bool
	// Parallel is the number of sites that are pulled at once. If zero, 4. Sites on the same
	// host are pulled one after the other.
	Parallel int

	// MaxPages limits the pages that one pull requests from a site. MaxBytes limits the bytes that one
	// pull receives, including headers. The next pull reads the rest. A file of many pages is read
	// completely or not at all. One pull writes at most ten times MaxBytes of decoded files to
	// temporary storage. If MaxPages or MaxBytes is zero, it sets no limit.
	MaxPages int
	MaxBytes int64
	// MaxDepth limits the number of links between the start of a crawl and a page. If zero, 30.
	// MaxTime limits the duration of one pull of a site; the next pull continues. If zero, there is
	// no limit.
	MaxDepth int
	MaxTime  time.Duration
	// MaxList and CheckPageLinks are passed to [protocol.ReaderOptions].
	MaxList        int64
	CheckPageLinks bool

	// Keep, Drop and Comments correct the extraction of crawled pages. See
	// [extract.RulesOptions].
	Keep, Drop []string
	Comments   bool

	// RequestCounts opens the store that counts the daily requests to each host, for sites whose policy
	// limits them. The limit applies to all agents that open the same store, such as all agents of a
	// machine. If nil, or if the store cannot be opened, the agent's own store is used.
	RequestCounts func(ctx context.Context) (store.Store, error)

	// Key returns the access key for an origin, such as "https://example.com", or "". If nil,
	// requests carry no keys.
	Key func(origin string) string
	// Sign adds a signature to each request before it is sent. If nil, requests
	// are not signed.
	Sign func(*http.Request) error
	// UserAgent names the agent to servers. If empty, it is millrace/VERSION with Contact. Contact is
	// an address or URL where site owners can reach the user of the agent.
	UserAgent, Contact string
	// Delay is the minimum time between two requests to one host. If zero, 250 ms, or no delay
	// on loopback. If negative, there is no delay.
	Delay time.Duration
	// Dictionaries is a folder for the last lists and collections of sites. With them, a server may
	// send only the changes since the last version (RFC 9842). The agent creates the folder when
	// needed, and limits its size to 512 MiB. If empty, no dictionaries are kept.
	Dictionaries string
	// AllowPrivate allows loopback and private addresses.
	AllowPrivate bool
	// Dial opens connections. If nil, the network is used.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Resolve returns the addresses of a host. Watch connects to these addresses, and uses them to
	// find hosts that share an address. If nil, the system's resolver is used, or none if Dial is set.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)

	// Coefficients are the constants of [Report.Savings]. If zero, the defaults.
	Coefficients Coefficients
	// Progress receives the progress of pulls. It is called from several
	// goroutines at once, and must not block. If nil, progress is not reported.
	Progress func(Progress)
	// Logger receives log messages. If nil, nothing is logged.
	Logger *slog.Logger
}

// Agent mirrors sites into a store. It is safe for concurrent use.
type Agent struct {
	store    store.Store
	o        Options
	rules    *extract.Rules
	shared   *fetch.Client             // the clients of all sites share its queues
	verifier *webauth.ResponseVerifier // caches the signature keys of sites
	// inTurn changes client options so that requests are sent only during a turn. It may be nil.
	inTurn func(*fetch.Options)
}

// New returns an agent that mirrors sites into st. If o is nil, the zero Options are used. If an
// option is invalid, the error is [millrace.ErrInvalid].
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
	a.verifier = webauth.NewResponseVerifier(nil)
	return a, nil
}

func (a *Agent) corrections() ingest.Rules {
	return ingest.Rules{Keep: a.o.Keep, Drop: a.o.Drop, Comments: a.o.Comments}
}

// named returns the protocol with the given name.
func named(name string) (p protocol.Protocol, ok bool) {
	for _, p := range all.Protocols() {
		if p.Name == name {
			return p, true
		}
	}
	return p, false
}

// protocols returns the protocols by which sites may be read.
func (a *Agent) protocols() []protocol.Protocol {
	if a.o.Via == "" {
		return all.Protocols()
	}
	if p, ok := named(a.o.Via); ok {
		return []protocol.Protocol{p}
	}
	return nil
}

// Pull mirrors the site of each URL once, by the cheapest way that it offers. If a site has no
// protocol, Pull crawls the folder of the URL.
//
// Pull returns a report for each site that it started, in the order of urls. An error of one
// site does not stop the others; Pull returns the errors of all sites. Pages that were read
// before an error are in the store.
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

// byHost groups the indexes of URLs by host, in the order in which the hosts first appear.
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
