package openfeeder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/kit"
)

// syncItems is the maximum number of changes on a page of a reply, without the rest of its last
// commit. scanned is the maximum number of pages that a request scans to compare dates.
const (
	syncItems = 500
	scanned   = 50_000
)

// tokenAt returns the token for a sequence number with the commit time at.
func tokenAt(site millrace.Site, seq uint64, at string) string {
	return token{T: at, N: &seq, E: site.Epoch}.String()
}

// asOf returns the time of a view in the format of sync replies.
func asOf(site millrace.Site) string { return kit.FormatTime(start(site.Time)) }

// plan describes how to build a sync reply: from a part of the log, from a list of pages, or from
// the deletions in the log and then a list.
type plan struct {
	log  bool   // whether to read the log
	from uint64 // start in the log
	puts bool   // report changed pages, and not only deletions
	scan bool   // list pages by date
	all  bool   // list all pages as added, regardless of their dates
	gap  bool   // some deletions are unknown
	part bool   // the client may have newer states of some pages than this view
}

// sync returns the changes (section 3.4). All pages of a reply belong to one edition as long as
// that edition is in memory. After that, further pages also list the changes since the edition.
func (p *publisher) sync(ctx context.Context, v millrace.View, q query) (*millrace.Document, error) {
	site := v.Site()
	if site.Volatile {
		status, code := http.StatusNotFound, notFound
		if q.token != nil || q.at.Edition > 0 { // the token is from a previous store, so the reader must start over
			status, code = http.StatusGone, resyncRequired
		}
		return nil, refuse(status, code, "This site does not support changes since a time: read the index.")
	}
	if q.at.Edition > 0 {
		if !site.Has(q.at.Epoch, q.at.Edition) || q.at.Edition > site.Seq {
			return nil, resync("The cursor belongs to another store of the site")
		}
		if q.at.Edition < site.Seq {
			if older := p.views.get(q.at.Epoch, q.at.Edition); older != nil {
				v = older
				site = v.Site()
			}
		}
	}
	pl, err := p.plan(ctx, v, q)
	if err != nil {
		return nil, err
	}
	reply, err := p.reply(ctx, v, q, pl)
	if errors.Is(err, millrace.ErrConflict) {
		err = resync("The log no longer reaches back that far")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: sync: %w", Name, err)
	}
	d := p.document(q.path(site), etag("sync", edition(site), site.Base, q.path(site)))
	d.PageCount = int64(len(reply.Added) + len(reply.Updated) + len(reply.Deleted))
	d.Write = func(_ context.Context, w io.Writer) error {
		_, err := w.Write(reply.encode())
		return err
	}
	return d, nil
}

func resync(why string) error {
	return refuse(http.StatusGone, resyncRequired, why+": read the index and continue from its sync_token.")
}

// plan returns the plan for a query. For a token of this store, and for a date after the start of
// the log without until, the plan uses only the log. For a token of another store, it lists all
// pages. For other dates, it compares the dates of the pages.
func (p *publisher) plan(ctx context.Context, v millrace.View, q query) (pl plan, err error) {
	site := v.Site()
	if t := q.token; t != nil && q.until.IsZero() {
		switch {
		case !site.Has(t.E, *t.N):
			// The deletions before this store are unknown.
			return plan{scan: true, all: true, gap: true}, nil
		case *t.N <= site.Seq:
			pl = plan{log: true, from: *t.N, puts: true}
			if err := reaches(ctx, v, pl.from); errors.Is(err, millrace.ErrConflict) {
				return pl, resync("The token is older than the log")
			} else if err != nil {
				return pl, fmt.Errorf("%s: sync: %w", Name, err)
			}
			return pl, nil
		}
	}
	if q.since.IsZero() {
		return plan{scan: true}, nil
	}
	pl = plan{log: true, part: q.token != nil} // a token from a server that is ahead of this one
	pl.from, err = v.SeqAt(ctx, q.since.Add(-time.Nanosecond))
	if err == nil {
		pl.puts = pl.from > 0 && q.until.IsZero()
		pl.scan = !pl.puts
		err = reaches(ctx, v, pl.from)
	}
	if errors.Is(err, millrace.ErrConflict) {
		return plan{scan: true, gap: true}, nil
	}
	if err != nil {
		return pl, fmt.Errorf("%s: sync: %w", Name, err)
	}
	return pl, nil
}

