package discover_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/discover"
	"github.com/millrace/millrace/protocol"
)

// The following functions return ways into a site of a thousand pages, with realistic figures.

func scp() discover.Way { // a snapshot and deltas
	return way("scp", protocol.Offer{
		Pages: 1000, Detail: millrace.DetailBlocks, Collection: "all",
		First: cost(2, 2_500_000), Unchanged: cost(1, 0), Changed: cost(2, 4_000), PerChange: cost(0, 2_500),
	})
}

// coded returns a way whose documents the server sends as changes.
func coded(w discover.Way) discover.Way {
	w.SendsChanges = true
	return w
}

func openfeeder() discover.Way {
	return way("openfeeder", protocol.Offer{
		Pages: 1000, Detail: millrace.DetailBlocks, Deletes: true,
		First: cost(1010, 3_400_000), Unchanged: cost(1, 200), Changed: cost(1, 400), PerChange: cost(1, 3_300),
	})
}

func tct() discover.Way {
	return way("tct-01", protocol.Offer{
		Pages: 1000, Detail: millrace.DetailText, Deletes: true,
		First: cost(1002, 2_900_000), Unchanged: cost(1, 0), Changed: cost(1, 80_000), PerChange: cost(1, 2_800),
	})
}

func arc() discover.Way {
	return way("arc", protocol.Offer{
		Pages: 1000, Detail: millrace.DetailSummary, Deletes: true,
		First: cost(1, 300_000), Unchanged: cost(1, 0), Changed: cost(1, 3_000), PerChange: cost(0, 300),
	})
}

func web() discover.Way {
	return way(discover.Web, protocol.Offer{
		Pages: 1000, Detail: millrace.DetailBlocks, Deletes: true,
		First: cost(1001, 12_020_000), Unchanged: cost(1001, 0), Changed: cost(1001, 20_000), PerChange: cost(0, 12_000),
	})
}

func way(name string, o protocol.Offer) discover.Way {
	return discover.Way{Protocol: name, Offer: &o, Allowed: true}
}

func cost(requests, bytes int64) protocol.Cost {
	return protocol.Cost{Requests: requests, Bytes: bytes}
}

// but returns a copy of a way after a change.
func but(w discover.Way, change func(w *discover.Way)) discover.Way {
	o := *w.Offer
	w.Offer = &o
	change(&w)
	return w
}

