package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/discover"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/webauth"
	"github.com/millrace/millrace/mirror"
	origins "github.com/millrace/millrace/origin/all"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
)

// sitePull is the pull of one site.
type sitePull struct {
	*Agent
	root     string // root URL of the site
	folder   string // folder to crawl if the site has no protocol
	site     store.Site
	client   *fetch.Client
	verifier *webauth.ResponseVerifier
	policy   *policyEnforcer
	budget   *budget
	costs    *costMeter
	r        *Report
}

// pull mirrors the site of a URL.
func (a *Agent) pull(ctx context.Context, pageURL string) *Report {
	r := &Report{Ways: []Way{}, Skipped: []mirror.Skip{}, Purpose: a.o.Purpose, PolicyIgnored: a.o.IgnorePolicy}
	err := a.pullInto(ctx, r, pageURL)
	if err != nil {
		names := make([]string, len(r.Ways))
		for i, w := range r.Ways {
			names[i] = w.Protocol
		}
		r.Err, r.Error, r.Code = err, errorText(err, r.Site, names...), millrace.ErrorCode(err)
	}
	return r
}

func (a *Agent) pullInto(ctx context.Context, r *Report, pageURL string) (err error) {
	root, err := ingest.Root(pageURL)
	if err != nil {
		return err
	}
	r.Site = root
	folder, err := ingest.Folder(pageURL)
	if err != nil {
		return err
	}
	site, err := a.store.Site(ctx, root, root)
	if err != nil {
		return err
	}
	base, err := url.Parse(root)
	if err != nil {
		return err
	}
	keys := a.keyClient()
	defer keys.CloseIdleConnections()
	verifier := a.verifier.WithClient(keys.HTTP())
	client := a.siteClient(verifier)
	defer client.CloseIdleConnections()
	start := time.Now()
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &sitePull{
		Agent: a, root: root, folder: folder, site: site, client: client, verifier: verifier, r: r,
		costs: measure(ctx, a.store.Costs(), client, root, a.o.Logger, costsEvery),
	}
	defer func() {
		s.reportSavings(ctx, err != nil)
		stats := client.Stats()
		r.Requests, r.BytesReceived = stats.Requests, stats.Received()
		if c := verifier.Counts(); c.Verified+c.Invalid+c.Unverified > 0 {
			r.Signed = &c
		}
		r.Seconds = time.Since(start).Round(time.Millisecond).Seconds()
	}()
	s.policy = a.enforcer(client, base, r, stop)
	s.budget = &budget{maxPages: a.o.MaxPages, maxBytes: a.o.MaxBytes, maxTime: a.o.MaxTime, start: start, client: client, over: s.policy.ended}
	if a.o.MaxTime > 0 {
		var end context.CancelFunc
		inner, end = context.WithDeadline(inner, start.Add(a.o.MaxTime))
		defer end()
	}
	defer func() { s.policy.close(context.WithoutCancel(ctx), r) }()
	err = s.run(inner)
	if no := s.policy.ended(); no != nil {
		return no
	}
	if end := s.budget.ended(err); end != nil && ctx.Err() == nil {
		r.Quota, err = end.quota, nil
		if r.Added+r.Updated+r.Deleted+r.Unchanged == 0 && (a.o.MaxBytes > 0 || a.o.MaxTime > 0) {
			err = fmt.Errorf("%w: %s ended the pull before any page was read; raise the limit", millrace.ErrTooLarge, end.quota)
		}
	}
	return err
}

// run reads the site's policy, and then the content that it allows.
func (s *sitePull) run(ctx context.Context) error {
	if !s.o.IgnorePolicy {
		if err := s.policy.open(ctx, s.o.Via); err != nil {
			return err
		}
		s.policy.keep(ctx)
	}
	switch s.o.Via {
	case "":
		return s.choose(ctx)
	case Crawl:
		return s.crawl(ctx, 0)
	}
	proto, _ := named(s.o.Via)
	if s.o.MaxBytes > 0 || s.o.MaxPages > 0 {
		if is, err := ingest.IsPrimary(ctx, s.site, s.root+" "+proto.Name); err != nil {
			return err
		} else if !is {
			// An error of the probe is ignored: the reader reports it.
			offer, _ := proto.Probe(ctx, s.client.HTTP(), s.root, &s.policy.options)
			if err := s.budget.refuse(proto.Name, offer); err != nil {
				return err
			}
		}
	}
	return s.by(ctx, nil, proto, &discover.Route{Primary: proto.Name, Fill: []string{Crawl}}, 0)
}

