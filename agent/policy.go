package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/store"
)

// policyAge is how long a stored policy of a site is used without reading the policy again.
const policyAge = 24 * time.Hour

// forbiddenError reports a purpose that a site does not allow.
type forbiddenError struct {
	purpose          millrace.Purpose
	document, member string
	contact          string // address for permission, or "" if unknown
}

// Error names the document, its member, and the options that help.
func (e *forbiddenError) Error() string {
	leave := ""
	if e.contact != "" {
		leave = "ask " + e.contact + " for permission, or "
	}
	member := e.member
	if member == "" {
		member = string(e.purpose)
	}
	return fmt.Sprintf("%s does not allow use of the content for %s (%s is false); %suse another Options.Purpose; Options.IgnorePolicy ignores the policy",
		e.document, e.purpose, member, leave)
}

// ErrorCode returns "policy-refuses".
func (e *forbiddenError) ErrorCode() string { return "policy-refuses" }

// Unwrap returns [millrace.ErrForbidden].
func (e *forbiddenError) Unwrap() error { return millrace.ErrForbidden }

// policyEnforcer enforces a site's policy during one pull. It is safe for concurrent use.
type policyEnforcer struct {
	purpose millrace.Purpose
	state   store.State
	root    *url.URL
	client  *fetch.Client
	stop    context.CancelCauseFunc // ends the pull
	log     *slog.Logger
	now     func() time.Time

	mu      sync.Mutex
	terms   []protocol.Terms
	changed bool // whether terms is newer than the record in the store
	unclear bool // whether a document could not be read, so the next pull reads all of them again
	quota   *quota
	counts  func(context.Context) (store.Store, error) // see Options.RequestCounts
	counted store.Store                                // store that counts has opened, or nil
	refusal error                                      // error that ends the pull

	noting  sync.Mutex                 // protects the notes of the report
	note    func(protocol.Note)        // adds a note to the report
	options protocol.ReaderOptions     // options of all readers
	readers map[string]millrace.Source // readers by protocol name; a reader caches the policy that it has read
}

// enforcer returns the policyEnforcer of one pull. The function stop ends the pull.
func (a *Agent) enforcer(client *fetch.Client, root *url.URL, r *Report, stop context.CancelCauseFunc) *policyEnforcer {
	g := &policyEnforcer{
		purpose: a.o.Purpose, state: a.store.State(), root: root, client: client, stop: stop, log: a.o.Logger, now: time.Now, counts: a.o.RequestCounts,
		readers: make(map[string]millrace.Source),
	}
	g.note = func(n protocol.Note) {
		g.noting.Lock()
		defer g.noting.Unlock()
		g.log.Debug("violation", "rule", n.Rule, "url", n.URL, "text", n.Text)
		if len(r.Notes) < maxNotes {
			r.Notes = append(r.Notes, Note(n))
		}
	}
	g.options = protocol.ReaderOptions{Key: a.o.Key, MaxList: a.o.MaxList, Quota: maxDecoded * a.o.MaxBytes, CheckPageLinks: a.o.CheckPageLinks, Note: g.note}
	if !a.o.IgnorePolicy {
		g.options.Policy = g.add
	}
	return g
}

// reader returns the reader of a protocol. Each pull has one reader per protocol.
func (g *policyEnforcer) reader(proto protocol.Protocol) millrace.Source {
	r, ok := g.readers[proto.Name]
	if !ok {
		r = proto.NewReader(g.client.HTTP(), g.root.String(), &g.options)
		g.readers[proto.Name] = r
	}
	return r
}

