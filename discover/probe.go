package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/weblink"
	"github.com/millrace/millrace/protocol"
)

// prober is one probe of a site.
type prober struct {
	Options
	client *http.Client // sends requests through memo
	memo   *memo
	root   *url.URL
	robots *fetch.Robots
	home   *document // document of the root; nil if homeErr is set
	site   *SiteReport

	homeErr error

	mu    sync.Mutex
	terms []protocol.Terms
}

// Probe finds the ways to read the site of a URL with few small requests. It fetches robots.txt,
// the root, documents of each protocol, the policy documents, sitemaps and up to three pages. If
// client is nil, Probe uses the guarded default client. Nil options mean the zero value.
//
// The result includes failed ways, with the reason. The error is not nil if the whole site failed:
// the URL is invalid or not allowed, the network or server does not respond, or robots.txt cannot
// be fetched.
func Probe(ctx context.Context, client *http.Client, site string, o *Options) (*SiteReport, error) {
	l := &prober{}
	if o != nil {
		l.Options = *o
	}
	l.MaxRequests, l.MaxBytes = cmp.Or(l.MaxRequests, 60), cmp.Or(l.MaxBytes, 16<<20)
	l.Purpose = cmp.Or(l.Purpose, millrace.AIInput)
	if l.Now == nil {
		l.Now = time.Now
	}
	if l.Logger == nil {
		l.Logger = slog.New(slog.DiscardHandler)
	}
	at, err := canon.URL(site)
	if err != nil {
		return nil, fmt.Errorf("discover: %w: %w", err, millrace.ErrInvalid)
	}
	if l.root, err = url.Parse(canon.Origin(at) + "/"); err != nil {
		return nil, fmt.Errorf("discover: %w: %w", err, millrace.ErrInvalid)
	}
	l.site = &SiteReport{URL: l.root.String(), Time: l.Now().UTC().Truncate(time.Second), Ways: []Way{}}
	l.site.Measured = l.site.Time
	if client == nil {
		client = fetch.New(nil).HTTP()
	}
	ignores := fetch.IgnoresRobots(client)
	ctx, cancel := context.WithCancel(fetch.WithoutDictionaries(ctx))
	defer cancel()
	l.memo = &memo{
		next: client.Transport, ctx: ctx, answers: map[string]*answer{}, dictionaries: map[string]bool{},
		maxRequests: l.MaxRequests, maxBytes: l.MaxBytes, maxBody: l.MaxBytes / 2, progress: l.Progress,
	}
	if l.memo.next == nil {
		l.memo.next = http.DefaultTransport
	}
	if !ignores && !l.IgnorePolicy {
		l.memo.obey = l.obey
	}
	again := *client
	again.Transport = l.memo
	l.client = &again
	defer func() {
		cancel()
		l.memo.close()
	}()
	if err := l.all(ctx); err != nil {
		return nil, fmt.Errorf("discover %s: %w", l.site.URL, err)
	}
	l.site.Spent = l.memo.spent()
	for i := range l.site.Ways {
		if w := &l.site.Ways[i]; w.Offer != nil {
			w.SendsChanges = w.SendsChanges || l.memo.dictionaries[w.Offer.Entry]
		}
	}
	if l.memo.over != nil {
		l.site.Inconclusive = cmp.Or(l.site.Inconclusive, l.memo.over.Error())
	}
	return l.site, nil
}

