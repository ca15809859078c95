package analytics

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/store"
)

// Savings holds the sums of savings in a period.
type Savings struct {
	From      time.Time       `json:"from,omitzero"` // start of the report; absent if the report starts with the first record
	To        time.Time       `json:"to,omitzero"`   // end of the report; absent if the report ends now
	Pages     Pages           `json:"page_sizes"`    // number and mean size of the site's pages, from which the savings are computed
	Total     Saved           `json:"total"`         // sum of all bots
	Bots      []BotSaved      `json:"bots"`          // sums by bot, the most requests first
	Protocols []ProtocolSaved `json:"protocols"`     // sums by protocol
	Days      []DateSaved     `json:"days"`          // sums by day, the oldest first
}

// BotSaved contains the savings of one bot.
type BotSaved struct {
	Bot    string `json:"bot"`
	Family string `json:"family,omitempty"`
	Saved
}

// ProtocolSaved contains the savings by one protocol.
type ProtocolSaved struct {
	Protocol string `json:"protocol"`
	Saved
}

// DateSaved contains the savings on one day in UTC.
type DateSaved struct {
	Day time.Time `json:"day"` // the day, in UTC
	Saved
}

// Sum returns the savings between two times. It also calls each with every DaySaved, unless
// each is nil. Errors are those of the store.
func Sum(ctx context.Context, usage store.Usage, site string, from, to time.Time, pages Pages, c savings.Coefficients, each func(DaySaved)) (*Savings, error) {
	out, err := SumOf(usage.Sums(ctx, site, store.SumQuery{From: from, To: to, Per: store.Day}), pages, c, each)
	if err != nil {
		return nil, err
	}
	out.From, out.To = from, to
	return out, nil
}

// SumOf returns the savings computed from daily sums, which are ordered by day, bot and protocol.
// It also calls each with every DaySaved, unless each is nil.
func SumOf(sums iter.Seq2[store.Sum, error], pages Pages, c savings.Coefficients, each func(DaySaved)) (*Savings, error) {
	out := &Savings{Pages: pages, Bots: []BotSaved{}, Protocols: []ProtocolSaved{}, Days: []DateSaved{}}
	var total []*Saved
	bots, protocols := map[string]*BotSaved{}, map[string]*ProtocolSaved{}
	for d, err := range ByDay(sums, pages, c) {
		if err != nil {
			return nil, err
		}
		if each != nil {
			each(d)
		}
		if n := len(out.Days); n == 0 || !out.Days[n-1].Day.Equal(d.Day) {
			out.Days = append(out.Days, DateSaved{Day: d.Day, Saved: none()})
		}
		b, p := bots[d.Bot], protocols[d.Protocol]
		if b == nil {
			b = &BotSaved{Bot: d.Bot, Saved: none()}
			bots[d.Bot] = b
		}
		if p == nil {
			p = &ProtocolSaved{Protocol: d.Protocol, Saved: none()}
			protocols[d.Protocol] = p
		}
		b.Family = cmp.Or(b.Family, d.Family)
		total = append(total[:0], &b.Saved, &p.Saved, &out.Days[len(out.Days)-1].Saved)
		for _, s := range total {
			s.Add(&d.Saved)
		}
	}
	out.Total = none()
	for _, b := range bots {
		out.Bots = append(out.Bots, *b)
		out.Total.Add(&b.Saved)
	}
	for _, p := range protocols {
		out.Protocols = append(out.Protocols, *p)
	}
	slices.SortFunc(out.Bots, func(a, b BotSaved) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Bot, b.Bot))
	})
	slices.SortFunc(out.Protocols, func(a, b ProtocolSaved) int { return cmp.Compare(a.Protocol, b.Protocol) })
	return out, nil
}

// none returns a Saved without any savings.
func none() Saved {
	var s Saved
	s.Bytes.Basis, s.Tokens.Basis, s.KWh.Basis, s.ZeroFetch.Basis = savings.Measured, savings.Estimate, savings.Estimate, savings.Estimate
	return s
}
