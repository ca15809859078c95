package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/discover"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/webauth"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin/crawl"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
)

// webCrawl is the way that is left when a site speaks no protocol.
const webCrawl = discover.Web

// sitePull is the pull of one site.
type sitePull struct {
	c      *pullCommand
	p      *process
	st     store.Store
	root   string // of the site
	folder string // that is crawled, if nothing else is there
	site   store.Site
	client *fetch.Client
	seal   *webauth.Seal
	gate   *gate
	bound  *bound
	r      *pullReport
}

// pull mirrors the site that a URL is of, by the cheapest way that it offers;
// of one that speaks no protocol, what is in the URL's folder. rooms are those
// that --via names.
func (c *pullCommand) pull(ctx context.Context, p *process, st store.Store, pageURL string, rooms []protocol.Protocol) (r *pullReport, err error) {
	root, err := siteRoot(pageURL)
	r = &pullReport{Site: root, Ways: []way{}, Skipped: []mirror.Skip{}, Purpose: millrace.Purpose(c.Purpose), PolicyIgnored: c.IgnorePolicy}
	if err != nil {
		return r, err
	}
	folder, err := siteFolder(pageURL)
	if err != nil {
		return r, err
	}
	site, err := st.Site(ctx, root, root)
	if err != nil {
		return r, err
	}
	seal := c.sealed(p)
	client := c.sealedClient(p, st.State(), seal)
	defer client.CloseIdleConnections()
	start := time.Now()
	r.meter = measure(ctx, st.Costs(), client, root, p.log, bookEvery)
	defer func() {
		c.settle(ctx, p, st, r, err != nil)
		stats := client.Stats()
		r.Requests, r.BytesReceived = stats.Requests, stats.Received()
		r.Signed = signedReport(seal)
		r.Seconds = time.Since(start).Round(time.Millisecond).Seconds()
	}()
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	g, err := c.gate(p, st.State(), client, root, r, stop)
	if err != nil {
		return r, err
	}
	defer func() { g.close(context.WithoutCancel(ctx), r) }()
	s := &sitePull{
		c: c, p: p, st: st, root: root, folder: folder, site: site, client: client, seal: seal, gate: g, r: r,
		bound: &bound{bounding: c.bounding, client: client, over: g.ended},
	}
	err = s.run(inner, rooms)
	if no := g.ended(); no != nil {
		return r, no
	}
	if end := s.bound.ended(err); end != nil && ctx.Err() == nil {
		r.Quota, err = end.quota, nil
		if r.Added+r.Updated+r.Deleted+r.Unchanged == 0 && c.MaxBytes > 0 {
			err = fmt.Errorf("%w: %s has ended the pull before anything could be taken: allow more", millrace.ErrTooLarge, end.quota)
		}
	}
	return r, err
}

// run asks for the site's policy, and then takes what it allows.
func (s *sitePull) run(ctx context.Context, rooms []protocol.Protocol) error {
	if !s.c.IgnorePolicy {
		if err := s.gate.open(ctx, s.c.Via); err != nil {
			return err
		}
		s.gate.keep(ctx)
	}
	switch s.c.Via {
	case "":
		return s.choose(ctx)
	case webCrawl:
		return s.crawl(ctx, 0)
	}
	room := rooms[0]
	if s.bound.MaxBytes > 0 || s.bound.MaxPages > 0 {
		if is, err := ingest.IsPrimary(ctx, s.site, s.root+" "+room.Name); err != nil {
			return err
		} else if !is {
			// What is wrong with it is told by its reader.
			offer, _ := room.Probe(ctx, s.client.HTTP(), s.root, &s.gate.options)
			if err := s.bound.refuse(room.Name, offer); err != nil {
				return err
			}
		}
	}
	return s.by(ctx, nil, room, &discover.Route{Primary: room.Name, Fill: []string{webCrawl}}, 0)
}

