package crawl

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/fetch"
)

// Options of [New]. The zero value works.
type Options struct {
	// KnownRefs returns what the sink remembers of this source, as
	// [millrace.SyncState.KnownRefs] does. nil = nothing: every run is a first
	// one.
	KnownRefs func(ctx context.Context, urls ...string) iter.Seq2[millrace.Ref, error]
	// Original returns what a page that the sink holds was made of, as
	// [millrace.OriginalStore] does. With it, pages that other rules or another
	// version of the extractor have made are made again without asking for
	// them. nil = nothing is kept.
	Original func(ctx context.Context, url string) ([]byte, error)
	// Rules correct the extraction; nil = none. Their fingerprint is a part of the
	// version of every page.
	Rules *extract.Rules
	// MaxPages is how many addresses one run asks for at most; 0 = 1,000,000.
	// What is left is asked for by the next run. Four times as many are
	// remembered; the others are found when the limit is raised.
	MaxPages int
	// MaxDepth is how many links a page may be away from the root or from a
	// list of the site; 0 = 30.
	MaxDepth int
	// MaxTime is how long one run asks for pages; 0 = until it is done.
	MaxTime time.Duration
	// Concurrency is how many pages are asked for at once; 0 = 8. How fast the
	// site is asked is the client's business.
	Concurrency int
	// IgnoreRobots crawls what robots.txt disallows. The client must ignore
	// it, too.
	IgnoreRobots bool
	// Wary is for a sink whose pages of the site others have given so far: a site
	// that answers every address with one page is not believed in the first run
	// either, in which it could be one that is made so.
	Wary bool
	// Progress is called often, from one goroutine, with how many of the known
	// addresses are done; nil if none.
	Progress func(done, known int)
	Now      func() time.Time // nil = the system's
	Logger   *slog.Logger     // nil = discard
}

// Crawl is a website as a [millrace.Source]. It may live for many runs, and
// then asks for a page the more rarely the more rarely it changes. Methods are
// safe for concurrent use; runs wait for each other.
type Crawl struct {
	client    *http.Client // follows redirects
	single    *http.Client // follows none
	scope     scope
	knownRefs func(ctx context.Context, urls ...string) iter.Seq2[millrace.Ref, error]
	now       func() time.Time
	o         Options
	log       *slog.Logger

	extractor int // its version
	ruling    *ruling

	heavy    chan struct{} // held by who works on a large page
	running  sync.Mutex
	table    table
	soft     atomic.Pointer[soft]
	home     atomic.Pointer[string] // what the root goes by on another host; nil = not known, "" = nothing
	next     atomic.Int64           // when another run is worth it, seconds since 1970
	complete atomic.Bool
}

