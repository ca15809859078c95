package discover

import (
	"context"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// What a look costs that goes everywhere, roughly: requests, a few samples, and
// the beginnings of lists, which are no longer for more than so many pages.
const (
	probeRequests  = 25
	probeBytes     = 50_000
	probePageBytes = 250
	probeListPages = 1200
)

// A look for who tells what is gone alone.
const (
	askRequests = 8
	askBytes    = 15_000
)

// probeQuick looks at the protocols whose pages come many in a file, each of which takes
// a request or two, and reports whether the site needs no further look. If so
// the site has the way that was found, and the plain web as far as the sitemaps
// tell of it, so that a way that leaves most pages out is not taken for one that
// has all.
func (l *prober) probeQuick(ctx context.Context) bool {
	if l.Previous != nil && l.Previous.URL == l.site.URL {
		return l.Previous.Quick && l.confirmQuick(ctx)
	}
	for _, proto := range l.Protocols {
		if !proto.Collections || proto.Probe == nil {
			continue
		}
		offer, err := proto.Probe(ctx, l.client, l.site.URL, l.readerOptions())
		w := l.way(ctx, proto, offer, err)
		if !w.complete() {
			continue
		}
		s := l.estimatePages(ctx)
		if s.pages < 0 {
			return false
		}
		l.site.Page = protocol.Cost{Requests: 1, Bytes: usualBytes}
		web := Way{Protocol: Web, Allowed: true, Offer: l.webOffer(s, s.pages, usualBytes, 1)}
		site := *l.site
		site.Ways = []Way{*w}
		if w.silent() {
			site.Ways = append(site.Ways, l.deletionWays(ctx, proto.Name)...)
		}
		site.Ways = append(site.Ways, web)
		if !site.enough() {
			return false
		}
		var unread error
		if !l.PolicyKnown {
			unread = l.readTerms(ctx)
		}
		if l.refusal(unread) != "" && !l.IgnorePolicy {
			return false
		}
		site.Terms, site.Quick = l.site.Terms, true
		*l.site = site
		return true
	}
	return false
}

// confirmQuick reports whether all that an earlier look has found still stands.
func (l *prober) confirmQuick(ctx context.Context) bool {
	site := *l.site
	site.Ways, site.Page, site.Quick = nil, l.Previous.Page, true
	for _, was := range l.Previous.Ways {
		is := l.earlier(was.Protocol)
		if was.Protocol != Web {
			is = l.confirm(ctx, was.Protocol)
		}
		if is == nil {
			return false
		}
		site.Ways = append(site.Ways, *is)
	}
	site.Measured = l.site.Measured
	*l.site = site
	return true
}

// deletionWays returns the other protocols that tell what is gone.
func (l *prober) deletionWays(ctx context.Context, not string) (ways []Way) {
	for _, proto := range l.Protocols {
		if proto.Name == not || proto.Probe == nil || !readsDeletions(proto, l.site.URL) {
			continue
		}
		offer, err := proto.Probe(ctx, l.client, l.site.URL, l.readerOptions())
		if w := l.way(ctx, proto, offer, err); w != nil {
			ways = append(ways, *w)
		}
	}
	return ways
}

// readsDeletions reports whether a protocol's reader can be asked what is gone alone.
func readsDeletions(proto protocol.Protocol, site string) bool {
	_, ok := proto.NewReader(nil, site, nil).(protocol.DeletionReader)
	return ok
}

// complete reports whether a way has everything of all pages that it names.
func (w *Way) complete() bool {
	return w != nil && w.Open() && brings(w.Offer) && w.Offer.WithoutContent == 0 && w.Offer.Pages >= 1
}

// silent reports whether another way for deletions is worth a search: this one does
// not report them, and reading it again costs much.
func (w *Way) silent() bool {
	readCost := modelBytes(loadOf(w.Offer.First))
	return !w.Offer.Deletes && readCost*float64(model.Rounds)/float64(model.Sweep) > askBytes+askRequests*float64(model.Header)
}

// Short returns the site as a quick look would have left it, with the ways that
// it chooses from, or nil if a quick look would have looked everywhere. protocols
// are the protocols of the look.
func (s *SiteReport) Short(protocols []protocol.Protocol) *SiteReport {
	web := s.Way(Web)
	if web == nil || web.Offer == nil {
		return nil
	}
	for _, proto := range protocols {
		w := s.Way(proto.Name)
		if !proto.Collections || !w.complete() {
			continue
		}
		site := *s
		site.Ways, site.Quick = []Way{*w}, true
		for _, other := range protocols {
			if o := s.Way(other.Name); w.silent() && o != nil && o != w && readsDeletions(other, s.URL) {
				site.Ways = append(site.Ways, *o)
			}
		}
		if site.Ways = append(site.Ways, *web); !site.enough() {
			return nil
		}
		return &site
	}
	return nil
}

var model = (*Model)(nil).orDefault()

func modelBytes(l load) float64 { return (&planner{Model: model}).bytes(l) }

// enough reports whether probing for other ways than the first would not pay. The
// first way names the pages of the sitemaps. It brings them for less than a probe,
// or for less than any way that fetches each page. And the overhead of its
// refreshes costs less than a probe.
func (s *SiteReport) enough() bool {
	p := &planner{Model: model, site: s, page: loadOf(s.Page)}
	for i := range s.Ways {
		if s.Ways[i].Open() {
			p.open = append(p.open, p.alone(&s.Ways[i]))
		}
	}
	p.findFills()
	for _, q := range p.open {
		p.quote(q)
	}
	q := p.open[0]
	o := q.way.Offer
	probeCost := probeRequests*float64(p.Header) + probeBytes + probePageBytes*min(q.pages, probeListPages)
	first := p.bytes(q.first)
	least := first <= probeCost || float64(o.First.Requests)*2 <= q.pages && first <= q.pages*p.bytes(p.page)/4
	again := p.bytes(q.again) - p.Changed*q.pages*p.bytes(loadOf(o.Each))
	return o.Detail >= millrace.DetailBlocks && p.lost(q) < 1 && least && again*float64(p.Rounds) <= probeCost
}
