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

// Options are the options of [New]. The zero value is valid.
type Options struct {
	// KnownRefs returns the refs of this source that the sink has stored, like
	// [millrace.SyncState.KnownRefs]. If KnownRefs is nil, every run is a first run.
	KnownRefs func(ctx context.Context, urls ...string) iter.Seq2[millrace.Ref, error]
	// Original returns the stored original of a page, like [millrace.OriginalStore]. If a page was
	// extracted with other rules or by another version of the extractor, the crawl extracts it
	// again from its original, without a request. If Original is nil, no originals are stored.
	Original func(ctx context.Context, url string) ([]byte, error)
	// Rules correct the extraction. They may be nil. The fingerprint of the rules is part of the
	// version of every page.
	Rules *extract.Rules
	// MaxPages is the maximum number of addresses that one run fetches. If it is zero, the maximum
	// is 1,000,000. The next run fetches the others. A run stores up to four times as many
	// addresses, and finds the remaining ones again when the limit is raised.
	MaxPages int
	// MaxDepth is the maximum number of links from the root, or from a list of the site, to a page.
	// If it is zero, the maximum is 30.
	MaxDepth int
	// MaxTime is the time after which a run stops fetching pages. If it is zero, the time is
	// unlimited.
	MaxTime time.Duration
	// Concurrency is the number of concurrent fetches. If it is zero, the number is 8. The client
	// limits the request rate.
	Concurrency int
	// If IgnoreRobots is set, the run also crawls addresses that robots.txt disallows. The client
	// must ignore robots.txt, too.
	IgnoreRobots bool
	// RejectUniform makes even the first run fail if the site returns the same page for every
	// address. It is for a sink whose pages of this site came from another source before.
	RejectUniform bool
	// Progress is called often, from one goroutine, with the number of processed addresses and the
	// number of known addresses. It may be nil.
	Progress func(done, known int)
	Now      func() time.Time // If nil, time.Now.
	Logger   *slog.Logger     // If nil, nothing is logged.
}

// Crawl is a website as a [millrace.Source]. A Crawl can run many times. Pages that rarely change
// are fetched less often. Its methods are safe for concurrent use, but only one run is active at a
// time; others wait.
type Crawl struct {
	client    *http.Client // follows redirects
	single    *http.Client // follows no redirects
	scope     scope
	knownRefs func(ctx context.Context, urls ...string) iter.Seq2[millrace.Ref, error]
	now       func() time.Time
	o         Options
	log       *slog.Logger

	extractor int // version of the extractor
	ruling    *extractionRules

	heavy    chan struct{} // a token that is held while a large page is processed
	running  sync.Mutex
	table    table
	soft     atomic.Pointer[soft]
	names    extract.SiteNames
	home     atomic.Pointer[string] // canonical URL of the root, if it is on another host, "" if not, or nil if unknown
	next     atomic.Int64           // time of the next run, in seconds since 1970
	complete atomic.Bool
}

// New returns a crawl of the site in the folder of root, such as https://example.com/ or
// https://example.com/blog/. If client is nil, New uses the guarded default client. If root is not
// an http or https URL, New returns [millrace.ErrInvalid].
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

// Root returns the canonical URL of the site's folder. It ends with "/".
func (c *Crawl) Root() string { return c.scope.base }

// Next returns the time at which the next run is useful: when the first page is due, but at most
// one hour after the last run, because some changes are only visible in the site's lists. The zero
// time means now.
func (c *Crawl) Next() time.Time {
	if n := c.next.Load(); n != 0 {
		return time.Unix(n, 0)
	}
	return time.Time{}
}

// SiteTitle returns the name of the site according to the pages that were read. It returns "" if
// the name is unknown.
func (c *Crawl) SiteTitle(context.Context) (string, error) { return c.names.Name(), nil }

// Complete reports whether the last run covered the whole site. The run must have reached its end
// without an unavailable page or list, and no limit may have excluded an address in this run or an
// earlier one. Addresses that robots.txt disallows do not belong to the site.
func (c *Crawl) Complete() bool { return c.complete.Load() }