// New returns a crawl of the site in the folder of root, such as
// https://example.com/ or https://example.com/blog/. A nil client is the
// guarded default. The error is [millrace.ErrInvalid]: root is no http or https
// URL.
func New(client *http.Client, root string, o *Options) (*Crawl, error) {
	if o == nil {
		o = &Options{}
	}
	s, err := newScope(root)
	if err != nil {
		return nil, fmt.Errorf("crawl: %w: %w", millrace.ErrInvalid, err)
	}
	if client == nil {
		client = fetch.New(nil).HTTP()
	}
	c := &Crawl{
		client: client, single: fetch.NoRedirects(client), scope: s, knownRefs: o.KnownRefs, now: o.Now, o: *o, log: o.Logger,
		heavy: make(chan struct{}, 1), extractor: extract.Version,
	}
	c.setRules(o.Rules)
	c.o.MaxPages = min(cmp.Or(max(o.MaxPages, 0), 1_000_000), 1<<28)
	c.o.MaxDepth = cmp.Or(max(o.MaxDepth, 0), 30)
	c.o.Concurrency = cmp.Or(max(o.Concurrency, 0), 8)
	if c.now == nil {
		c.now = time.Now
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Root returns the folder that the site lives in: canonical, with "/" at its
// end.
func (c *Crawl) Root() string { return c.scope.base }

// Next returns when another run is worth it: when the first page is due, and at
// most an hour after the last run, because the site's lists tell of changes
// that no page's history does. The zero time means now.
func (c *Crawl) Next() time.Time {
	if n := c.next.Load(); n != 0 {
		return time.Unix(n, 0)
	}
	return time.Time{}
}

// Complete reports whether the last run has seen the whole site: it has come
// to its end, no limit has cut it off or has kept an address out, in that run
// or in one before, and no page or list was unavailable. What robots.txt
// disallows is no part of the site.
func (c *Crawl) Complete() bool { return c.complete.Load() }

// Changes crawls the site: see the package's documentation for what it
// yields. The errors that end a run are [millrace.ErrUnavailable] for a site
// that cannot be had, has stopped answering or answers everything with the same
// page, [millrace.ErrForbidden],
// [millrace.ErrNotFound] and [millrace.ErrInvalid] for a root that is no page
// of a site, and the context's own. [millrace.ErrConflict]: the cursor is of
// another version of this package.
func (c *Crawl) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		c.running.Lock()
		defer c.running.Unlock()
		c.complete.Store(false)
		cur, ok := parseCursor(since)
		if !ok {
			yield(millrace.Change{}, fmt.Errorf("crawl %s: %w: the cursor is not of this version", c.scope.base, millrace.ErrConflict))
			return
		}
		r := newRun(c, cur, yield)
		err := r.do(ctx)
		if err == nil || r.stopped {
			return
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		yield(millrace.Change{}, fmt.Errorf("crawl %s: %w", c.scope.base, err))
	}
}

// Page asks for one page, by the same rules as a crawl. A redirect, or a page
// that goes by another address of the site, gives a page that says only what
// address that is (Known is 0).
//
// Errors: [millrace.ErrUnmodified], [millrace.ErrNotFound],
// [millrace.ErrForbidden] for what robots.txt disallows or needs a login,
// [millrace.ErrInvalid] for what is no HTML or has no content,
// [millrace.ErrTooLarge], [millrace.ErrUnavailable].
func (c *Crawl) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	p, err := c.page(ctx, have)
	if err != nil {
		return nil, fmt.Errorf("page %s: %w", have.URL, err)
	}
	return p, nil
}

func (c *Crawl) page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	if _, v := c.scope.clean(have.URL); v == outside {
		return nil, millrace.Coded("outside", fmt.Errorf("%w: it is not in %s", millrace.ErrNotFound, c.scope.base))
	}
	rules := c.ruling
	t := task{url: have.URL, knownVersion: have.Version, version: parseVersion(have.Version, rules.by)}
	t.depth = t.version.depth
	var buf bytes.Buffer
	res := c.visit(ctx, rules, t, &buf)
	switch res.outcome {
	case unchanged:
		return nil, millrace.ErrUnmodified
	case page:
	case moved:
		return c.muted(res, res.to)
	case nothing:
		return nil, fmt.Errorf("%w: it is no HTML", millrace.Coded("no-html", millrace.ErrInvalid))
	default:
		return nil, res.err
	}
	if s := c.soft.Load(); s.matches(res) && t.url != c.scope.base {
		return nil, errSoft
	}
	if res.canonical != "" {
		other := c.visit(ctx, rules, task{url: res.canonical}, &buf)
		if other.outcome == page && similar(other.sketch, res.sketch) >= notWhollyOther {
			return c.muted(res, res.canonical)
		}
	}
	if res.made.detailed() && res.made.String() == have.Version {
		return nil, millrace.ErrUnmodified
	}
	res.page.Version = res.made.String()
	return res.page, nil
}

// muted returns the page of a name that means another one.
func (c *Crawl) muted(res *result, to string) (*millrace.Page, error) {
	u, v := c.scope.clean(to)
	switch {
	case v != inside:
		return nil, millrace.Coded("leads-away", fmt.Errorf("%w: it leads to %s, which is no page of this site", millrace.ErrNotFound, to))
	case u == res.url:
		return nil, fmt.Errorf("%w: %w", millrace.ErrNotFound, errLoop)
	case isLogin(u) && !isLogin(res.url):
		return nil, errLogin
	}
	return mute(u, &version{kind: isMute, by: res.rules.by, day: today(c.now()), target: key(u)}), nil
}

// Why an address has no page.
var (
	errLogin = fmt.Errorf("%w: it wants a login", millrace.Coded("login", millrace.ErrForbidden))
	errSoft  = fmt.Errorf("%w: it looks like the page that the site gives for an address that cannot exist", millrace.Coded("soft-404", millrace.ErrNotFound))
	errLoop  = millrace.Coded("redirect-loop", errors.New("it redirects to itself"))
)

// today counts the days since 1970.
func today(t time.Time) int64 { return t.Unix() / (24 * 3600) }