// open reads the site's policy before anything else, unless the stored copy is recent enough.
// It returns an error if the policy does not allow the purpose. If the policy cannot be read,
// open uses an older copy, or else the strictest rules. If the site is down, open returns nil,
// and the ways report the error.
func (g *policyEnforcer) open(ctx context.Context, via string) error {
	was, err := g.load(ctx)
	if err != nil {
		return err
	}
	// A stored policy that forbids the purpose is fetched again, because it may have changed.
	if age := g.now().Sub(was.Time); age >= 0 && age < policyAge && g.forbidden(was.Terms) == nil {
		return g.applyStored(was.Terms)
	}
	robots, err := g.client.Robots(ctx, g.root)
	if err != nil {
		return ctx.Err()
	}
	for _, proto := range all.Protocols() {
		named := func(sitemap string) bool { return strings.Contains(sitemap, proto.Sitemap) }
		if proto.Sitemap != "" && via != proto.Name && !slices.ContainsFunc(robots.Sitemaps(), named) {
			continue
		}
		src, ok := g.reader(proto).(protocol.PolicyReader)
		if !ok {
			continue
		}
		_, err := src.Policy(ctx)
		_, answered := errors.AsType[*fetch.StatusError](err)
		switch {
		case err == nil, errors.Is(err, millrace.ErrNotFound):
			continue
		case g.ended() != nil:
			return g.ended()
		case ctx.Err() != nil:
			return err
		case !was.Time.IsZero(): // use the stored copy
		case errors.Is(err, millrace.ErrInvalid), errors.Is(err, millrace.ErrTooLarge), answered:
			if err := g.strict(err); err != nil {
				return err
			}
			continue
		default:
			// The site is down. If it recovers during the pull, nothing may be read without its
			// policy.
			g.client.SetLimit(g.root.Hostname(), fetch.Limit{Take: func(context.Context) error { return innermost(err) }})
			return nil
		}
		g.log.Warn("using cached site policy", "date", was.Time.Format(time.RFC3339), "err", err)
		if err := g.forbidden(was.Terms); err != nil {
			return err
		}
		return g.applyStored(was.Terms)
	}
	g.mu.Lock()
	others := slices.Clone(g.terms)
	g.mu.Unlock()
	var signals []string
	for _, r := range robots.Records() {
		if r.Name == "content-signal" || r.Name == "content-usage" {
			signals = append(signals, r.Value)
		}
	}
	// The other documents take precedence: robots.txt may be a day old and is less specific.
	t := protocol.Terms{URL: g.root.Scheme + "://" + g.root.Host + "/robots.txt", Policy: &millrace.Policy{Purposes: policy.ReadSignals(signals...)}, Names: policy.RobotsNames}
	for _, o := range others {
		for purpose := range o.Policy.Purposes {
			delete(t.Policy.Purposes, purpose)
		}
	}
	if len(t.Policy.Purposes) > 0 {
		return g.add(t)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changed = true
	return nil
}

// strict applies the strictest rules that allow a pull, because a policy cannot be read: a long
// gap between requests, and all requirements.
func (g *policyEnforcer) strict(err error) error {
	at := g.root.String()
	if broken, ok := errors.AsType[*millrace.FormatError](err); ok && broken.URL != "" {
		at = broken.URL
	}
	g.log.Warn("site policy cannot be read; using the strictest rules", "gap", longGap, "err", err)
	g.note(protocol.Note{Rule: "reader/policy", URL: at, Text: "the policy cannot be read, and the strictest rules apply: " + err.Error()})
	g.mu.Lock()
	g.unclear = true
	g.mu.Unlock()
	return g.add(protocol.Terms{URL: at, Policy: &millrace.Policy{
		Requirements: millrace.Requirements{Attribution: true, LinkBack: true, Notice: true},
		Rate:         millrace.RateHints{PerSecond: 1 / longGap.Seconds()},
	}})
}

// innermost returns the innermost error that is [millrace.ErrUnavailable].
func innermost(err error) error {
	for inner := errors.Unwrap(err); inner != nil && errors.Is(inner, millrace.ErrUnavailable); inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

// forbidden returns an error for the first document that does not allow the purpose. A purpose
// that no document mentions is allowed.
func (g *policyEnforcer) forbidden(terms []protocol.Terms) error {
	for _, t := range terms {
		if t.Policy.Refuses(g.purpose) {
			return &forbiddenError{g.purpose, t.URL, t.Names.Purposes[g.purpose], t.Policy.Contact}
		}
	}
	return nil
}

// applyStored applies terms from the store, so they need not be stored again.
func (g *policyEnforcer) applyStored(terms []protocol.Terms) error {
	for _, t := range terms {
		if err := g.add(t); err != nil {
			return err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changed = false
	return nil
}

// add applies the terms of a document, and replaces earlier terms of the same document. If they do
// not allow the purpose, add ends the pull and returns an error.
func (g *policyEnforcer) add(t protocol.Terms) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.terms = slices.DeleteFunc(g.terms, func(old protocol.Terms) bool { return old.URL == t.URL })
	g.terms = append(g.terms, t)
	g.changed = true
	if err := g.forbidden([]protocol.Terms{t}); err != nil {
		g.end(err)
		return err
	}
	return g.limit()
}

// end ends the pull. The caller holds mu.
func (g *policyEnforcer) end(err error) {
	if g.refusal == nil {
		g.refusal = err
		g.stop(err)
	}
}

// ended returns the error that ended the pull, or nil.
func (g *policyEnforcer) ended() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refusal
}

// Gaps between requests of at least longGap are logged as warnings. longGap is also the gap if a
// policy cannot be read. maxGap is the longest gap or Crawl-delay that is obeyed.
const (
	longGap = 10 * time.Second
	maxGap  = time.Minute
)

// limit applies the lowest request rates of all terms. The caller holds mu.
func (g *policyEnforcer) limit() error {
	var l fetch.Limit
	day, second := protocol.Terms{}, protocol.Terms{}
	for _, t := range g.terms {
		if n := t.Policy.Rate.PerSecond; n > 0 && (second.Policy == nil || n < second.Policy.Rate.PerSecond) {
			second, l.Gap = t, time.Duration(min(float64(time.Second)/n, float64(maxGap)))
		}
		if n := t.Policy.Rate.PerDay; n > 0 && (day.Policy == nil || n < day.Policy.Rate.PerDay) {
			day = t
		}
	}
	if second.Policy != nil {
		level := slog.LevelDebug
		if l.Gap >= longGap {
			level = slog.LevelWarn
		}
		g.log.Log(context.Background(), level, "site policy sets a minimum time between requests",
			"gap", l.Gap, "url", second.URL, "member", second.Names.PerSecond)
	}
	if day.Policy != nil {
		if g.quota == nil {
			counts := g.state
			if g.counts != nil {
				if st, err := g.counts(context.Background()); err != nil {
					g.log.Warn("could not open the shared request counts; counting requests for this mirror only", "err", err)
				} else {
					g.counted, counts = st, st.State()
				}
			}
			g.quota = &quota{requests: requestsTo(counts, g.root.Host), now: g.now, spent: int(g.client.Stats().Requests)}
		}
		g.quota.setLimit(day)
		l.Take = func(ctx context.Context) error {
			if err := g.ended(); err != nil {
				return err
			}
			err := g.quota.take(ctx)
			if _, over := errors.AsType[*quotaError](err); over {
				// Do not cancel the pull: the sent requests count, so read their responses. The pull
				// ends because it sends no more requests.
				g.mu.Lock()
				defer g.mu.Unlock()
				g.refusal = cmp.Or(g.refusal, err)
			}
			return err
		}
	}
	g.client.SetLimit(g.root.Hostname(), l)
	return nil
}

// load returns the stored terms. If they are absent or invalid, their time is zero.
func (g *policyEnforcer) load(ctx context.Context) (ingest.TermsRecord, error) {
	r, err := ingest.LoadTerms(ctx, g.state, g.root)
	if errors.Is(err, millrace.ErrInvalid) {
		g.log.Warn("stored site policy is invalid; ignoring it", "err", err)
		return ingest.TermsRecord{}, nil
	}
	return r, err
}

// close gives back the reserved requests that were not sent, stores the terms, and fills the report.
func (g *policyEnforcer) close(ctx context.Context, r *Report) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.quota != nil {
		if err := g.quota.close(ctx); err != nil {
			g.log.Warn("could not return unused requests", "err", err)
		}
	}
	if g.counted != nil {
		if err := g.counted.Close(); err != nil {
			g.log.Warn("could not close the shared request counts", "err", err)
		}
	}
	if over, ok := errors.AsType[*quotaError](g.refusal); ok {
		r.ContinueAfter = &over.again
	}
	r.Policy = PolicyOf(g.terms)
	if _, no := errors.AsType[*forbiddenError](g.refusal); no {
		return // do not cache a policy that forbids the purpose
	}
	err := g.remember(ctx)
	if err != nil {
		g.log.Warn("could not store the site's policy", "err", err)
	}
}

// keep stores the terms read so far, because other programs may read the pages before the pull
// ends.
func (g *policyEnforcer) keep(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.remember(ctx); err != nil && ctx.Err() == nil {
		g.log.Warn("could not store the site's policy", "err", err)
	}
}

// remember stores the terms if they have changed. The caller holds mu.
func (g *policyEnforcer) remember(ctx context.Context) error {
	if !g.changed {
		return nil
	}
	r := ingest.TermsRecord{Time: g.now().UTC(), Terms: g.terms}
	if g.unclear {
		r.Time = time.Time{}
	}
	return ingest.Terms(g.state, g.root).Save(ctx, r)
}
