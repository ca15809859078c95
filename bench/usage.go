package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// The numbers of bots, pages and protocols in a typical mix of bot requests to a site.
const (
	usageBots      = 30
	usagePages     = 20_000
	usageProtocols = 7
)

var protocolNames = [usageProtocols]string{"html", "tct-01", "tct-00", "web", "scp", "arc", "openfeeder"}

// visitor generates events and keeps the site's clock.
type visitor struct {
	rng   *rand.Rand
	now   time.Time
	scale int64 // number of requests that one event represents
}

// event returns the next event, about the given time after the last one.
func (v *visitor) event(after time.Duration) store.Event {
	rng := v.rng
	v.now = v.now.Add(time.Duration(rng.ExpFloat64() * float64(after)))
	bot, proto := int(rng.ExpFloat64()*usageBots/4)%usageBots, int(rng.ExpFloat64()*2)%usageProtocols
	page := int(rng.ExpFloat64()*usagePages/6) % usagePages
	e := store.Event{
		Time: v.now, Bot: fmt.Sprintf("ExampleBot-%d", bot), Family: fmt.Sprintf("family-%d", bot/2), Protocol: protocolNames[proto],
		Endpoint: store.EndpointFetch, Status: 200, Path: fmt.Sprintf("/%d/%02d/%s-%s-%s-%d/", 2008+page%18, page%12+1,
			words[page%len(words)], words[page/7%len(words)], words[page/31%len(words)], page),
		HTML: int64(15_000+page*7919%90_000) * v.scale, Received: int64(5000+page*3571%20_000) * v.scale,
		Took: time.Duration(20+rng.IntN(600)) * time.Microsecond * time.Duration(v.scale),
	}
	if bot%3 == 0 {
		e.Identity = store.Verified
	}
	switch k := rng.IntN(100); {
	case k < 35:
		e.Status, e.Cached = 304, true
	case k < 40:
		e.Status, e.Path, e.HTML, e.Received = 404, fmt.Sprintf("/wp-content/%s/%x", words[rng.IntN(len(words))], rng.IntN(1<<20)), 0, 0
	case k < 43:
		e.Status, e.Path, e.HTML, e.Received = 429, "/llms.txt", 0, 0
	case k < 53:
		e.Endpoint, e.Path, e.Results, e.Cached, e.HTML, e.Received = store.EndpointIndex, "/llm-sitemap.json", usagePages*v.scale, true, 0, 0
	case k < 60:
		e.Endpoint, e.Path, e.HTML, e.Received = store.EndpointSearch, "/openfeeder", 0, 0
		e.Query = fmt.Sprintf("%s %s of the %s", words[rng.IntN(len(words))], words[rng.IntN(len(words))], words[rng.IntN(len(words))])
		e.Results, e.Intent = rng.Int64N(10)*v.scale, "answer"
	case k < 68:
		e.Endpoint, e.Path, e.HTML, e.Received = store.EndpointDiscovery, "/robots.txt", 0, 0
	case k < 72:
		e.Endpoint, e.Path, e.HTML, e.Received = store.EndpointFile, fmt.Sprintf("/img/%d.webp", rng.IntN(3000)), 0, 0
	}
	if e.Status == 200 {
		e.Size = int64(2000+page*6151%12_000) * v.scale
		e.Bytes = e.Size * 2 / 5
	}
	return e
}

const (
	visitDays  = 30
	visitBatch = 1000
)

// visit records n events over 30 days, with hourly cleanup except at the end, and returns the time
// that the store needed.
func (v *visitor) visit(ctx context.Context, st store.Usage, n int) (spent time.Duration, err error) {
	tidied := v.now
	events := make([]store.Event, visitBatch)
	for i := 0; i < n; i += len(events) {
		for j := range events {
			events[j] = v.event(visitDays * 24 * time.Hour / time.Duration(n))
		}
		began := time.Now()
		if err := st.Record(ctx, benchSite, events); err != nil {
			return 0, err
		}
		if v.now.Sub(tidied) >= time.Hour && i < n-len(events)*10 {
			if err := st.Tidy(ctx, store.Lease{}, benchSite, v.now.AddDate(0, 0, -visitDays), v.now.AddDate(0, 0, -visitDays)); err != nil {
				return 0, err
			}
			tidied = v.now
		}
		spent += time.Since(began)
	}
	return spent, nil
}

