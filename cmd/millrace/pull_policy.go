package main

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
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/store"
)

// policyAge is how long it is remembered what a site's policy says.
const policyAge = 24 * time.Hour

// forbiddenError is a purpose that a site does not allow.
type forbiddenError struct {
	purpose          millrace.Purpose
	document, member string
	contact          string // whom to ask; "" = nobody is named
}

// Error names the document, the member, and the way past.
func (e *forbiddenError) Error() string {
	leave := ""
	if e.contact != "" {
		leave = "ask " + e.contact + " for leave, or "
	}
	member := e.member
	if member == "" {
		member = string(e.purpose)
	}
	return fmt.Sprintf("%s does not allow the content to be used for %s (%s is false): %spull for another --purpose; --ignore-policy is the only way past it",
		e.document, e.purpose, member, leave)
}

// ErrorCode returns "policy-refuses".
func (e *forbiddenError) ErrorCode() string { return "policy-refuses" }

// Unwrap gives [millrace.ErrForbidden].
func (e *forbiddenError) Unwrap() error { return millrace.ErrForbidden }

// gate keeps one pull to what the site says about the use of its content. It is
// safe for concurrent use.
type gate struct {
	purpose millrace.Purpose
	state   store.State
	root    *url.URL
	client  *fetch.Client
	stop    context.CancelCauseFunc // ends the pull
	process *process
	now     func() time.Time

	mu      sync.Mutex
	terms   []protocol.Terms
	heard   bool // terms are newer than what is remembered
	quota   *quota
	refusal error // that ends the pull

	noting  sync.Mutex                 // of the report's notes
	options protocol.ReaderOptions     // of readers
	readers map[string]millrace.Source // of rooms; those that have read a policy have it still
}

// gate makes the gate of one pull. stop ends what the pull is doing.
func (c *pullCommand) gate(
	p *process, st store.State, client *fetch.Client, root string, r *pullReport, stop context.CancelCauseFunc,
) (*gate, error) {
	u, err := url.Parse(root)
	if err != nil {
		return nil, usageError(err.Error())
	}
	g := &gate{
		purpose: millrace.Purpose(c.Purpose), state: st, root: u, client: client, stop: stop, process: p, now: time.Now,
		readers: make(map[string]millrace.Source),
	}
	g.options = protocol.ReaderOptions{Key: c.keyOf, Note: func(n protocol.Note) {
		g.noting.Lock()
		defer g.noting.Unlock()
		p.log.Debug("odd", "rule", n.Rule, "url", n.URL, "text", n.Text)
		if len(r.Notes) < maxNotes {
			r.Notes = append(r.Notes, protocolNote(n))
		}
	}}
	c.listing.set(&g.options)
	if !c.IgnorePolicy {
		g.options.Policy = g.hear
	}
	return g, nil
}

// reader gives the reader of a room, one for the whole pull.
func (g *gate) reader(room protocol.Protocol) millrace.Source {
	r, ok := g.readers[room.Name]
	if !ok {
		r = room.NewReader(g.client.HTTP(), g.root.String(), &g.options)
		g.readers[room.Name] = r
	}
	return r
}

// undeleting gives a reader of a room, as of a site of which somebody else tells
// what is gone.
func (g *gate) undeleting(room protocol.Protocol) millrace.Source {
	o := g.options
	o.Deletions = true
	return room.NewReader(g.client.HTTP(), g.root.String(), &o)
}

