package discover

import (
	"cmp"
	"math"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// Model holds the parameters of the cost estimates. The zero value is valid.
type Model struct {
	// Changed is the fraction of the pages that change between two refreshes, between 0 and 1.
	// If zero, 0.01.
	Changed float64
	// Header is the size of the header fields of a request and its response in bytes. If zero, 600.
	Header int64
	// Rounds is the expected number of refreshes after the first sync. If zero, 10. More
	// rounds favor ways with cheap refreshes.
	Rounds int
	// Sweep is the number of refreshes after which a way that does not report deletions is
	// read from the start. If zero, 7.
	Sweep int
	// HasDictionary reports whether the client has a dictionary for a URL, so that the server sends
	// only what has changed in the document (RFC 9842). If nil, the client has no dictionaries.
	HasDictionary func(url string) bool
	// Previous lists the ways by which the site was read before. Reading the site by another way
	// costs a first sync. If empty, the site is new, and the first sync is part of the plan.
	Previous []string
}

func (m *Model) orDefault() Model {
	var out Model
	if m != nil {
		out = *m
	}
	out.Changed = part(out.Changed, 0.01)
	out.Header = cmp.Or(max(0, out.Header), 600)
	out.Rounds = cmp.Or(max(0, out.Rounds), 10)
	out.Sweep = cmp.Or(max(0, out.Sweep), 7)
	if out.HasDictionary == nil {
		out.HasDictionary = func(string) bool { return false }
	}
	return out
}

// part returns x, or 1 if x is larger, or the default if x is not positive.
func part(x, otherwise float64) float64 {
	if x > 0 {
		return min(1, x)
	}
	return otherwise
}

// Charges for what a way lacks.
const (
	// lostCharge is the charge for a lost page, in HTML pages. It is so high that a way may lose
	// only a small part of the site.
	lostCharge = 10
	// textCharge is the charge for a page without structure, in HTML pages.
	textCharge = 0.25
	// The minimum number of pages that a way must have, as a fraction of the pages of another way.
	// Pages below the minimum count as lost. minExact is for exact counts, minEstimated for
	// estimates, and minWeb for sitemaps, which also list archive pages that no protocol publishes.
	minExact, minEstimated, minWeb = 0.95, 0.75, 0.5
)

// Plan describes how to read a site in the first sync and in refreshes. The two routes are chosen
// separately, and may use different ways.
type Plan struct {
	First   Route   `json:"first"`   // route of the first sync
	Refresh Route   `json:"refresh"` // route of a refresh
	Quotes  []Quote `json:"quotes"`  // cost of each way alone, including ways that are not allowed
}

// Quote is the cost of one way, without charges for what the way lacks.
type Quote struct {
	Protocol string        `json:"protocol"`
	First    protocol.Cost `json:"first"`   // cost of a first sync
	Refresh  protocol.Cost `json:"refresh"` // cost of a refresh, for an estimated number of changed pages
}

// Route is one way to read a site, together with the ways that complement it.
type Route struct {
	Primary string        `json:"primary"`        // way that lists the pages; "" if no way can be used
	Fill    []string      `json:"fill,omitempty"` // ways that fetch the pages that the primary way lists without content, best first
	Next    []string      `json:"next,omitempty"` // ways to use if the primary way fails, best first, but the plain web last
	Cost    protocol.Cost `json:"cost"`           // expected cost
	Why     string        `json:"why"`            // why this route was chosen
}

// expectedCost is a cost that may have fractions of a request.
type expectedCost struct{ requests, bytes float64 }

func loadOf(c protocol.Cost) expectedCost { return expectedCost{float64(c.Requests), float64(c.Bytes)} }

func (l expectedCost) add(m expectedCost, n float64) expectedCost {
	return expectedCost{l.requests + n*m.requests, l.bytes + n*m.bytes}
}

func (l expectedCost) cost() protocol.Cost {
	const most = 1 << 62
	return protocol.Cost{Requests: int64(min(math.Ceil(l.requests), most)), Bytes: int64(min(math.Ceil(l.bytes), most))}
}

// planner compares the ways of one site.
type planner struct {
	Model
	site            *SiteReport
	page            expectedCost // cost of one HTML page
	open            []*quote     // ways that can be used, in the order of SiteReport.Ways
	fills           []string     // ways to fetch a single page, best first
	fill            expectedCost // cost of fetching a page by the first of fills
	structureCharge float64      // charge for the missing structure of such a page, in bytes
	full            bool         // fills is not empty
}

// quote is the cost of one way.
type quote struct {
	way                        *Way
	pages                      float64
	changeProbability          float64      // probability of a change between two refreshes
	first, again               expectedCost // cost of the first sync and of a refresh, including fills
	firstCharge, refreshCharge float64      // charges in the first sync and in a refresh, in bytes
	coded                      bool         // the client has, or will have, a dictionary for the collection
}

// Plan chooses the ways to read a site by their cost. A nil m means the zero Model. The package
// comment describes the rules.
func (s *SiteReport) Plan(m *Model) *Plan {
	p := &planner{Model: m.orDefault(), site: s, page: loadOf(s.Page)}
	plan := &Plan{Quotes: []Quote{}}
	for _, w := range s.Ways {
		if w.Offer == nil {
			continue
		}
		whole := w.Offer.Collection != "" && p.HasDictionary(w.Offer.Collection)
		w.Offer = p.coded(&w, whole)
		q := p.alone(&w)
		plan.Quotes = append(plan.Quotes, Quote{w.Protocol, q.first.cost(), q.again.cost()})
		if w.Open() {
			p.open = append(p.open, q)
		}
	}
	if len(p.open) == 0 {
		plan.First.Why = s.closed()
		plan.Refresh.Why = plan.First.Why
		return plan
	}
	p.findFills()
	for _, q := range p.open {
		p.quote(q)
	}
	first, again := p.best()
	plan.First, plan.Refresh = p.route(first, nil), p.route(again, first)
	return plan
}

// Sizes in bytes of the parts of a document that is coded against its earlier version: an unchanged
// document, each changed entry of a list, and each changed page of a collection.
const codedHead, codedEntry, codedPage = 200, 80, 300

// coded returns the offer of a way, with lower costs if the client has, or will have, a dictionary
// for the way's list. If whole is set, the client has a dictionary for the collection.
func (p *planner) coded(w *Way, whole bool) *protocol.Offer {
	c, most := *w.Offer, codedHead*w.Offer.Changed.Requests
	if (whole || w.SendsChanges || p.HasDictionary(c.Entry)) && c.Changed.Bytes > most {
		c.Changed.Bytes = most
		c.PerChange.Bytes += codedEntry
	}
	if whole {
		c.PerChange = protocol.Cost{Bytes: codedEntry + codedPage}
	}
	return &c
}

// alone returns the cost of a way, without fills and charges.
func (p *planner) alone(w *Way) *quote {
	n, o := p.site.pages(w), w.Offer
	q := &quote{way: w, pages: n, changeProbability: 1 - math.Pow(1-p.Changed, n), first: loadOf(o.First)}
	q.coded = o.Collection != "" && (w.SendsChanges || p.HasDictionary(o.Collection))
	q.again = loadOf(o.Unchanged).add(loadOf(o.Unchanged), -q.changeProbability).add(loadOf(o.Changed), q.changeProbability).add(loadOf(o.PerChange), p.Changed*n)
	return q
}

// pages returns the number of pages of a way: the number that it lists, else the maximum number
// that another way lists, else the number of requests of its first sync.
func (s *SiteReport) pages(w *Way) float64 {
	n := w.Offer.Pages
	for i := range s.Ways {
		if o := s.Ways[i].Offer; w.Offer.Pages < 0 && o != nil {
			n = max(n, o.Pages)
		}
	}
	if n < 0 {
		n = int(min(w.Offer.First.Requests, math.MaxInt32))
	}
	return float64(max(n, 1))
}

// lost returns the number of pages that a way lacks compared with the other ways, beyond the number
// that may be missing without a charge.
func (p *planner) lost(q *quote) float64 {
	if q.way.Offer.Pages < 0 {
		return 0
	}
	lost := 0.0
	for _, other := range p.open {
		like := minExact
		switch {
		case other.way.Protocol == Web:
			like = minWeb
		case q.way.Offer.Estimated, other.way.Offer.Estimated:
			like = minEstimated
		}
		if other.way.Offer.Pages > 0 {
			lost = max(lost, like*other.pages-q.pages)
		}
	}
	return lost
}

// brings reports whether an offer includes the content of the listed pages.
func brings(o *protocol.Offer) bool { return o.Detail > millrace.DetailSummary }

// textOnly returns the charge for pages without structure, in bytes per page.
func (p *planner) textOnly(o *protocol.Offer) float64 {
	if o.Detail == millrace.DetailText {
		return textCharge * p.bytes(p.page)
	}
	return 0
}

// findFills finds the ways to fetch a single page, best first.
func (p *planner) findFills() {
	type fill struct {
		name         string
		expectedCost expectedCost
		textOnly     float64
	}
	var all []fill
	for _, q := range p.open {
		o, each := q.way.Offer, loadOf(q.way.Offer.PerChange)
		if q.way.Protocol == Web {
			each = p.page
		} else if !brings(o) || o.PerChange.Requests == 0 || o.WithoutContent > 0 {
			continue
		}
		all = append(all, fill{q.way.Protocol, each, p.textOnly(o)})
	}
	slices.SortStableFunc(all, func(a, b fill) int {
		return cmp.Compare(p.bytes(a.expectedCost)+a.textOnly, p.bytes(b.expectedCost)+b.textOnly)
	})
	for _, f := range all {
		p.fills = append(p.fills, f.name)
	}
	if p.full = len(all) > 0; p.full {
		p.fill, p.structureCharge = all[0].expectedCost, all[0].textOnly
	}
}

func (p *planner) bytes(l expectedCost) float64 { return l.bytes + l.requests*float64(p.Header) }

// quote adds the cost of the fills of a way, and the charges for what the way lacks.
func (p *planner) quote(q *quote) {
	o := q.way.Offer
	changed := p.Changed * q.pages
	noContent := 0.0 // fraction of pages without content
	switch {
	case !brings(o):
		noContent = 1
	case o.Pages > 0:
		noContent = min(1, float64(o.WithoutContent)/q.pages)
	}
	if p.full {
		q.first = q.first.add(p.fill, noContent*q.pages)
		q.again = q.again.add(p.fill, noContent*changed)
	}
	page := p.bytes(p.page)
	lost := p.lost(q)
	if !p.full {
		lost += noContent * q.pages
	}
	textOnly := p.textOnly(o)*(1-noContent) + p.structureCharge*noContent
	q.firstCharge, q.refreshCharge = textOnly*q.pages+lostCharge*page*lost, textOnly*changed+lostCharge*page*lost
	// A coded collection shows deletions.
	if !o.Deletes && !q.coded {
		q.again = q.again.add(loadOf(o.First), 1/float64(p.Sweep))
	}
}

// switchCost returns the cost of changing to way q from another way. It is zero for the ways in
// Model.Previous and, on a new site, for the way of the first sync.
func (p *planner) switchCost(q, after *quote) expectedCost {
	known := q == after
	if len(p.Previous) > 0 {
		known = slices.Contains(p.Previous, q.way.Protocol)
	}
	if known {
		return expectedCost{}
	}
	return q.first
}

// best chooses the ways of the first sync and of a refresh with the lowest total cost over the
// expected rounds. For a site that was read before, it chooses the refresh by its own cost.
func (p *planner) best() (first, again *quote) {
	first, again = p.open[0], p.open[0]
	previous := p.Previous
	p.Previous = nil
	least := math.Inf(1)
	for _, f := range p.open {
		for _, a := range p.open {
			total := p.firstBytes(f) + float64(p.Rounds)*p.againBytes(a, f)
			if total < least {
				least, first, again = total, f, a
			}
		}
	}
	if p.Previous = previous; len(previous) > 0 {
		again = slices.MinFunc(p.open, func(a, b *quote) int { return cmp.Compare(p.againBytes(a, nil), p.againBytes(b, nil)) })
	}
	return first, again
}

func (p *planner) firstBytes(q *quote) float64 { return p.bytes(q.first) + q.firstCharge }

func (p *planner) againBytes(q, after *quote) float64 {
	return p.bytes(q.again) + q.refreshCharge + p.bytes(p.switchCost(q, after))/float64(p.Rounds)
}

// route describes the choice of q: for the first sync if after is nil, otherwise for a refresh
// after a first sync by after.
func (p *planner) route(q, after *quote) Route {
	bytes := func(q *quote) float64 {
		if after == nil {
			return p.firstBytes(q)
		}
		return p.againBytes(q, after)
	}
	r := Route{Primary: q.way.Protocol, Cost: q.first.cost()}
	if after != nil {
		r.Cost = q.again.cost()
	}
	if r.Primary != Web {
		r.Fill = slices.DeleteFunc(slices.Clone(p.fills), func(n string) bool { return n == r.Primary })
	}
	rest := slices.DeleteFunc(slices.Clone(p.open), func(o *quote) bool { return o == q })
	slices.SortStableFunc(rest, func(a, b *quote) int {
		return cmp.Or(cmpBool(a.way.Protocol == Web, b.way.Protocol == Web), cmp.Compare(bytes(a), bytes(b)))
	})
	for _, o := range rest {
		r.Next = append(r.Next, o.way.Protocol)
	}
	r.Why = p.why(q, after, rest, bytes)
	return r
}

func cmpBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
