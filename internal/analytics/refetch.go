package analytics

import (
	"cmp"
	"fmt"
	"iter"
	"time"

	"github.com/millrace/millrace/store"
)

// refetches finds bots that fetch unchanged documents repeatedly.
func refetches(events iter.Seq2[store.Event, error]) ([]Unusual, error) {
	type subject struct {
		who
		path string
	}
	type state struct {
		size       int64 // size of each response; -1 = the size has changed
		asked      int64 // number of whole responses
		bytes      int64 // bytes sent for the last response
		unmodified bool  // a conditional request got a 304
		first      time.Time
		last       time.Time
	}
	seen := map[subject]*state{}
	families := map[string]string{}
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		page := e.Endpoint == store.EndpointFetch || e.Endpoint == store.EndpointIndex
		if !page || e.Status != 304 && (e.Status != 200 || e.Bytes == 0) {
			continue
		}
		k := subject{who{e.Bot, e.Protocol}, e.Path}
		s := seen[k]
		if s == nil {
			if len(seen) == maxPaths {
				continue // the most frequent keys are probably among the first
			}
			s = &state{size: cmp.Or(e.Size, e.Bytes), first: e.Time, last: e.Time}
			seen[k] = s
		}
		if e.Time.Before(s.first) {
			s.first = e.Time
		}
		if e.Time.After(s.last) {
			s.last = e.Time
		}
		if e.Status == 304 {
			s.unmodified = true
			continue
		}
		if s.asked > 0 && s.size != cmp.Or(e.Size, e.Bytes) {
			s.size = -1
		}
		s.asked, s.bytes = s.asked+1, e.Bytes
		families[e.Bot] = e.Family
	}
	found, most := map[who]*Unusual{}, map[who]int64{}
	for k, s := range seen {
		if s.asked < minRefetches || s.unmodified || s.size < 0 {
			continue
		}
		u := of(found, k.who)
		u.note(s.first, s.last, s.asked-1, (s.asked-1)*s.bytes)
		u.Reference++ // number of documents
		if n := most[k.who]; s.asked > n || s.asked == n && k.path < u.Path {
			most[k.who], u.Path = s.asked, k.path
		}
	}
	return finish(found, Refetches, func(k who, u *Unusual) bool {
		u.Bot, u.Family, u.Protocol = k.bot, families[k.bot], k.protocol
		u.Summary = fmt.Sprintf("%s has fetched %s in full, %d times more than necessary; most often %s, %d times.",
			named(u.Bot), counted(u.Reference, "unchanged document"), u.Requests, u.Path, most[k])
		u.Advice = "Conditional requests would get a 304 without a body. Tell the operator of the bot, or limit its rate."
		u.Flag = slower(u.Bot)
		return true
	}), nil
}