// open asks for the site's policy before anything else is asked for, unless it
// is remembered, and refuses what it does not allow. A policy that cannot be
// understood is refused, since nobody could keep to it; of one that is out of
// reach an older copy counts. Of a site that is down nothing is said here: the
// ways say what there is to say, and nothing is fetched by them.
func (g *gate) open(ctx context.Context, via string) error {
	was, err := g.load(ctx)
	if err != nil {
		return err
	}
	// A policy that forbids what is wanted may have been changed.
	if age := g.now().Sub(was.Time); age >= 0 && age < policyAge && g.forbidden(was.Terms) == nil {
		return g.recall(was.Terms)
	}
	robots, err := g.client.Robots(ctx, g.root)
	if err != nil {
		return ctx.Err()
	}
	for _, room := range all.Protocols() {
		if room.Name == arcName && via != arcName && !namesARC(robots) {
			continue
		}
		src, ok := g.reader(room).(protocol.PolicyReader)
		if !ok {
			continue
		}
		_, err := src.Policy(ctx)
		switch {
		case err == nil, errors.Is(err, millrace.ErrNotFound):
			continue
		case g.ended() != nil:
			return g.ended()
		case ctx.Err() != nil:
			return err
		case errors.Is(err, millrace.ErrInvalid), errors.Is(err, millrace.ErrTooLarge):
			return fmt.Errorf("the site has a policy that cannot be read, so that nobody could keep to it; --ignore-policy is the only way past it: %w", err)
		case was.Time.IsZero():
			return g.unreachable(err)
		}
		g.process.log.Warn("an older copy of the site's policy counts", "of", was.Time.Format(time.RFC3339), "error", err)
		if err := g.forbidden(was.Terms); err != nil {
			return err
		}
		return g.recall(was.Terms)
	}
	g.mu.Lock()
	others := slices.Clone(g.terms)
	g.mu.Unlock()
	if t, said := robotsTerms(robots, g.root, others); said {
		return g.hear(t)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard = true
	return nil
}

// unreachable decides about a policy that could not be had.
func (g *gate) unreachable(err error) error {
	if _, answered := errors.AsType[*fetch.StatusError](err); answered {
		return fmt.Errorf("the site's policy is out of reach, so that nobody knows what it allows: pull again later, or take all the same with --ignore-policy: %w", err)
	}
	// There is no site to speak of, and should it come back in this moment,
	// nothing is taken without having asked.
	g.client.SetLimit(g.root.Hostname(), fetch.Limit{Take: func(context.Context) error { return bare(err) }})
	return nil
}

// bare gives the innermost error that says that something is out of reach,
// without what was being done.
func bare(err error) error {
	for inner := errors.Unwrap(err); inner != nil && errors.Is(inner, millrace.ErrUnavailable); inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

// arcName is the room whose policy is asked for only where it is spoken.
const arcName = "arc"

// namesARC reports whether a robots.txt names a list of ARC.
func namesARC(robots *fetch.Robots) bool {
	return slices.ContainsFunc(robots.Sitemaps(), func(s string) bool { return strings.Contains(s, "/arc-sitemap") })
}

// forbidden gives the error of the first document that does not allow the
// purpose. What is not said is not forbidden.
func (g *gate) forbidden(terms []protocol.Terms) error {
	for _, t := range terms {
		if allowed, said := t.Policy.Purposes[g.purpose]; said && !allowed {
			return &forbiddenError{g.purpose, t.URL, t.Names.Purposes[g.purpose], t.Policy.Contact}
		}
	}
	return nil
}

// recall takes up what is remembered.
func (g *gate) recall(terms []protocol.Terms) error {
	for _, t := range terms {
		if err := g.hear(t); err != nil {
			return err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard = false
	return nil
}

// hear takes up a document, from whichever reader.
func (g *gate) hear(t protocol.Terms) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.terms = slices.DeleteFunc(g.terms, func(old protocol.Terms) bool { return old.URL == t.URL })
	g.terms = append(g.terms, t)
	g.heard = true
	if err := g.forbidden([]protocol.Terms{t}); err != nil {
		g.end(err)
		return err
	}
	return g.heed()
}

// end ends the pull. The caller holds mu.
func (g *gate) end(err error) {
	if g.refusal == nil {
		g.refusal = err
		g.stop(err)
	}
}

// ended gives the refusal that has ended the pull, nil if none has.
func (g *gate) ended() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refusal
}

// longGap is a gap that somebody who waits wants to know of, and maxGap the
// longest that is waited, as for a Crawl-delay.
const (
	longGap = 10 * time.Second
	maxGap  = time.Minute
)

// heed keeps to the slowest of the rates. The caller holds mu.
func (g *gate) heed() error {
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
		g.process.log.Log(context.Background(), level, "the site's policy asks for a gap between requests; --ignore-policy is the only way past it",
			"gap", l.Gap, "document", second.URL, "member", second.Names.PerSecond)
	}
	if day.Policy != nil {
		if g.quota == nil {
			g.quota = &quota{requests: requestsTo(g.state, g.root.Host), now: g.now, spent: int(g.client.Stats().Requests)}
		}
		g.quota.bound(day)
		l.Take = func(ctx context.Context) error {
			if err := g.ended(); err != nil {
				return err
			}
			err := g.quota.take(ctx)
			if _, over := errors.AsType[*quotaError](err); over {
				// What has been asked for is counted, and comes home: the pull ends
				// by asking for nothing more.
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

// load gives what is remembered, a zero time if that is nothing, or nothing
// that can be used.
func (g *gate) load(ctx context.Context) (termsRecord, error) {
	r, err := loadTerms(ctx, g.state, g.root)
	if errors.Is(err, millrace.ErrInvalid) {
		g.process.log.Warn("what is remembered of the site's policy is of no use", "error", err)
		return termsRecord{}, nil
	}
	return r, err
}

// close gives back what is left of the quota, remembers what the policy says,
// and enters it into the report.
func (g *gate) close(ctx context.Context, r *pullReport) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.quota != nil {
		if err := g.quota.close(ctx); err != nil {
			g.process.log.Warn("requests are counted that were not made", "error", err)
		}
	}
	if over, ok := errors.AsType[*quotaError](g.refusal); ok {
		r.GoOn = &over.again
	}
	r.Policy = reportTerms(g.terms)
	if _, no := errors.AsType[*forbiddenError](g.refusal); no {
		return // what forbids is looked at again each time
	}
	err := g.remember(ctx)
	if err != nil {
		g.process.log.Warn("the site's policy is not remembered", "error", err)
	}
}

// keep keeps what was heard so far: what a pull brings may be handed on before
// the pull ends.
func (g *gate) keep(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.remember(ctx); err != nil && ctx.Err() == nil {
		g.process.log.Warn("the site's policy is not remembered", "error", err)
	}
}

// remember keeps what was heard. The caller holds mu.
func (g *gate) remember(ctx context.Context) error {
	if !g.heard {
		return nil
	}
	return termsOf(g.state, g.root).Save(ctx, termsRecord{g.now().UTC(), g.terms})
}