// crawl mirrors one site, or a folder of it, by its pages and their links.
func (s *sitePull) crawl(ctx context.Context, expected int) error {
	root, site := s.folder, s.site
	var err error
	if s.r.Site = root; root != s.root {
		if site, err = s.st.Site(ctx, root, root); err != nil {
			return err
		}
		s.gate.keep(ctx)
		expected = 0
	}
	from := root + " " + webCrawl
	s.r.meter.begin(root, webCrawl)
	if err := ingest.BeginPartial(ctx, s.st.State(), site, root); err != nil {
		return err
	}
	bar := s.p.progress("crawling " + root)
	defer bar.end()
	bar.expect(expected, s.received())
	o := (&crawling{MaxPages: s.c.MaxPages, reaching: s.c.reaching}).options(s.p, site, from, bar.show)
	o.IgnoreRobots = s.c.IgnorePolicy
	if o.Wary, err = s.given(ctx, site, from); err != nil {
		return err
	}
	if o.Rules, err = s.c.rules(); err != nil {
		return err
	}
	src, err := crawl.New(s.c.showing(s.client), root, o)
	if err != nil {
		return err
	}
	before, wrong := s.client.Stats().Requests, s.seal.Sealed().Wrong
	rep, err := mirror.Sync(ctx, from, &watched{Source: src, full: s.bound.full}, site, &mirror.Options{Logger: s.p.log})
	if err = cmp.Or(err, s.lied(wrong)); err == nil {
		_, err = ingest.Rules(s.c.correcting).Try(ctx, s.p.log, site, from, src)
	}
	if n := s.c.MaxPages; err == nil && n > 0 && !src.Complete() && s.client.Stats().Requests-before >= int64(n) {
		err = &boundError{fmt.Sprintf("--max-pages %d", n)}
	}
	return s.done(ctx, site, webCrawl, root, src.Complete(), rep, err)
}

// received gives who counts the bytes of the pull.
func (s *sitePull) received() func() int64 {
	return func() int64 { return s.client.Stats().Received() }
}

// by mirrors the site by one protocol, and what that does not give by those
// that fill it.
func (s *sitePull) by(ctx context.Context, w *ways, room protocol.Protocol, route *discover.Route, expected int) error {
	from := s.root + " " + room.Name
	s.r.meter.begin(s.root, room.Name)
	if err := ingest.BeginPartial(ctx, s.st.State(), s.site, s.root); err != nil {
		return err
	}
	bar := s.p.progress("pulling " + s.root)
	defer bar.end()
	if bar.expect(expected, s.received()); expected == 0 {
		bar.endless() // a reader names pages as they are taken
	}
	d, err := s.deletions(ctx, w, room.Name, route.Deletions)
	if err != nil {
		return err
	}
	fill := s.filler(route.Fill)
	summaries := &filled{fill: fill}
	sync := func(source millrace.Source, seen *watched) (*mirror.Report, error) {
		if seen.Source, seen.full = source, s.bound.full; fills(w, route) {
			summaries.Source = source
			seen.Source = summaries
		}
		return mirror.Sync(ctx, from, seen, s.site, &mirror.Options{
			Logger:   s.p.log,
			Progress: func(g mirror.Progress) { bar.show(g.Done, g.Named) },
			Enough:   s.bound.enough,
			Fallback: fill,
		})
	}
	var rep *mirror.Report
	wrong := s.seal.Sealed().Wrong
	if d == nil {
		rep, err = sync(s.gate.reader(room), new(watched))
	} else {
		rep, err = d.sync(ctx, room, from, sync)
	}
	err = cmp.Or(err, s.lied(wrong))
	s.gate.noting.Lock()
	defer s.gate.noting.Unlock()
	if summaries.by[webCrawl] > 0 {
		s.r.meter.sawHTML()
	}
	err = s.done(ctx, s.site, room.Name, s.root, true, rep, err)
	for _, name := range sortedKeys(summaries.by) {
		s.r.Ways = append(s.r.Ways, way{Protocol: name, Part: "content of pages that " + room.Label + " sums up", Pages: summaries.by[name]})
	}
	for _, name := range sortedKeys(rep.Fallbacks) {
		s.r.Ways = append(s.r.Ways, way{Protocol: name, Part: "pages that " + room.Label + " did not give", Pages: rep.Fallbacks[name], Error: rep.Fallback.Error(), Code: millrace.ErrorCode(rep.Fallback)})
	}
	if d != nil && d.way != nil {
		s.r.Ways = append(s.r.Ways, *d.way)
	}
	slices.SortFunc(s.r.Notes, func(a, b protocolNote) int {
		return cmpStrings(a.Rule, b.Rule, a.URL, b.URL)
	})
	return err
}