// crawl mirrors a site, or a folder of it, by following the links of its pages.
func (s *sitePull) crawl(ctx context.Context, expected int) error {
	root, site := s.folder, s.site
	var err error
	if s.r.Site = root; root != s.root {
		if site, err = s.store.Site(ctx, root, root); err != nil {
			return err
		}
		s.policy.keep(ctx)
		expected = 0
	}
	from := root + " " + Crawl
	s.costs.begin(root, Crawl)
	if err := ingest.BeginPartial(ctx, s.store.State(), site, root); err != nil {
		return err
	}
	show, end := s.progress(Progress{Site: root, Via: Crawl, Expected: expected, received: s.received})
	defer end()
	o := ingest.ResumeOptions(site, from)
	o.Client, o.MaxPages, o.MaxDepth = s.withKeys(s.client), s.o.MaxPages, s.o.MaxDepth
	if most := s.o.MaxTime; most > 0 { // leave time to save the position of the crawl
		o.MaxTime = max(1, most-time.Since(s.budget.start)-min(most/10, 5*time.Second))
	}
	start := time.Now()
	o.Progress, o.Logger, o.Rules, o.IgnoreRobots = show, s.o.Logger, s.rules, s.o.IgnorePolicy
	if o.RejectUniform, err = s.hasProtocolPages(ctx, site, from); err != nil {
		return err
	}
	src, err := origins.ByName(Crawl).Open(root, o)
	if err != nil {
		return err
	}
	before, invalid := s.client.Stats().Requests, s.verifier.Counts().Invalid
	rep, err := mirror.Sync(ctx, from, &quotaSource{Source: src, full: s.budget.full}, site, &mirror.Options{Logger: s.o.Logger})
	err = cmp.Or(err, s.checkSignatures(invalid))
	if pages, ok := src.Source.(ingest.Originals); ok && err == nil {
		_, err = s.corrections().Test(ctx, s.o.Logger, site, from, pages)
	}
	if n := s.o.MaxPages; err == nil && n > 0 && !src.Complete() && s.client.Stats().Requests-before >= int64(n) {
		err = &budgetError{fmt.Sprintf("Options.MaxPages %d", n)}
	}
	if err == nil && o.MaxTime > 0 && !src.Complete() && time.Since(start) >= o.MaxTime {
		err = &budgetError{fmt.Sprintf("Options.MaxTime %s", s.o.MaxTime)}
	}
	return s.done(ctx, site, Crawl, root, src.Complete(), rep, err)
}

// received returns the bytes that the pull has received so far.
func (s *sitePull) received() int64 { return s.client.Stats().Received() }

// by mirrors the site by one protocol. It fetches missing pages and content by the other ways of
// the route.
func (s *sitePull) by(ctx context.Context, w *ways, proto protocol.Protocol, route *discover.Route, expected int) error {
	from := s.root + " " + proto.Name
	s.costs.begin(s.root, proto.Name)
	if err := ingest.BeginPartial(ctx, s.store.State(), s.site, s.root); err != nil {
		return err
	}
	show, end := s.progress(Progress{Site: s.root, Via: proto.Name, Expected: expected, received: s.received})
	defer end()
	source, fill := s.policy.reader(proto), s.filler(route.Fill)
	summaries := &filled{Source: source, fill: fill}
	if fills(w, route) {
		source = summaries
	}
	invalid := s.verifier.Counts().Invalid
	rep, err := mirror.Sync(ctx, from, &quotaSource{source, s.budget.full}, s.site, &mirror.Options{
		Logger:   s.o.Logger,
		Progress: func(g mirror.Progress) { show(g.Done, g.Found) },
		Enough:   s.budget.enough,
		Fallback: fill,
	})
	err = cmp.Or(err, s.checkSignatures(invalid))
	s.policy.noting.Lock()
	defer s.policy.noting.Unlock()
	if summaries.by[Crawl] > 0 {
		s.costs.sawHTML()
	}
	err = s.done(ctx, s.site, proto.Name, s.root, true, rep, err)
	for _, name := range slices.Sorted(maps.Keys(summaries.by)) {
		s.r.Ways = append(s.r.Ways, Way{Protocol: name, Part: "content of pages that " + proto.Label + " summarizes", Pages: summaries.by[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(rep.Fallbacks)) {
		s.r.Ways = append(s.r.Ways, Way{Protocol: name, Part: "pages that " + proto.Label + " did not provide", Pages: rep.Fallbacks[name], Error: rep.Fallback.Error(), Code: millrace.ErrorCode(rep.Fallback)})
	}
	slices.SortFunc(s.r.Notes, func(a, b Note) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.URL, b.URL))
	})
	return err
}