// Changes crawls the site. The package documentation describes the stream.
//
// These errors end a run:
//
//   - [millrace.ErrUnavailable]: the site is unreachable, has stopped responding, or returns the
//     same page for every address
//   - [millrace.ErrForbidden], [millrace.ErrNotFound], [millrace.ErrInvalid]: the root is not a
//     page of a site
//   - [millrace.ErrConflict]: the cursor belongs to another version of this package
//   - the error of the context
func (c *Crawl) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		c.running.Lock()
		defer c.running.Unlock()
		c.complete.Store(false)
		cur, ok := parseCursor(since)
		if !ok {
			yield(millrace.Change{}, fmt.Errorf("crawl %s: %w: the cursor belongs to another version", c.scope.base, millrace.ErrConflict))
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

// Page fetches one page by the same rules as a crawl. If the response is a redirect, or the
// canonical address of the page is another one of the site, Page returns an alias: a page that
// contains only that address (Known is 0).
//
// Page returns [millrace.ErrUnmodified], [millrace.ErrNotFound], [millrace.ErrTooLarge] or
// [millrace.ErrUnavailable]. It returns [millrace.ErrForbidden] if robots.txt disallows the address
// or the page requires a login, and [millrace.ErrInvalid] if the response is not HTML or has no
// content.
func (c *Crawl) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	p, err := c.page(ctx, have)
	if err != nil {
		return nil, fmt.Errorf("page %s: %w", have.URL, err)
	}
	return p, nil
}

func (c *Crawl) page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	if _, v := c.scope.clean(have.URL); v == outside {
		return nil, millrace.Coded("outside", fmt.Errorf("%w: not in %s", millrace.ErrNotFound, c.scope.base))
	}
	rules := c.ruling
	t := task{url: have.URL, knownVersion: have.Version, version: parseVersion(have.Version, rules.by)}
	t.depth, t.hint = t.version.depth, t.version.hint
	var buf bytes.Buffer
	res := c.visit(ctx, rules, t, &buf)
	switch res.outcome {
	case unchanged:
		return nil, millrace.ErrUnmodified
	case page:
	case moved:
		return c.aliasTo(res, res.to)
	case notPage:
		if res.err != nil {
			return nil, fmt.Errorf("%w: %w", millrace.ErrInvalid, res.err)
		}
		return nil, fmt.Errorf("%w: not HTML", millrace.Coded("no-html", millrace.ErrInvalid))
	default:
		return nil, res.err
	}
	if s := c.soft.Load(); s.matches(res) && t.url != c.scope.base {
		return nil, errSoft
	}
	if res.canonical != "" {
		other := c.visit(ctx, rules, task{url: res.canonical}, &buf)
		if other.outcome == page && similar(other.sketch, res.sketch) >= notWhollyOther {
			return c.aliasTo(res, res.canonical)
		}
	}
	if res.made.detailed() && res.made.String() == have.Version {
		return nil, millrace.ErrUnmodified
	}
	res.page.Version = res.made.String()
	return res.page, nil
}

// aliasTo returns an alias for the address to. The fetched address redirects to it, or names it as
// canonical.
func (c *Crawl) aliasTo(res *result, to string) (*millrace.Page, error) {
	u, v := c.scope.clean(to)
	switch {
	case v != inside:
		return nil, millrace.Coded("redirect-outside", fmt.Errorf("%w: redirects to %s, which is not a page of this site", millrace.ErrNotFound, to))
	case u == res.url:
		return nil, fmt.Errorf("%w: %w", millrace.ErrNotFound, errLoop)
	case isLogin(u) && !isLogin(res.url):
		return nil, errLogin
	}
	return aliasVersion(u, &version{kind: isAlias, by: res.rules.by, day: today(c.now()), target: key(u)}), nil
}

// Reasons why an address does not have a page.
var (
	errLogin = fmt.Errorf("%w: login required", millrace.Coded("login", millrace.ErrForbidden))
	errSoft  = fmt.Errorf("%w: resembles the response to an address that does not exist", millrace.Coded("soft-404", millrace.ErrNotFound))
	errLoop  = millrace.Coded("redirect-loop", errors.New("redirects to itself"))
)

// today returns the number of days from 1970 to t.
func today(t time.Time) int64 { return t.Unix() / (24 * 3600) }