// usageStore creates an empty store with one site.
func (b *bench) usageStore(ctx context.Context, name string, now func() time.Time) (st store.Store, file string, err error) {
	file = filepath.Join(b.dir, name+".db")
	if st, err = stores.Open(ctx, file, &store.Options{Now: now}); err != nil {
		return nil, "", err
	}
	_, err = st.Site(ctx, benchSite, benchSite)
	return st, file, err
}

// usage measures stored events: their size, and the speed of reading them.
func (b *bench) usage(ctx context.Context, large bool) error {
	for _, hourly := range []bool{false, true} {
		for _, batch := range []int{1, 10, 23, 4000} {
			if err := b.usageSize(ctx, batch, hourly); err != nil {
				return err
			}
		}
	}
	if err := b.usageYear(ctx); err != nil {
		return err
	}
	n := 1_000_000
	if large {
		n = 10_000_000
	}
	if err := b.usageRead(ctx, n); err != nil {
		return err
	}
	return b.usageOverview(ctx, n)
}

// usageSize measures the stored size of an event before it is rolled up, if events are recorded in
// batches of the given size.
func (b *bench) usageSize(ctx context.Context, batch int, hourly bool) error {
	n := max(20_000, min(400_000, batch*8000)) / batch * batch
	st, file, err := b.usageStore(ctx, fmt.Sprint("usage-", batch, hourly), nil)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	// With a million events a day, `serve`, which writes every two seconds, writes batches of 23
	// events.
	after := 2 * time.Second / time.Duration(min(batch, 23))
	v := &visitor{rng: rand.New(rand.NewPCG(1, uint64(batch))), now: time.Now().Add(-time.Duration(n) * after), scale: 1}
	tidied := v.now
	events := make([]store.Event, batch)
	for i := 0; i < n; i += batch {
		for j := range events {
			events[j] = v.event(after)
		}
		if err := st.Usage().Record(ctx, benchSite, events); err != nil {
			return err
		}
		if hourly && v.now.Sub(tidied) >= time.Hour {
			if err := st.Usage().Tidy(ctx, store.Lease{}, benchSite, time.Time{}, time.Time{}); err != nil {
				return err
			}
			tidied = v.now
		}
	}
	if err := st.Close(); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	how := "never cleaned up"
	if hourly {
		how = "cleaned up hourly"
	}
	each := float64(info.Size()) / float64(n)
	b.add(row{
		what: fmt.Sprintf("size of the store, %d events in batches of %d, %s", n, batch, how), limit: "150 bytes an event",
		ours: fmt.Sprintf("%.1f bytes an event", each), ratio: fmt.Sprintf("%.2f", each/150), reach: "at most 1", good: each <= 150,
	})
	return os.Remove(file)
}