// reaches returns ErrConflict if the log does not reach back to a sequence number.
func reaches(ctx context.Context, v millrace.View, seq uint64) error {
	site := v.Site()
	if seq >= site.Seq {
		return nil
	}
	for _, err := range v.Changes(ctx, site.At(seq)) {
		return err
	}
	return nil
}

// reply builds a page of a reply.
func (p *publisher) reply(ctx context.Context, v millrace.View, q query, pl plan) (*changes, error) {
	site := v.Site()
	at := q.at
	if at.Edition == 0 {
		at = resumePoint{Epoch: site.Epoch, Edition: site.Seq, Time: asOf(site), Seq: pl.from, Scan: !pl.log}
	}
	r := &replying{p: p, v: v, site: site, q: q, pl: pl, at: at, c: new(changes)}
	c := r.c
	if !q.since.IsZero() {
		c.Sync.Since = kit.FormatTime(q.since)
	}
	if !q.until.IsZero() {
		c.Sync.Until = kit.FormatTime(q.until)
	}
	if pl.gap {
		known := false
		c.Sync.DeletedTracking = &known
	}
	more := false
	var err error
	if !r.at.Scan && r.at.Seq < site.Seq {
		more, err = r.log(ctx)
	}
	if err == nil && !more && pl.scan {
		r.at.Scan = true
		more, err = r.list(ctx)
	}
	if err != nil {
		return nil, err
	}
	return c, r.end(ctx, more)
}

// end sets the token of the page, and the reference to the next page.
func (r *replying) end(ctx context.Context, more bool) error {
	s := &r.c.Sync
	switch {
	case r.pl.puts && more: // in a reply from the log, each page has its own token
		s.AsOf = r.reported
		// If a page of the site changed both before and after this position, only the later change
		// is listed, so the client may lack its state at this position.
		s.SyncToken = token{T: r.reported, N: &r.at.Seq, E: r.site.Epoch, Part: true}.String()
	case r.pl.puts:
		s.AsOf = asOf(r.site)
		s.SyncToken = token{T: s.AsOf, N: &r.site.Seq, E: r.site.Epoch, Part: r.pl.part}.String()
	case more: // in a reply by date, only the last page has a new token
		s.AsOf = r.at.Time
		s.SyncToken = token{T: kit.FormatTime(start(r.q.since))}.String()
		if r.q.token != nil {
			s.SyncToken = r.q.token.String()
		}
	default:
		s.AsOf = r.at.Time
		s.SyncToken = token{T: s.AsOf, N: &r.at.Edition, E: r.site.Epoch, Part: r.pl.part || r.at.Edition < r.site.Seq}.String()
		if u := r.q.until; !u.IsZero() && u.Before(parseTime(s.AsOf)) {
			// Later changes were not sent.
			switch seq, err := r.v.SeqAt(ctx, u); {
			case err == nil:
				s.SyncToken = token{T: s.AsOf, N: &seq, E: r.site.Epoch, Part: true}.String()
			case errors.Is(err, millrace.ErrConflict):
				s.SyncToken = token{T: kit.FormatTime(u)}.String()
			default:
				return err
			}
		}
	}
	if more {
		next := r.q
		next.at = r.at
		s.Next = path(r.site, next.path(r.site))
		r.p.views.hold(r.v)
	}
	return nil
}

// start returns t, or the Unix epoch if t is zero.
func start(t time.Time) time.Time {
	if t.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return t
}

// replying holds the state of building a page of a reply.
type replying struct {
	p        *publisher
	v        millrace.View
	site     millrace.Site
	q        query
	pl       plan
	at       resumePoint
	c        *changes
	reported string // time of the last commit that was sent
}

func (r *replying) full() bool {
	return len(r.c.Added)+len(r.c.Updated)+len(r.c.Deleted) >= r.p.most
}