// fills reports whether the pages of a route come as summaries, and their
// content from elsewhere.
func fills(w *ways, route *discover.Route) bool {
	if w == nil || len(route.Fill) == 0 {
		return false
	}
	is := w.found.Site.Way(route.Primary)
	return is != nil && is.Offer != nil && is.Offer.Detail == millrace.DetailSummary
}

// done enters into the report what one way has brought, and gives the error
// that the pull ends with. complete: it had a look at the whole site.
func (s *sitePull) done(ctx context.Context, site store.Site, name, root string, complete bool, rep *mirror.Report, err error) error {
	r, from := s.r, root+" "+name
	if err == nil && rep.SkippedN > 0 {
		err = ingest.CheckSkipped(ctx, site, from, rep.SkippedN)
	}
	if err == nil && rep.Doubted == 0 && rep.Missed == 0 && complete {
		gone, doubted, retireErr := ingest.Retire(ctx, s.st.State(), site, from, ingest.Sources(root)...)
		rep.Deleted, rep.Doubted = rep.Deleted+gone, doubted
		err = retireErr
	}
	w := way{Protocol: name, Part: "all"}
	if v, headErr := site.Head(context.WithoutCancel(ctx)); headErr == nil && !errors.Is(err, millrace.ErrNotFound) {
		// A list that answers 304 names no page, and every page stands.
		w.Pages = v.Site().Pages
	}
	switch {
	case err != nil:
	case w.Pages == 0 && rep.SkippedN > 0:
		err = ingest.NoneRead(rep.SkippedN)
	case rep.Missed > 0 && name != webCrawl: // on a site of many pages one is always broken
		err = fmt.Errorf("%w: %d pages could not be had; pull again", millrace.ErrUnavailable, rep.Missed)
	default:
		err = ingest.Partial(s.st.State(), root).Save(ctx, false)
	}
	end := s.bound.ended(err)
	if err != nil && end == nil {
		w.Error, w.Code, w.absent = told(err, root, name), millrace.ErrorCode(err), errors.Is(err, millrace.ErrNotFound)
	} else {
		r.Via = name
	}
	if end != nil {
		w.Part = "some" // the rest is left for the next pull
	}
	r.Ways = append(r.Ways, w)
	known := max(0, w.Pages-rep.Doubted) // nobody vouches for those
	if err != nil || !complete {
		known = -1
	}
	r.meter.see(name, known, rep)
	r.Added, r.Updated, r.Deleted = r.Added+rep.Added, r.Updated+rep.Updated, r.Deleted+rep.Deleted
	if r.Unchanged = max(0, w.Pages-r.Added-r.Updated); err != nil {
		r.Unchanged = min(r.Unchanged, rep.Unchanged) // of the others nothing is known
	}
	r.Missed, r.Unconfirmed = rep.Missed, r.Unconfirmed+rep.Unconfirmed
	r.Doubted, r.skipped = rep.Doubted, rep.SkippedN
	r.Skipped = append([]mirror.Skip{}, rep.Skipped...) // what the way before has skipped, this one may have taken
	return err
}

// cmpStrings compares pairs of strings in turn.
func cmpStrings(pairs ...string) int {
	for i := 0; i < len(pairs); i += 2 {
		if c := cmp.Compare(pairs[i], pairs[i+1]); c != 0 {
			return c
		}
	}
	return 0
}
