package analytics

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/store"
)

// Pattern is a kind of unusual traffic.
type Pattern string

// Patterns of unusual traffic.
const (
	Refetches    Pattern = "refetches"     // fetches unchanged documents again in full
	Burst        Pattern = "burst"         // in one hour, fetches at least half as many pages as the site has
	Forged       Pattern = "forged"        // uses the name of another bot
	MissingPages Pattern = "missing-pages" // requests many paths that do not exist
	Surge        Pattern = "surge"         // sends ten times as many requests in a day as usual
)

// Unusual is one finding with its figures.
type Unusual struct {
	Pattern   Pattern   `json:"pattern"` // the pattern, such as "missing-pages"
	Bot       string    `json:"bot"`
	Family    string    `json:"family,omitempty"`
	Protocol  string    `json:"protocol,omitempty"` // protocol of the requests; absent if there are several
	From      time.Time `json:"from"`               // start of the period
	To        time.Time `json:"to"`                 // end of the period
	Requests  int64     `json:"requests"`           // number of unusual requests
	Reference int64     `json:"reference"`          // reference figure; the sentence in "summary" explains it
	Bytes     int64     `json:"bytes"`              // bytes sent
	Path      string    `json:"path,omitempty"`     // most frequent path
	Summary   string    `json:"summary"`            // what is unusual, in a sentence
	Advice    string    `json:"advice"`             // what to do
	Flag      string    `json:"flag,omitempty"`     // flag that implements the advice
}

// Thresholds for the patterns.
const (
	minRefetches     = 10      // minimum number of whole responses with the same content
	maxPaths         = 50_000  // maximum number of paths to count
	maxEvents        = 200_000 // maximum number of events to read, the newest ones
	minBurstPages    = 100     // minimum number of pages in an hour
	minForged        = 10
	minMissing       = 50 // minimum number of requests for missing paths
	missingShare     = 5  // minimum share of missing paths: one request in missingShare
	surgeFactor      = 10
	minSurgeRequests = 500 // a day with fewer requests is never unusual
	usualDays        = 3   // minimum number of days that define the usual traffic
	usualSpan        = 28 * 24 * time.Hour
)

// FindUnusual finds unusual traffic of a site since a time. pages is the number of
// its pages.
func FindUnusual(ctx context.Context, usage store.Usage, site string, since time.Time, pages int64) ([]Unusual, error) {
	since = since.UTC().Truncate(24 * time.Hour)
	return Patterns(
		usage.Sums(ctx, site, store.SumQuery{From: since, Per: store.Hour}),
		usage.Sums(ctx, site, store.SumQuery{From: since.Add(-usualSpan), Per: store.Day}),
		usage.Events(ctx, site, store.EventQuery{From: since, Newest: true, Limit: maxEvents}),
		since, pages)
}

// Patterns finds unusual traffic since a time in the given sums and events. hours are the hourly
// sums since then, days the daily sums until now. The order of events does not matter. The days
// before that time define the usual traffic. The finding with the most requests is first. Patterns
// returns the errors of the iterators.
func Patterns(hours, days iter.Seq2[store.Sum, error], events iter.Seq2[store.Event, error], since time.Time, pages int64) ([]Unusual, error) {
	var out []Unusual
	for _, find := range []func() ([]Unusual, error){
		func() ([]Unusual, error) { return refetches(events) },
		func() ([]Unusual, error) { return byHour(hours, pages) },
		func() ([]Unusual, error) { return surges(days, since) },
	} {
		found, err := find()
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	slices.SortFunc(out, func(a, b Unusual) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Bot, b.Bot), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Pattern, b.Pattern))
	})
	return out, nil
}

// who identifies a bot in a protocol; protocol "" = in all protocols.
type who struct{ bot, protocol string }

// note adds unusual requests of a bot.
func (u *Unusual) note(from, to time.Time, requests, bytes int64) {
	if u.From.IsZero() || from.Before(u.From) {
		u.From = from
	}
	if to.After(u.To) {
		u.To = to
	}
	u.Requests, u.Bytes = u.Requests+requests, u.Bytes+bytes
}

// of returns the value of a key, and creates it if it is absent.
func of[K comparable, V any](m map[K]*V, k K) *V {
	v := m[k]
	if v == nil {
		v = new(V)
		m[k] = v
	}
	return v
}

// finish sets the pattern of each finding and calls say, which sets its sentences. It returns the
// findings for which say returns true, because they exceed the thresholds.
func finish[K comparable](m map[K]*Unusual, p Pattern, say func(K, *Unusual) bool) (out []Unusual) {
	for k, u := range m {
		if u.Pattern = p; say(k, u) {
			out = append(out, *u)
		}
	}
	return out
}