// usageYear measures a store after a year of 1,000,000 requests a day, whose events have been
// deleted. It records 25,000 events a day, each for 40 requests. That creates the same number of
// sums and top entries, with numbers of the same magnitude, except for the counts of events.
func (b *bench) usageYear(ctx context.Context) error {
	const each, days, daily = 40, 365, 25_000
	v := &visitor{rng: rand.New(rand.NewPCG(2, 2)), now: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), scale: each}
	st, file, err := b.usageStore(ctx, "usage-year", func() time.Time { return v.now })
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	events := make([]store.Event, daily/5)
	for i := range days * 5 {
		for j := range events {
			events[j] = v.event(86400 * time.Second / daily)
		}
		if err := st.Usage().Record(ctx, benchSite, events); err != nil {
			return err
		}
		if i%5 == 4 {
			if err := st.Usage().Tidy(ctx, store.Lease{}, benchSite, v.now.Add(-time.Hour), v.now.AddDate(0, 0, -30)); err != nil {
				return err
			}
		}
	}
	began, sums := time.Now(), 0
	for _, err := range st.Usage().Sums(ctx, benchSite, store.SumQuery{Per: store.Day}) {
		if err != nil {
			return err
		}
		sums++
	}
	took := time.Since(began)
	began = time.Now()
	if _, err := st.Usage().Top(ctx, benchSite, store.TopPages, time.Time{}, time.Time{}, 20); err != nil {
		return err
	}
	top := time.Since(began)
	if err := st.Close(); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	mb := float64(info.Size()) / 1e6
	b.add(row{
		what: fmt.Sprintf("size of the store, a year of 1,000,000 events a day rolled up, %d daily sums, 30 days of hourly sums", sums), limit: "500 MB",
		ours: fmt.Sprintf("%.0f MB", mb), ratio: fmt.Sprintf("%.2f", mb/500), reach: "at most 1", good: mb <= 500,
	})
	b.add(row{
		what: "all daily sums of that year, and its 20 most requested pages", limit: "",
		ours: fmt.Sprintf("%.0f ms, %.0f ms", float64(took.Microseconds())/1e3, float64(top.Microseconds())/1e3),
	})
	return os.Remove(file)
}

// usageRead measures how fast sums, lists and events are read from a store with n events of 30 days,
// and how much memory that takes.
func (b *bench) usageRead(ctx context.Context, n int) error {
	const days = visitDays
	v := &visitor{rng: rand.New(rand.NewPCG(3, 3)), now: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), scale: 1}
	st, file, err := b.usageStore(ctx, "usage-read", func() time.Time { return v.now })
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	spent, err := v.visit(ctx, st.Usage(), n)
	if err != nil {
		return err
	}
	b.add(row{
		what: fmt.Sprintf("recording %d events in batches of %d, with cleanup every hour", n, visitBatch),
		ours: fmt.Sprintf("%.1f µs an event", float64(spent.Microseconds())/float64(n)),
	})
	since := v.now.AddDate(0, 0, -days)
	query := func() error {
		for _, per := range []store.Period{store.Day, store.Hour} {
			from := since
			if per == store.Hour {
				from = v.now.AddDate(0, 0, -1)
			}
			for _, err := range st.Usage().Sums(ctx, benchSite, store.SumQuery{Per: per, From: from}) {
				if err != nil {
					return err
				}
			}
		}
		for _, of := range []store.Topic{store.TopPages, store.TopQueries, store.TopMissing} {
			if _, err := st.Usage().Top(ctx, benchSite, of, since, time.Time{}, 10); err != nil {
				return err
			}
		}
		failed := store.EventQuery{Newest: true, Outcomes: []store.Outcome{store.Missing}, Limit: 50}
		for _, err := range st.Usage().Events(ctx, benchSite, failed) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	var took []float64
	var before, after runtime.MemStats
	debug.FreeOSMemory()
	runtime.ReadMemStats(&before)
	for range 5 {
		began := time.Now()
		if err := query(); err != nil {
			return err
		}
		took = append(took, float64(time.Since(began).Microseconds())/1e3)
	}
	runtime.ReadMemStats(&after)
	ms := median(took)
	b.add(row{
		what:  fmt.Sprintf("sums of 30 days and of 24 hours, three lists of the most requested, the last 50 missing, of %d events", n),
		limit: "300 ms", ours: fmt.Sprintf("%.0f ms (the first %.0f), the heap from %d to %d MB", ms, took[0], before.HeapSys>>20, after.HeapSys>>20),
		ratio: fmt.Sprintf("%.2f", ms/300), reach: "below 1", good: ms < 300,
	})
	return os.Remove(file)
}