func TestPlan(t *testing.T) {
	closed := func(w *discover.Way) { w.Allowed, w.Reason = false, "closed" }
	for _, c := range []struct {
		name           string
		ways           []discover.Way
		model          *discover.Model
		first, refresh string
	}{
		{
			"everything",
			[]discover.Way{coded(scp()), tct(), openfeeder(), arc(), web()},
			nil,
			"scp fill openfeeder tct-01 crawl", "scp fill openfeeder tct-01 crawl",
		},
		{
			"in another order",
			[]discover.Way{arc(), openfeeder(), tct(), coded(scp()), web()},
			nil,
			"scp fill openfeeder tct-01 crawl", "scp fill openfeeder tct-01 crawl",
		},
		{"the plain web", []discover.Way{web()}, nil, "crawl", "crawl"},
		{"summaries", []discover.Way{arc(), web()}, nil, "arc fill crawl", "arc fill crawl"},
		{"summaries, once", []discover.Way{arc(), web()}, &discover.Model{Rounds: 1, Changed: 0.5}, "crawl", "crawl"},
		{"text is thinner and far cheaper", []discover.Way{tct(), web()}, nil, "tct-01 fill crawl", "tct-01 fill crawl"},
		{"text is thinner and not so much cheaper", []discover.Way{but(tct(), func(w *discover.Way) {
			w.Offer.First, w.Offer.PerChange, w.Offer.Changed = cost(1002, 2_900_000), cost(1, 2_800), cost(1, 80_000)
		}), openfeeder(), web()}, nil, "openfeeder fill tct-01 crawl", "openfeeder fill tct-01 crawl"},
		{"blocks at any price", []discover.Way{tct(), but(openfeeder(), func(w *discover.Way) {
			w.Offer.First, w.Offer.PerChange = cost(9000, 9_000_000), cost(9, 9_000)
		})}, nil, "tct-01 fill openfeeder", "tct-01 fill openfeeder"},
		{
			"deltas beside a way that reports deletions",
			[]discover.Way{scp(), openfeeder(), web()},
			nil,
			"openfeeder fill crawl", "openfeeder fill crawl",
		},
		{
			"deltas without a way that reports deletions",
			[]discover.Way{scp(), tct(), web()},
			nil,
			"scp fill tct-01 crawl", "scp fill tct-01 crawl",
		},
		{
			"the same, with many rounds",
			[]discover.Way{scp(), tct(), web()},
			&discover.Model{Rounds: 50},
			"scp fill tct-01 crawl", "tct-01 fill crawl",
		}, // first a way with rich content, then a cheap way for refreshes
		{
			"the same, with few full reads",
			[]discover.Way{scp(), tct(), web()},
			&discover.Model{Rounds: 50, Sweep: 100},
			"scp fill tct-01 crawl", "scp fill tct-01 crawl",
		},
		{
			"the last snapshot is a dictionary",
			[]discover.Way{scp(), tct(), openfeeder(), web()},
			&discover.Model{Rounds: 50, Previous: []string{"scp", "tct-01"}, HasDictionary: func(u string) bool { return u == "all" }},
			"scp fill openfeeder tct-01 crawl", "scp fill openfeeder tct-01 crawl",
		},
		{
			"the last list is a dictionary",
			[]discover.Way{scp(), but(tct(), func(w *discover.Way) { w.Offer.Entry, w.Offer.Detail = "list", millrace.DetailBlocks })},
			&discover.Model{Previous: []string{"scp", "tct-01"}, Sweep: 40, HasDictionary: func(u string) bool { return u == "list" }},
			"scp fill tct-01", "tct-01",
		},
		{
			"no list is a dictionary",
			[]discover.Way{scp(), but(tct(), func(w *discover.Way) { w.Offer.Entry, w.Offer.Detail = "list", millrace.DetailBlocks })},
			&discover.Model{Previous: []string{"scp", "tct-01"}, Sweep: 40},
			"scp fill tct-01", "scp fill tct-01",
		},
		{"part of the site", []discover.Way{
			but(scp(), func(w *discover.Way) { w.Offer.Pages, w.Offer.First = 100, cost(2, 250_000) }), tct(), openfeeder(), web(),
		}, nil, "openfeeder fill tct-01 crawl", "openfeeder fill tct-01 crawl"},
		{"a count that is guessed takes no page from those that have counted", []discover.Way{
			coded(scp()), openfeeder(), but(arc(), func(w *discover.Way) { w.Offer.Pages, w.Offer.Estimated = 1070, true }), web(),
		}, nil, "scp fill openfeeder crawl", "scp fill openfeeder crawl"},
		{"pages that a protocol has no documents for", []discover.Way{
			coded(but(scp(), func(w *discover.Way) { w.Offer.Pages = 980 })), openfeeder(),
			but(web(), func(w *discover.Way) { w.Offer.Pages = 1700 }),
		}, nil, "scp fill openfeeder crawl", "scp fill openfeeder crawl"},
		{"pages without content", []discover.Way{
			but(tct(), func(w *discover.Way) { w.Offer.WithoutContent = 900 }), openfeeder(), web(),
		}, nil, "openfeeder fill crawl", "openfeeder fill crawl"},
		{"summaries, filled with text, beside blocks", []discover.Way{
			arc(), tct(), but(scp(), func(w *discover.Way) { w.Offer.Changed = cost(2, 72_000) }),
		}, nil, "scp fill tct-01", "arc fill tct-01"},
		{"unknown number of pages", []discover.Way{
			but(web(), func(w *discover.Way) { w.Offer.Pages = -1 }), but(tct(), func(w *discover.Way) { w.Offer.Pages = -1 }),
		}, nil, "tct-01 fill crawl", "tct-01 fill crawl"},
		{"read before by a way that is not the best now", []discover.Way{ // today's best way is not cheap enough to switch
			coded(scp()), but(openfeeder(), func(w *discover.Way) { w.Offer.Changed = cost(1, 9_000) }),
		}, &discover.Model{Previous: []string{"openfeeder"}}, "scp fill openfeeder", "openfeeder"},
		{
			"read before by a way that has become expensive",
			[]discover.Way{coded(scp()), openfeeder(), web()},
			&discover.Model{Previous: []string{"crawl"}}, "scp fill openfeeder crawl", "scp fill openfeeder crawl",
		},
		{
			"closed ways",
			[]discover.Way{but(scp(), closed), but(openfeeder(), closed), tct(), web()},
			nil,
			"tct-01 fill crawl", "tct-01 fill crawl",
		},
		{"what has been read before", []discover.Way{ // switching must save more than it costs
			but(scp(), func(w *discover.Way) { w.Offer.Changed = cost(2, 2_500_000) }),
			but(tct(), func(w *discover.Way) { w.Offer.First = cost(1002, 29_000_000) }),
		}, &discover.Model{Previous: []string{"tct-01"}}, "scp fill tct-01", "tct-01"},
		{"no way", []discover.Way{{Protocol: "crawl", Reason: "the root is no HTML: image/png", Allowed: true}}, nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &discover.SiteReport{Ways: c.ways, Page: cost(1, 12_000)}
			p := s.Plan(c.model)
			if got := line(p.First); got != c.first {
				t.Errorf("first: %s; want %s\n%s", got, c.first, p.First.Why)
			}
			if got := line(p.Refresh); got != c.refresh {
				t.Errorf("refresh: %s; want %s\n%s", got, c.refresh, p.Refresh.Why)
			}
			for _, r := range []discover.Route{p.First, p.Refresh} {
				if r.Why == "" {
					t.Error("no reason")
				}
				if n := len(r.Next); r.Primary != "" && n != open(c.ways)-1 {
					t.Errorf("%d ways are next to %s: %v", n, r.Primary, r.Next)
				}
				if i := strings.Index(strings.Join(append(r.Next, ""), " "), "crawl "); i >= 0 && r.Next[len(r.Next)-1] != "crawl" {
					t.Errorf("the plain web is not the last resort: %v", r.Next)
				}
			}
		})
	}
}