// byHour finds patterns in hourly sums.
func byHour(hours iter.Seq2[store.Sum, error], pages int64) ([]Unusual, error) {
	type hour struct {
		start        time.Time
		pages, bytes int64
	}
	type absence struct {
		Unusual
		all int64
	}
	var (
		now     = map[who]*hour{}    // the hour being read
		busiest = map[who]*Unusual{} // the hour with the most requests for pages
		forged  = map[string]*Unusual{}
		gone    = map[string]*absence{}
		turned  = map[string]int64{} // refused requests of forged bots
	)
	for s, err := range hours {
		if err != nil {
			return nil, err
		}
		end := s.Start.Add(time.Duration(s.Per))
		k := who{s.Bot, s.Protocol}
		if s.Endpoint == store.EndpointFetch && s.Outcome == store.Sent && s.Per == store.Hour {
			h := of(now, k)
			if !h.start.Equal(s.Start) {
				*h = hour{start: s.Start}
			}
			h.pages, h.bytes = h.pages+s.Results, h.bytes+s.Bytes
			if u := of(busiest, k); h.pages > u.Requests {
				*u = Unusual{Bot: s.Bot, Family: s.Family, Protocol: s.Protocol, From: s.Start, To: end, Requests: h.pages, Bytes: h.bytes}
			}
		}
		if s.Identity == store.Forged {
			u := of(forged, s.Bot)
			u.Bot, u.Family = s.Bot, cmp.Or(u.Family, s.Family)
			u.note(s.Start, end, s.Events, s.Bytes)
			if s.Outcome == store.Refused {
				turned[s.Bot] += s.Events
			}
			continue // the other patterns apply only to genuine bots
		}
		a := of(gone, s.Bot)
		a.Bot, a.Family = s.Bot, cmp.Or(a.Family, s.Family)
		a.all += s.Events
		if s.Outcome == store.Missing {
			a.note(s.Start, end, s.Events, s.Bytes)
		}
	}
	out := finish(busiest, Burst, func(_ who, u *Unusual) bool {
		u.Reference = pages
		u.Summary = fmt.Sprintf("%s has requested pages %d times via %s within an hour; the site has %d pages.", named(u.Bot), u.Requests, u.Protocol, pages)
		u.Advice = "Limit its rate. It can find changes in the lists."
		u.Flag = slower(u.Bot)
		return u.Requests >= minBurstPages && u.Requests*2 >= pages
	})
	out = append(out, finish(forged, Forged, func(_ string, u *Unusual) bool {
		u.Reference = turned[u.Bot]
		u.Summary = fmt.Sprintf("Clients that are not %s have used its name in %s; %d of them were refused.", u.Bot, counted(u.Requests, "request"), u.Reference)
		u.Advice, u.Flag = "Refuse bots that do not prove their identity.", "--bot unverified=403"
		if u.Reference == u.Requests {
			u.Advice, u.Flag = "Nothing to do: all of them were refused.", ""
		}
		return u.Requests >= minForged
	})...)
	for _, a := range gone {
		u := &a.Unusual
		u.Pattern, u.Reference = MissingPages, a.all
		u.Summary = fmt.Sprintf("%s has requested missing pages %d times in %s.", named(u.Bot), u.Requests, counted(a.all, "request"))
		u.Advice = "Redirect pages that have moved. If the machine guesses paths, limit its rate."
		u.Flag = slower(u.Bot)
		if u.Requests >= minMissing && u.Requests*missingShare >= a.all {
			out = append(out, *u)
		}
	}
	return out, nil
}

// surges finds bots with far more requests in a day than usual.
func surges(days iter.Seq2[store.Sum, error], since time.Time) ([]Unusual, error) {
	type life struct {
		family        string
		day           time.Time // the day being read
		events, bytes int64     // sums of the day
		before, days  int64     // total of the events before since, and the number of days with events
		worst         Unusual
	}
	bots := map[string]*life{}
	end := func(l *life) {
		switch {
		case l.events == 0:
		case l.day.Before(since):
			l.before, l.days = l.before+l.events, l.days+1
		case l.events > l.worst.Requests:
			l.worst = Unusual{From: l.day, To: l.day.Add(24 * time.Hour), Requests: l.events, Bytes: l.bytes}
		}
		l.events, l.bytes = 0, 0
	}
	for s, err := range days {
		if err != nil {
			return nil, err
		}
		l := of(bots, s.Bot)
		if !l.day.Equal(s.Start) {
			end(l)
			l.day = s.Start
		}
		l.family = cmp.Or(l.family, s.Family)
		l.events, l.bytes = l.events+s.Events, l.bytes+s.Bytes
	}
	var out []Unusual
	for _, bot := range slices.Sorted(maps.Keys(bots)) {
		l := bots[bot]
		end(l)
		if l.days < usualDays {
			continue
		}
		u, usual := l.worst, l.before/l.days
		if u.Requests < minSurgeRequests || u.Requests < surgeFactor*usual {
			continue
		}
		u.Pattern, u.Bot, u.Family, u.Reference = Surge, bot, l.family, usual
		u.Summary = fmt.Sprintf("%s has sent %s on one day; on earlier days with requests, it sent %d on average.", named(bot), counted(u.Requests, "request"), usual)
		u.Advice = "Check what it requests, and limit its rate if necessary."
		u.Flag = slower(bot)
		out = append(out, u)
	}
	return out, nil
}

// nameless is the name of all unknown bots.
const nameless = "other"

// named returns the name of a bot in a sentence.
func named(bot string) string {
	if bot == nameless {
		return "An unknown bot"
	}
	return bot
}

// slower returns the flag that limits the rate of a bot, or of all unknown bots.
func slower(bot string) string {
	if bot == nameless {
		bot = "bots"
	}
	return "--bot " + bot + "=1/s"
}

// counted returns a number with its noun.
func counted(n int64, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprint(n, " ", of, "s")
}
