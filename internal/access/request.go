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
	"github.com/millrace/millrace/store"
)

// Options configure a [Guard]. The zero value limits nothing but how many
// requests are answered at once.
type Options struct {
	// Keys are those that open what needs one, such as the content of guarded
	// protocols; nil = no key is valid.
	Keys store.Keys
	// Rate is how many requests for content a second each client may make, by
	// its key or its address, with bursts of twice as many; others get 429.
	// 0 = no limit.
	Rate float64
	// Proxies are those whose X-Forwarded-For is believed.
	Proxies []netip.Prefix

	// Bots recognises machines; nil = none is recognised. Rules say what each
	// class of them gets, beside what Policy refuses; those of Agents, which may
	// be nil, are identified by their signatures.
	Bots   *bots.Table
	Rules  []Rule
	Agents Agents
	Policy *millrace.Policy
	// FilesRate is how many bytes of large documents a second each client is
	// sent, and FilesRateTotal all of them together; 0 = no limit.
	FilesRate, FilesRateTotal float64

	// Streams receives how many requests listen, whenever that changes. It must
	// not block. nil = not called.
	Streams func(open int)

	MaxRequests int // at once, others get 503; 0 = 1024
	MaxStreams  int // requests that listen, at once, others get 503, or 429 for a client with many; 0 = 2048
	MaxSearches int // at once, others wait and then get 429; 0 = twice the processors

	Now func() time.Time // the clock of the limits; nil = time.Now
	Log *slog.Logger     // receives warnings; nil = slog.Default()
}

// Guard decides which requests are answered. Its methods are safe for concurrent use.
type Guard struct {
	bots     *bots.Table
	agents   Agents
	proxies  []netip.Prefix
	log      *slog.Logger
	keys     *keyCache // nil = there are none
	limits   *limits
	rate     *quota    // of requests for content; nil = no limit
	guesses  *quota    // of keys that do not exist
	classes  *botRules // nil = every bot is answered
	pacing   *pacing   // nil = large documents go as fast as they can
	searches *turns

	maxActive int64
	active    atomic.Int64
	crowd     *Slots // the second half of those that are active
	streams   *Slots
	suspected atomic.Bool // a proxy that is not among proxies was logged
}

// New returns a guard. An error wraps [millrace.ErrInvalid].
func New(o *Options) (*Guard, error) {
	g := &Guard{bots: o.Bots, agents: o.Agents, proxies: o.Proxies, log: o.Log}
	if g.log == nil {
		g.log = slog.Default()
	}
	g.maxActive, g.streams = int64(cmp.Or(o.MaxRequests, 1024)), NewSlots(o.MaxStreams, o.Streams)
	g.crowd = NewSlots(int(g.maxActive-g.maxActive/2), nil)
	g.searches = newTurns(cmp.Or(o.MaxSearches, 2*runtime.GOMAXPROCS(0)))
	if o.Keys != nil {
		g.keys = newKeyCache(o.Keys)
	}
	g.limits = newLimits()
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
	g.classes, err = newBotRules(o.Bots, o.Rules, o.Policy, quotaClasses)
	return g, err
}

// Run keeps keys and the table of bots fresh until the context ends.
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

// Signed reports whether a request has a signature to verify.
func (g *Guard) Signed(r *http.Request) bool {
	h := r.Header
	return g.agents != nil && (h["Signature-Agent"] != nil || h["Signature"] != nil || h["Signature-Input"] != nil)
}

// Request is one request: who sends it, what it may have, and what its response
// turned out to be.
type Request struct {
	Record
	guard *Guard
	r     *http.Request
	Owned bool // the owner's own: no limit counts it, and nothing is recorded

	asked      bool // key and keyErr are known
	charged    bool // it has been counted
	key        *store.Key
	keyErr     error
	inside     bool   // it is counted among those that are answered
	crowded    func() // gives back a place among the last ones; nil = it has none
	located    bool   // address is known
	address    netip.Addr
	identified bool // id is known
	id         Identity
	paced      bool // the body is sent slowly
	standings  [2]standing
	counts     int // of standings
}

// Request returns a request that has just come.
func (g *Guard) Request(r *http.Request) Request { return Request{guard: g, r: r} }

// SiteProtocol is the protocol of documents that belong to no single one, such as
// robots.txt.
const SiteProtocol = "site"

// Subject is what a response is of.
type Subject struct {
	millrace.Subject
	Protocol string // whose it is
	Found    bool   // there is such a document; false = the response is an error of that protocol
}

// Record is what a response turned out to be, for events and metrics.
type Record struct {
	Of       Subject
	Size     int64 // of the body without coding; 0 = not known
	Sized    bool  // size and made are known
	Made     bool  // the body was made for this request
	SitePage bool  // it is a page or file of the site itself; of.Page is its identity, if it is a page
	Broken   bool  // the response broke off
	Quiet    bool  // it is no visit: nothing is recorded
	// listens: how long it took is how long the client has listened.
	Listens bool
}

// About records what the response is of, before it is begun. An error may
// change it.
func (q *Request) About(s Subject) {
	if q != nil {
		q.Of, q.SitePage = s, false
	}
}

// SiteWide records that the response was composed of what all protocols have, and its
// size.
func (q *Request) SiteWide(size int) {
	q.Sends(int64(size), true)
	q.Of.Public, q.Of.Found = q.Of.Protocol == SiteProtocol, true
}

// Sends records the size of the response's body without coding, 0 = not known
// or no body, and whether it was made for this request. Errors are not recorded.
func (q *Request) Sends(size int64, made bool) {
	if q != nil {
		q.Size, q.Made, q.Sized = size, made, true
	}
}