func open(ways []discover.Way) (n int) {
	for _, w := range ways {
		if w.Open() {
			n++
		}
	}
	return n
}

// line returns a route in a line.
func line(r discover.Route) string {
	s := r.Primary
	if len(r.Fill) > 0 {
		s += " fill " + strings.Join(r.Fill, " ")
	}
	return s
}

// The cost of a plan is the sum of the costs of its parts.
func TestPlanCost(t *testing.T) {
	s := &discover.SiteReport{Ways: []discover.Way{coded(scp()), openfeeder(), arc(), web()}, Page: cost(1, 12_000)}
	p := s.Plan(&discover.Model{Changed: 0.02})
	moved := 1 - math.Pow(0.98, 1000) // close to 1: the probability that something has changed
	want := protocol.Cost{
		Requests: int64(math.Ceil(1 + moved)),
		Bytes:    int64(math.Ceil(moved*400 + 20*(2_500+80))),
	}
	if d := cmp.Diff(want, p.Refresh.Cost); d != "" {
		t.Errorf("of a refresh (-want +got):\n%s", d)
	}
	if d := cmp.Diff(cost(2, 2_500_000), p.First.Cost); d != "" {
		t.Errorf("of the first sync (-want +got):\n%s", d)
	}
	var names []string
	for _, q := range p.Quotes {
		names = append(names, q.Protocol)
	}
	if d := cmp.Diff([]string{"scp", "openfeeder", "arc", "crawl"}, names); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(cost(1001, 240_000+20_000), p.Quotes[3].Refresh); d != "" {
		t.Errorf("of the web (-want +got):\n%s", d)
	}
	arcs := (&discover.SiteReport{Ways: []discover.Way{arc(), web()}, Page: cost(1, 12_000)}).Plan(nil)
	if d := cmp.Diff(cost(1001, 300_000+12_000_000), arcs.First.Cost); d != "" {
		t.Errorf("of summaries and what fills them (-want +got):\n%s", d)
	}
}

