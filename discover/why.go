package discover

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/protocol"
)

// why explains a choice in one sentence. rest contains the other usable ways, and bytes returns the
// cost of one. after is nil for the first sync.
func (p *planner) why(q, after *quote, rest []*quote, bytes func(*quote) float64) string {
	o := q.way.Offer
	var b strings.Builder
	l := q.first
	if after != nil {
		l = q.again
		fmt.Fprintf(&b, "%s%s when %s of the pages have changed", atLeast(q.way), costText(l), percentText(p.Changed))
		if !o.Deletes && !q.coded {
			fmt.Fprintf(&b, ", with a full read every %d refreshes to find deletions", p.Sweep)
		}
		if enter := p.switchCost(q, after); enter != (expectedCost{}) {
			fmt.Fprintf(&b, ", plus %s once", costText(enter))
		}
	} else {
		fmt.Fprintf(&b, "%s %s for %s%s", pagesText(o.Pages), carriesText(o.Detail), atLeast(q.way), costText(l))
	}
	switch {
	case !p.full || q.way.Protocol == Web:
	case !brings(o):
		fmt.Fprintf(&b, ", with the content via %s", p.site.label(p.fills[0]))
	case o.WithoutContent > 0:
		fmt.Fprintf(&b, ", with the content of %s via %s", pagesText(o.WithoutContent), p.site.label(p.fills[0]))
	}
	if len(rest) == 0 {
		b.WriteString("; there is no other way")
		return b.String()
	}
	next := rest[0]
	for _, r := range rest {
		if bytes(r) < bytes(next) {
			next = r
		}
	}
	l = next.first
	if after != nil {
		l = next.again
	}
	fmt.Fprintf(&b, "; %s", p.site.label(next.way.Protocol))
	switch n := p.lost(next); {
	case n >= 1:
		fmt.Fprintf(&b, ", without %s,", pagesText(int(n)))
	case next.way.Offer.Detail < o.Detail && brings(next.way.Offer):
		fmt.Fprintf(&b, ", %s,", carriesText(next.way.Offer.Detail))
	}
	fmt.Fprintf(&b, " would take %s%s", atLeast(next.way), costText(l))
	if after == nil && p.bytes(next.first) < p.bytes(q.first) {
		fmt.Fprintf(&b, " now, and %s for each refresh instead of %s", costText(next.again), costText(q.again))
	}
	if after != nil && p.switchCost(next, after) != (expectedCost{}) {
		fmt.Fprintf(&b, ", plus %s once", costText(p.switchCost(next, after)))
	}
	return b.String()
}

// closed returns the distinct reasons why no way can be used.
func (s *SiteReport) closed() string {
	var reasons []string
	ways := map[string][]string{}
	for _, w := range s.Ways {
		if w.Reason == "" {
			continue
		}
		if ways[w.Reason] == nil {
			reasons = append(reasons, w.Reason)
		}
		ways[w.Reason] = append(ways[w.Reason], s.label(w.Protocol))
	}
	switch len(reasons) {
	case 0:
		return "no way can be used"
	case 1:
		return "no way can be used: " + reasons[0]
	}
	for i, r := range reasons {
		reasons[i] = strings.Join(ways[r], ", ") + ": " + r
	}
	return "no way can be used: " + strings.Join(reasons, "; ")
}

// carriesText returns a short description of the detail of a way's pages.
func carriesText(d millrace.Detail) string {
	switch d {
	case millrace.DetailBlocks:
		return "with their blocks"
	case millrace.DetailText:
		return "as text"
	}
	return "as summaries"
}

func pagesText(n int) string {
	switch {
	case n < 0:
		return "its pages"
	case n == 1:
		return "1 page"
	}
	return number(int64(n)) + " pages"
}

// atLeast returns "at least " if the cost of a way is a lower bound: without a sitemap, only the
// pages to which the root links are known.
func atLeast(w *Way) string {
	if w.Protocol == Web && w.Offer.Pages < 0 {
		return "at least "
	}
	return ""
}

func costText(l expectedCost) string {
	return protocolCost(l.cost())
}

func protocolCost(c protocol.Cost) string {
	requests := number(c.Requests) + " requests"
	if c.Requests == 1 {
		requests = "1 request"
	}
	return requests + " and " + humanize.Bytes(c.Bytes)
}

func percentText(part float64) string {
	return strconv.FormatFloat(math.Round(part*10000)/100, 'f', -1, 64) + " %"
}

// number returns a count with commas between thousands.
func number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