// all probes the parts one after the other. Each part has its own time limit, so a slow part leaves
// time for the others.
func (l *prober) all(outer context.Context) error {
	start := time.Now()
	within := func(d time.Duration) (context.Context, context.CancelFunc) {
		return context.WithDeadlineCause(outer, start.Add(d), errLate)
	}
	ctx, cancel := within(cmp.Or(l.Timeout, time.Minute))
	defer cancel()
	var err error
	if l.robots, err = fetch.RobotsOf(ctx, l.client, l.root); err != nil {
		return ended(ctx, err)
	}
	limit := cmp.Or(l.Timeout, time.Minute+30*l.robots.CrawlDelay())
	l.readRobots()
	ctx, cancel = within(limit / 4)
	defer cancel()
	if l.Quick {
		if l.probeQuick(ctx) {
			return nil
		}
		ctx, cancel = within(limit / 2)
		defer cancel()
	}
	if err := l.readHome(ctx); err != nil {
		return ended(outer, err)
	}
	if l.late(ctx); errors.Is(l.homeErr, millrace.ErrTooLarge) { // the links of the root are unknown
		l.site.Inconclusive = l.homeErr.Error()
	}
	ctx, cancel = within(3 * limit / 4)
	defer cancel()
	unread := make(chan error, 1)
	if l.PolicyKnown {
		unread <- nil
	} else {
		go func() { unread <- l.readTerms(ctx) }()
	}
	protocols := l.probeProtocols(ctx)
	refusal := l.refusal(<-unread)
	l.late(ctx)
	ctx, cancel = within(limit)
	defer cancel()
	web := l.probeWeb(ctx, protocols)
	l.late(ctx)
	if outer.Err() != nil {
		return context.Cause(outer)
	}
	for i, proto := range l.Protocols {
		if w := protocols[i]; w == nil {
			l.site.Absent = append(l.site.Absent, proto.Name)
		} else {
			l.site.Ways = append(l.site.Ways, *w)
		}
	}
	l.site.Ways = append(l.site.Ways, web)
	if errors.Is(l.homeErr, millrace.ErrUnavailable) && !slices.ContainsFunc(l.site.Ways, func(w Way) bool { return w.Offer != nil }) {
		return l.homeErr
	}
	for i := range l.site.Ways {
		if w := &l.site.Ways[i]; refusal != "" && w.Allowed {
			w.Allowed, w.Reason, w.Code = l.IgnorePolicy, cmp.Or(w.Reason, refusal), cmp.Or(w.Code, "policy-refuses")
		}
	}
	return nil
}

// errLate is the cancellation cause when a part of the probe reaches its time limit.
var errLate = fmt.Errorf("no response within the timeout of the probe: %w", millrace.Coded("probe-timeout", millrace.ErrUnavailable))

// late records in the report if a part of the probe has reached its time limit.
func (l *prober) late(ctx context.Context) {
	if errors.Is(context.Cause(ctx), errLate) {
		l.site.Inconclusive = errLate.Error()
	}
}

// ended returns the cause if the context has ended, and err otherwise.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// obey returns an error for URLs of the site that robots.txt disallows. A client may not check
// robots.txt itself.
func (l *prober) obey(req *http.Request) error {
	u := req.URL
	if l.robots == nil || fetch.Permitted(req.Context(), u) || canon.Origin(u.String()) != canon.Origin(l.site.URL) {
		return nil
	}
	line, rule := l.robots.Rule(u.RequestURI())
	if line == 0 {
		return nil
	}
	return &fetch.RobotsError{URL: u.Redacted(), Robots: l.site.URL + "robots.txt", Line: line, Rule: rule}
}

// disallows reports whether the probe obeys robots.txt, and robots.txt disallows a page of the
// site.
func (l *prober) disallows(page string) bool {
	u, err := url.Parse(page)
	return err == nil && l.memo.obey != nil && !l.robots.Allowed(u.RequestURI())
}

// readRobots records the rules of robots.txt.
func (l *prober) readRobots() {
	r := &l.site.Robots
	r.Delay = l.robots.CrawlDelay()
	if line, rule := l.robots.Rule("/"); line > 0 {
		r.RootRule = fmt.Sprintf("line %d: %s", line, rule)
	}
	for _, rec := range l.robots.Records() {
		switch rec.Name {
		case "content-signal", "content-usage":
			r.Statements = append(r.Statements, RobotsStatement{rec.Name, rec.Value, rec.Line})
		case "license":
			l.license(rec.Value, "robots.txt")
		}
	}
}

func (l *prober) license(ref, from string) {
	u, err := canon.Resolve(l.root, ref)
	if err != nil {
		return
	}
	for _, have := range l.site.Licenses {
		if have.URL == u {
			return
		}
	}
	l.site.Licenses = append(l.site.Licenses, License{u, from})
}