// Why states the decisive reason.
func TestPlanWhy(t *testing.T) {
	closed := but(web(), func(w *discover.Way) { w.Allowed, w.Reason = false, "robots.txt disallows it" })
	few := but(scp(), func(w *discover.Way) { w.Offer.Pages = 100 })
	half := but(openfeeder(), func(w *discover.Way) { w.Offer.WithoutContent = 500 })
	for _, c := range []struct {
		ways           []discover.Way
		first, refresh string
	}{
		{
			[]discover.Way{arc(), web()},
			"1,000 pages as summaries for 1,001 requests and 12.3 MB, with the content via crawl; crawl would take 1,001 requests and 12.0 MB now, " +
				"and 1,001 requests and 140.0 kB for each refresh instead of 11 requests and 126.0 kB",
			"11 requests and 126.0 kB when 1 % of the pages have changed, with the content via crawl; crawl would take 1,001 requests and 140.0 kB, " +
				"plus 1,001 requests and 12.0 MB once",
		},
		{
			[]discover.Way{scp(), closed},
			"1,000 pages with their blocks for 2 requests and 2.5 MB; there is no other way",
			"3 requests and 386.1 kB when 1 % of the pages have changed, with a full read every 7 refreshes to find deletions; there is no other way",
		},
		{
			[]discover.Way{few, tct()},
			"1,000 pages as text for 1,002 requests and 2.9 MB; scp, without 850 pages, would take 2 requests and 2.5 MB now, " +
				"and 2 requests and 362.2 kB for each refresh instead of 11 requests and 108.0 kB",
			"11 requests and 108.0 kB when 1 % of the pages have changed; scp, without 850 pages, would take 2 requests and 362.2 kB, " +
				"plus 2 requests and 2.5 MB once",
		},
		{
			[]discover.Way{half, web()},
			"1,000 pages with their blocks for 1,510 requests and 9.4 MB, with the content of 500 pages via crawl; crawl would take 1,001 requests and 12.0 MB",
			"16 requests and 93.4 kB when 1 % of the pages have changed, with the content of 500 pages via crawl; crawl would take 1,001 requests and 140.0 kB, " +
				"plus 1,001 requests and 12.0 MB once",
		},
		{[]discover.Way{closed}, "no way can be used: robots.txt disallows it", "no way can be used: robots.txt disallows it"},
	} {
		p := (&discover.SiteReport{Ways: c.ways, Page: cost(1, 12_000)}).Plan(nil)
		if d := cmp.Diff([]string{c.first, c.refresh}, []string{p.First.Why, p.Refresh.Why}); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// A refresh of a small site that rarely changes costs little more than one conditional request.
func TestPlanQuiet(t *testing.T) {
	few := func(w *discover.Way) { w.Offer.Pages = 10 }
	s := &discover.SiteReport{Ways: []discover.Way{but(tct(), few)}, Page: cost(1, 12_000)}
	p := s.Plan(&discover.Model{Changed: 0.0001})
	if c := p.Refresh.Cost; c.Bytes > 100 {
		t.Errorf("a refresh that is mostly a 304: %v", c)
	}
}

// A report survives encoding and decoding unchanged.
func TestSiteJSON(t *testing.T) {
	s := &discover.SiteReport{
		URL: "https://example.com/", Ways: []discover.Way{scp(), openfeeder(), web()}, Page: cost(1, 12_000), Absent: []string{"arc"},
		Licenses: []discover.License{{URL: "https://example.com/license", From: "Link"}},
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back discover.SiteReport
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s, &back); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(s.Plan(nil), back.Plan(nil)); d != "" {
		t.Error(d)
	}
}

// Plan returns a plan for any report, without a panic.
func FuzzPlan(f *testing.F) {
	for _, w := range []discover.Way{scp(), openfeeder(), arc(), web()} {
		b, err := json.Marshal(&discover.SiteReport{Ways: []discover.Way{w, tct()}, Page: cost(1, 12_000)})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, 0.01)
		f.Add(b, math.NaN())
	}
	f.Fuzz(func(t *testing.T, data []byte, changed float64) {
		var s discover.SiteReport
		if json.Unmarshal(data, &s) != nil {
			return
		}
		p := s.Plan(&discover.Model{Changed: changed})
		for _, r := range []discover.Route{p.First, p.Refresh} {
			if r.Why == "" {
				t.Error("no reason")
			}
			taken := func(w discover.Way) bool { return w.Open() && w.Protocol == r.Primary }
			if open(s.Ways) > 0 && !slices.ContainsFunc(s.Ways, taken) || open(s.Ways) == 0 && r.Primary != "" {
				t.Errorf("%q of %s", r.Primary, data)
			}
		}
	})
}

func ExampleSiteReport_Plan() {
	s := &discover.SiteReport{Ways: []discover.Way{coded(scp()), openfeeder(), web()}, Page: cost(1, 12_000)}
	p := s.Plan(nil)
	fmt.Println(p.First.Primary + ": " + p.First.Why)
	fmt.Println(p.Refresh.Primary + ": " + p.Refresh.Why)
	// Output:
	// scp: 1,000 pages with their blocks for 2 requests and 2.5 MB; openfeeder would take 1,010 requests and 3.4 MB
	// scp: 2 requests and 26.2 kB when 1 % of the pages have changed; openfeeder would take 11 requests and 33.4 kB, plus 1,010 requests and 3.4 MB once
}
