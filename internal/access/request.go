package access

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/replica"
	"github.com/millrace/millrace/store"
)

// Options configure a [Guard]. The zero value limits only concurrent requests.
type Options struct {
	// Keys contains the keys. If nil, the site has no keys.
	Keys store.Keys
	// Rate is the maximum number of content requests per second of a client, which is a key or an
	// address, with bursts of twice as many. If zero, there is no limit. Further requests get 429.
	Rate float64
	// Proxies are the trusted proxies, whose X-Forwarded-For is used.
	Proxies []netip.Prefix

	// Bots recognizes bots. It may be nil. Rules are the actions for classes of bots, in addition to
	// Policy. Agents verifies signatures of bots and may be nil.
	Bots   *bots.Table
	Rules  []Rule
	Agents Agents
	Policy *millrace.Policy
	// FilesRate is the maximum transfer rate of large documents to one client in bytes per second,
	// and FilesRateTotal that to all clients together. If zero, there is no limit.
	FilesRate, FilesRateTotal float64

	// Streams receives the number of open streams when it changes. It must not
	// block. nil = not called.
	Streams func(open int)

	MaxRequests int // maximum number of concurrent requests; others get 503, or 429 for a client with many. If zero, 1024.
	MaxStreams  int // maximum number of concurrent streams; others get 503, or 429 for a client with many. If zero, 2048.
	MaxSearches int // maximum number of concurrent searches; others wait, and get 429 after 2 seconds. If zero, half the processors.
	MaxWork     int // maximum number of concurrent requests that a cache cannot serve; others wait. If zero, all processors but one.

	// Replicas are the processes that share the keys and the limits; each process enforces its
	// share of a limit. If nil, only this process.
	Replicas *replica.Replicas

	Now    func() time.Time // clock of the limits. If nil, time.Now.
	Logger *slog.Logger     // logs warnings. If nil, they are discarded.
}

// Guard decides which requests are allowed. Its methods are safe for concurrent
// use.
type Guard struct {
	bots     *bots.Table
	agents   Agents
	proxies  []netip.Prefix
	log      *slog.Logger
	keys     *keyCache // If nil, there are no keys.
	limits   *limits
	rate     *quota    // limit of content requests, or nil
	guesses  *quota    // limit of wrong keys
	botRules *botRules // If nil, every bot is allowed.
	pacing   *pacing   // If nil, there is no limit.
	searches *turns
	work     *turns // limits the concurrent requests that a cache cannot serve

	maxActive int64
	active    atomic.Int64
	crowd     *Slots // slots of the second half of MaxRequests
	streams   *Slots
	suspected atomic.Bool // set after an untrusted proxy was logged
}

// New returns a guard. An error wraps [millrace.ErrInvalid].
func New(o *Options) (*Guard, error) {
	g := &Guard{bots: o.Bots, agents: o.Agents, proxies: o.Proxies, log: o.Logger}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	g.maxActive, g.streams = int64(cmp.Or(o.MaxRequests, 1024)), NewSlots(o.MaxStreams, o.Streams)
	g.crowd = NewSlots(int(g.maxActive-g.maxActive/2), nil)
	processors := runtime.GOMAXPROCS(0)
	g.searches = newTurns(cmp.Or(o.MaxSearches, max(1, processors/2)))
	g.work = newTurns(cmp.Or(o.MaxWork, max(1, processors-1)))
	if o.Keys != nil {
		g.keys = newKeyCache(o.Keys)
		g.keys.clock = o.Replicas.Now
	}
	g.limits = newLimits()
	g.limits.replicas = o.Replicas.Count
	if o.Now != nil {
		g.limits.now = o.Now
	}
	g.guesses = newQuota(quotaGuesses, "keys", guessesPerSecond)
	g.guesses.burst = guessesAtOnce
	if o.Rate > 0 {
		g.rate = newQuota(quotaContent, "client", o.Rate)
	}
	g.pacing = newPacing(o.FilesRate, o.FilesRateTotal, g.maxActive)
	var err error
	g.botRules, err = newBotRules(o.Bots, o.Rules, o.Policy, quotaClasses)
	return g, err
}

// Run ends leases whose keys become invalid, and reloads the addresses of bots, until the context
// ends.
func (g *Guard) Run(ctx context.Context) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	if g.keys != nil {
		tasks.Go(func() { g.keys.run(ctx) })
	}
	if g.bots != nil {
		tasks.Go(func() { g.bots.Run(ctx) })
	}
}

// HasSignature reports whether a request has a signature to verify.
func (g *Guard) HasSignature(r *http.Request) bool {
	h := r.Header
	return g.agents != nil && (h["Signature-Agent"] != nil || h["Signature"] != nil || h["Signature-Input"] != nil)
}

// Request represents one request, with its sender, its permissions, and the record of its
// response.
type Request struct {
	Record
	guard *Guard
	r     *http.Request
	Owned bool // sent by the owner: exempt from the content limit, not recorded

	asked           bool // key and keyErr are set
	charged         bool // counted against the content limit
	key             *store.Key
	keyErr          error
	began           time.Time // start of the request's turn, or zero if it has none
	inside          bool      // the request holds a slot
	crowded         func()    // releases a slot of crowd, or nil
	located         bool      // address is set
	address         netip.Addr
	identified      bool // id is set
	id              Identity
	paced           bool // the body is sent by Send, within the limits of pacing
	remainingQuotas [2]remainingQuota
	counts          int // number of remainingQuotas in use
}

// Request returns a new request.
func (g *Guard) Request(r *http.Request) Request { return Request{guard: g, r: r} }

// SiteProtocol is the protocol of site-wide documents, such as robots.txt.
const SiteProtocol = "site"

// Subject identifies the content of a response.
type Subject struct {
	millrace.Subject
	Protocol string // the protocol of the response
	Found    bool   // the document exists; false = an error of the protocol
}

// Record describes a response, for events and metrics.
type Record struct {
	Subject    Subject
	Size       int64 // size of the uncompressed body, or 0 if unknown
	SizeKnown  bool  // Size and Rendered are set
	Rendered   bool  // the body was rendered for this request
	SitePage   bool  // a page or file of the site itself; Subject.Page is the path of a page
	Broken     bool  // the response was interrupted
	Unrecorded bool  // the response is not recorded
	// Listens reports that the request is a stream, whose duration is not recorded.
	Listens bool
}

// SetSubject sets the subject of the response. Call it before the response begins. An error
// response may change the subject.
func (q *Request) SetSubject(s Subject) {
	if q != nil {
		q.Subject, q.SitePage = s, false
	}
}

// SetSiteWide records a site-wide document and its size.
func (q *Request) SetSiteWide(size int) {
	q.SetSize(int64(size), true)
	q.Subject.Public, q.Subject.Found = q.Subject.Protocol == SiteProtocol, true
}

// SetSize records the size of the uncompressed body, and whether the body was rendered for this
// request. Size 0 means that the size is unknown or that there is no body. The size of an error is
// not recorded.
func (q *Request) SetSize(size int64, made bool) {
	if q != nil {
		q.Size, q.Rendered, q.SizeKnown = size, made, true
	}
}