// readHome fetches the root. It fails if the site does not respond.
func (l *prober) readHome(ctx context.Context) error {
	l.home, l.homeErr = l.get(ctx, l.root.String())
	if l.homeErr != nil && ctx.Err() != nil {
		l.homeErr = context.Cause(ctx)
		if errors.Is(l.homeErr, errLate) {
			return nil // the site exists but is slow
		}
	}
	switch status, answered := errors.AsType[*fetch.StatusError](l.homeErr); {
	case l.homeErr == nil:
	case answered:
		l.moved(status.URL)
		return nil // protocols may use other URLs than the root
	case errors.Is(l.homeErr, millrace.ErrInvalid), errors.Is(l.homeErr, millrace.ErrTooLarge), refusedByRobots(l.homeErr):
		return nil
	default:
		return l.homeErr
	}
	l.moved(l.home.url.String())
	for _, link := range weblink.Header(l.home.header, l.home.url) {
		if link.Is("license", "") {
			l.license(link.URL, "Link")
		}
	}
	if l.home.html {
		for _, link := range l.home.head().Links {
			if link.Is("license", "") {
				l.license(link.URL, "HTML")
			}
		}
	}
	return nil
}

// moved records the URL to which the root redirects if it is on another origin.
func (l *prober) moved(to string) {
	if canon.Origin(to) != canon.Origin(l.site.URL) {
		l.site.Moved = to
	}
}

func refusedByRobots(err error) bool {
	_, ok := errors.AsType[*fetch.RobotsError](err)
	return ok
}

// probeProtocols returns one way per protocol, or nil for a protocol that the site does not have.
func (l *prober) probeProtocols(ctx context.Context) []*Way {
	ways := make([]*Way, len(l.Protocols))
	var all sync.WaitGroup
	for i, proto := range l.Protocols {
		if proto.Probe == nil {
			continue
		}
		all.Go(func() {
			if ways[i] = l.confirm(ctx, proto.Name); ways[i] != nil {
				return
			}
			offer, err := proto.Probe(ctx, l.client, l.site.URL, l.readerOptions())
			ways[i] = l.way(ctx, proto, offer, err)
		})
	}
	all.Wait()
	return ways
}

// way returns the way for the result of a protocol's probe, or nil if the probe found nothing.
func (l *prober) way(ctx context.Context, proto protocol.Protocol, offer *protocol.Offer, err error) *Way {
	w := &Way{Protocol: proto.Name, Label: proto.Label, Offer: offer, Allowed: true}
	switch {
	case err == nil:
		return w
	case errors.Is(err, millrace.ErrNotFound):
		return nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, millrace.ErrForbidden):
		w.Allowed = false
	}
	w.Unavailable = errors.Is(err, millrace.ErrUnavailable)
	w.Offer, w.Reason, w.Code = nil, reason(err, proto.Name), millrace.ErrorCode(err)
	l.Logger.Debug("could not probe protocol", "protocol", proto.Name, "err", err)
	return w
}

// reason returns an error as one line, without the protocol's name as a prefix.
func reason(err error, name string) string {
	return strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), name+": ")
}

func (l *prober) readerOptions() *protocol.ReaderOptions {
	var o protocol.ReaderOptions
	if l.Reader != nil {
		o = *l.Reader
	}
	hear := o.Policy
	o.Policy = func(t protocol.Terms) error {
		l.mu.Lock()
		if !slices.ContainsFunc(l.terms, func(have protocol.Terms) bool { return have.URL == t.URL }) {
			l.terms = append(l.terms, t)
		}
		l.mu.Unlock()
		if hear != nil {
			return hear(t)
		}
		return nil
	}
	return &o
}

// readTerms fetches the usage policy documents. It returns the error of the first document that
// cannot be read.
func (l *prober) readTerms(ctx context.Context) (first error) {
	for _, proto := range l.Protocols {
		src, ok := proto.NewReader(l.client, l.site.URL, l.readerOptions()).(protocol.PolicyReader)
		if !ok {
			continue
		}
		if _, err := src.Policy(ctx); err != nil && !errors.Is(err, millrace.ErrNotFound) {
			first = cmp.Or(first, err)
		}
	}
	return first
}

// refusal returns the reason why the policies do not allow the purpose, or "" if they do. unread is
// the error of a policy document that could not be read.
func (l *prober) refusal(unread error) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.site.Terms = slices.Clone(l.terms)
	for _, t := range l.terms {
		if t.Policy.Refuses(l.Purpose) {
			return fmt.Sprintf("%s does not allow %s (%s)", t.URL, l.Purpose, cmp.Or(t.Names.Purposes[l.Purpose], string(l.Purpose)))
		}
	}
	if unread != nil {
		return "cannot read the site's usage policy: " + reason(unread, "")
	}
	return ""
}