// fills reports whether the primary source of a route has only summaries, so that other ways must
// provide the content.
func fills(w *ways, route *discover.Route) bool {
	if w == nil || len(route.Fill) == 0 {
		return false
	}
	is := w.found.Site.Way(route.Primary)
	return is != nil && is.Offer != nil && is.Offer.Detail == millrace.DetailSummary
}

// done adds the result of one way to the report, and returns the error of the pull. complete
// reports whether the way has read the whole site.
func (s *sitePull) done(ctx context.Context, site store.Site, name, root string, complete bool, rep *mirror.Report, err error) error {
	r, from := s.r, root+" "+name
	if err == nil && rep.SkippedN > 0 {
		err = ingest.CheckSkipped(ctx, site, from, rep.SkippedN)
	}
	if err == nil && rep.UnconfirmedDeletions == 0 && rep.Unavailable == 0 && complete {
		gone, unconfirmed, retireErr := ingest.Retire(ctx, s.store.State(), site, from, ingest.Sources(root)...)
		rep.Deleted, rep.UnconfirmedDeletions = rep.Deleted+gone, unconfirmed
		err = retireErr
	}
	w := Way{Protocol: name, Part: "all"}
	if v, headErr := site.Head(context.WithoutCancel(ctx)); headErr == nil && !errors.Is(err, millrace.ErrNotFound) {
		// An unmodified list names no pages, so use the number of pages in the store.
		w.Pages = v.Site().Pages
	}
	switch {
	case err != nil:
	case w.Pages == 0 && rep.SkippedN > 0:
		err = ingest.NoPagesError(rep.SkippedN)
	case rep.Unavailable > 0 && name != Crawl: // in a large crawl, some pages always fail
		err = fmt.Errorf("%w: %d pages could not be fetched; pull again", millrace.ErrUnavailable, rep.Unavailable)
	default:
		err = ingest.Partial(s.store.State(), root).Save(ctx, false)
	}
	over := s.budget.ended(err)
	if err != nil && over == nil {
		w.Error, w.Code, w.Absent = errorText(err, root, name), millrace.ErrorCode(err), errors.Is(err, millrace.ErrNotFound)
	} else {
		r.Via = name
	}
	if over != nil {
		w.Part = "some" // the next pull reads the rest
	}
	r.Ways = append(r.Ways, w)
	known := max(0, w.Pages-rep.UnconfirmedDeletions) // unconfirmed deletions may be real
	s.costs.count(name, known, err == nil && complete, rep)
	r.Added, r.Updated, r.Deleted = r.Added+rep.Added, r.Updated+rep.Updated, r.Deleted+rep.Deleted
	if r.Unchanged = max(0, w.Pages-r.Added-r.Updated); err != nil {
		r.Unchanged = min(r.Unchanged, rep.Unchanged) // the other pages may have changed
	}
	r.Unavailable, r.Unconfirmed = rep.Unavailable, r.Unconfirmed+rep.Unconfirmed
	r.UnconfirmedDeletions, r.SkippedN = rep.UnconfirmedDeletions, rep.SkippedN
	r.Skipped = append([]mirror.Skip{}, rep.Skipped...) // this way may have read pages that the previous one skipped
	return err
}

// progress reports that a way begins to read. show reports the numbers of finished and of listed
// pages, and end reports that the way has ended.
func (s *sitePull) progress(p Progress) (show func(done, named int), end func()) {
	report := s.o.Progress
	if report == nil {
		report = func(Progress) {}
	}
	report(p)
	show = func(done, named int) {
		now := p
		now.Done, now.Found = done, named
		report(now)
	}
	return show, func() {
		p.Ended = true
		report(p)
	}
}
