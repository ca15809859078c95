package discover

import (
	"context"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// Approximate cost of a full probe: requests, bytes of sampled pages, and bytes of lists for each
// of the first probeListPages pages.
const (
	probeRequests  = 25
	probeBytes     = 50_000
	probePageBytes = 250
	probeListPages = 1200
)

// probeQuick probes the protocols that have files of many pages, with one or two requests each. It
// reports whether the result is sufficient. If so, the report contains the way found, and an
// estimate of the plain web from the sitemaps, which shows whether the way lacks most pages.
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
		w.SendsChanges = l.memo.dictionaries[w.Offer.Entry]
		s := l.estimatePages(ctx)
		if s.pages < 0 {
			return false
		}
		l.site.Page = protocol.Cost{Requests: 1, Bytes: usualBytes}
		web := Way{Protocol: Web, Allowed: true, Offer: l.webOffer(s, s.pages, usualBytes, 1)}
		site := *l.site
		site.Ways = []Way{*w, web}
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

// confirmQuick copies the ways of the previous probe to the report if all of them still exist.
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

// complete reports whether a way can be used and has the content of all pages that it lists.
func (w *Way) complete() bool {
	return w != nil && w.Open() && brings(w.Offer) && w.Offer.WithoutContent == 0 && w.Offer.Pages >= 1
}

// Short returns the report that a quick probe would have returned, with only the collection and the
// plain web as ways. It returns nil if a quick probe would have continued as a full one. protocols
// are the protocols of the probe.
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
		if site.Ways, site.Quick = []Way{*w, *web}, true; !site.enough() {
			return nil
		}
		return &site
	}
	return nil
}

// enough reports whether probing for further ways would cost more than it could save. The first way
// must have blocks, and must list the pages of the sitemaps. It must cost less than a probe, or far
// less than fetching each page. Its refreshes must cost less than a probe, apart from the changed
// pages.
func (s *SiteReport) enough() bool {
	p := &planner{Model: (*Model)(nil).orDefault(), site: s, page: loadOf(s.Page)}
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
	again := p.bytes(q.again) - p.Changed*q.pages*p.bytes(loadOf(o.PerChange))
	return o.Detail >= millrace.DetailBlocks && p.lost(q) < 1 && least && again*float64(p.Rounds) <= probeCost
}