// log adds changes in order, in whole commits, and reports whether there are more.
func (r *replying) log(ctx context.Context) (more bool, err error) {
	var last time.Time
	for c, err := range r.v.Changes(ctx, r.site.At(r.at.Seq)) {
		if err != nil {
			return false, err
		}
		if c.Kind == millrace.KindCheckpoint {
			continue
		}
		if r.full() && !c.Time.Equal(last) {
			r.reported = kit.FormatTime(last)
			r.at.Seq, err = r.v.SeqAt(ctx, last)
			return true, err
		}
		last = c.Time
		if c.Kind == millrace.Put && !r.pl.puts || !r.q.until.IsZero() && c.Time.After(r.q.until) {
			continue
		}
		it, dead, err := r.p.changed(ctx, r.v, c)
		switch {
		case err != nil:
			return false, err
		case dead != nil:
			r.c.Deleted = append(r.c.Deleted, *dead)
		case it == nil:
		case c.New:
			r.c.Added = append(r.c.Added, *it)
		default:
			r.c.Updated = append(r.c.Updated, *it)
		}
	}
	r.at.Seq = r.site.Seq
	return false, nil
}

// changed returns the item of a changed page. If the page was deleted or no longer has a document,
// changed returns a tombstone. If no edition has listed the page, it returns neither, because the
// URL was never public. A tombstone does not depend on the client's position, because the client
// may have received some of the later changes, or a newer edition from another server.
func (p *publisher) changed(ctx context.Context, v millrace.View, c millrace.Change) (*item, *tombstone, error) {
	if c.Kind == millrace.Put {
		it, err := p.itemAt(ctx, v, c.URL, c.Version)
		if !errors.Is(err, millrace.ErrNotFound) {
			return &it, nil, err
		}
	}
	site := v.Site()
	t := tombstone{URL: absolute(site, c.URL), DeletedAt: kit.FormatTime(c.Time)}
	if !kit.SameOrigin(site.Base, t.URL) {
		return nil, nil, nil
	}
	switch _, err := v.Tag(ctx, Name, c.URL); {
	case errors.Is(err, millrace.ErrGone):
		return nil, &t, nil
	case errors.Is(err, millrace.ErrNotFound):
		return nil, nil, nil
	default:
		return nil, nil, err
	}
}

// list adds pages by their dates, newest first, and reports whether there are more.
func (r *replying) list(ctx context.Context) (more bool, err error) {
	n := 0
	for found, err := range r.v.Scan(ctx, millrace.Scan{Order: millrace.ByPublished, After: r.at.After}) {
		if errors.Is(err, millrace.ErrNotFound) {
			err = resync("The list has changed at the position of the cursor")
		}
		if err != nil {
			return false, err
		}
		if r.full() || n == scanned {
			return true, nil
		}
		n++
		r.at.After = found.URL
		added, updated := r.when(found)
		if _, ok := published(r.site, found); !ok || !added && !updated {
			continue
		}
		it, err := r.p.item(ctx, r.v, found)
		if err != nil {
			return false, err
		}
		if added {
			r.c.Added = append(r.c.Added, it)
		} else {
			r.c.Updated = append(r.c.Updated, it)
		}
	}
	return false, nil
}

// when reports whether the dates of a page make it an added or an updated page. A page without a
// published date counts as published at its last modification.
func (r *replying) when(p *millrace.Page) (added, updated bool) {
	if r.pl.all {
		return true, false
	}
	at := p.Published
	if at.IsZero() {
		at = p.Modified
	}
	since, until := r.q.since, r.q.until
	if since.IsZero() {
		return false, !at.After(until)
	}
	in := func(t time.Time) bool { return !t.Before(since) && (until.IsZero() || !t.After(until)) }
	return in(at), at.Before(since) && in(p.Modified)
}

// views caches the views of replies that have several pages.
type views struct {
	mu   sync.Mutex
	last []millrace.View
}

const maxCachedViews = 32

func (vs *views) hold(v millrace.View) {
	site := v.Site()
	vs.mu.Lock()
	defer vs.mu.Unlock()
	for i, cached := range vs.last {
		if s := cached.Site(); s.Seq == site.Seq && s.Epoch == site.Epoch && s.Base == site.Base {
			vs.last = append(append(vs.last[:i:i], vs.last[i+1:]...), v)
			return
		}
	}
	if len(vs.last) == maxCachedViews {
		vs.last = vs.last[1:]
	}
	vs.last = append(vs.last, v)
}

// get returns the view of a sequence number, or nil if it is not cached.
func (vs *views) get(epoch string, seq uint64) millrace.View {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	for _, cached := range vs.last {
		if s := cached.Site(); s.Seq == seq && s.Epoch == epoch {
			return cached
		}
	}
	return nil
}
