package report

import (
	"cmp"
	"hash/maphash"
	"iter"
	"maps"
	"math/bits"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/accesslog"
	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/store"
)

// Log describes the access logs of another server, and the traffic of machines in them.
type Log struct {
	Files    []string            `json:"files"`              // names of the logs
	Lines    int64               `json:"lines"`              // lines of the logs
	Long     int64               `json:"long_lines"`         // lines of 1 MB and more, which were skipped
	Unknown  int64               `json:"unknown_lines"`      // lines that are not requests in a known format
	Examples []accesslog.Example `json:"examples,omitempty"` // the first unknown lines
	Damaged  []string            `json:"damaged,omitempty"`  // errors of files that were read in part
	Skipped  int64               `json:"skipped"`            // requests to other sites, or before the start of the report
	Own      int64               `json:"own"`                // requests of the operator's millrace, which were skipped
	Others   int64               `json:"others"`             // requests of people, and of machines that do not identify themselves
	NoAgent  int64               `json:"no_agent"`           // requests without a user agent, which are included in "others"
	AllBytes int64               `json:"all_bytes"`          // bytes of all requests
	Timed    bool                `json:"timed"`              // the logs contain durations

	First         time.Time `json:"first,omitzero"`  // time of the first request of a machine
	Last          time.Time `json:"last,omitzero"`   // time of the last request of a machine
	Machines      []Machine `json:"machines"`        // sorted by number of requests, the largest first
	Total         Traffic   `json:"traffic"`         // sums over all machines
	TopPages      []TopPage `json:"top_pages"`       // the pages with the most requests
	TopOther      []TopPage `json:"top_other"`       // the user agents of unknown bots with the most requests
	MaxCountError int64     `json:"max_count_error"` // maximum number by which a count in the top lists is too low

	Documents *Documents `json:"documents,omitempty"` // comparison with Markdown documents of the same pages; absent if no page was sent
}

// Machine is the traffic of one bot.
type Machine struct {
	Bot      string            `json:"bot"`
	Family   string            `json:"family,omitempty"`
	Purpose  bots.Purpose      `json:"purpose,omitempty"` // absent if unknown
	Identity store.BotIdentity `json:"identity"`          // "verified" or "forged", by address; "" = the name is only claimed
	Ranges   string            `json:"ranges,omitempty"`  // URL of the operator's list of addresses, with which the bot can be verified
	First    time.Time         `json:"first"`             // time of the first request
	Last     time.Time         `json:"last"`              // time of the last request
	Traffic

	seed uint64 // distinguishes the machine's requests in repeats
}

// Traffic sums requests.
type Traffic struct {
	Requests           int64   `json:"requests"`             // number of requests
	Pages              int64   `json:"pages"`                // requests for pages that were sent with status 200
	NotModified        int64   `json:"not_modified"`         // requests whose response was a 304
	Unchanged          int64   `json:"unchanged"`            // responses that were probably unchanged, because the same bot got the same status and size from the same URL before
	Sent               int64   `json:"sent"`                 // GET requests with status 200 and a body, including those that "unchanged" counts
	Bytes              int64   `json:"bytes"`                // bytes of bodies, as sent
	UnchangedBytes     int64   `json:"unchanged_bytes"`      // bytes of the responses that "unchanged" counts
	PageBytes          int64   `json:"page_bytes"`           // bytes of the responses that "pages" counts
	UnchangedPageBytes int64   `json:"unchanged_page_bytes"` // bytes of the responses that both "pages" and "unchanged" count
	Seconds            float64 `json:"seconds"`              // time until responses were sent, an upper bound of the processor time
}

// TopPage counts requests by path or by user agent.
type TopPage struct {
	Name      string `json:"name"`      // path or user agent
	Requests  int64  `json:"requests"`  // number of requests
	Unchanged int64  `json:"unchanged"` // probably unchanged responses
	Bytes     int64  `json:"bytes"`     // bytes of bodies, as sent

	sent      int64 // number of whole pages sent
	pageBytes int64 // bytes of whole pages
}

const (
	maxSums  = 1 << 16 // maximum number of sums by bot and day
	maxTop   = 1 << 15 // maximum number of paths that are counted
	topPages = 10
)

// logReport sums the requests of logs in bounded memory.
type logReport struct {
	o       LogOptions
	host    string
	log     Log
	bots    accesslog.Bots
	seed    maphash.Seed
	repeats repeats
	pages   top[TopPage]
	agents  top[TopPage]

	machines map[machineKey]*Machine
	sums     map[sumKey]*store.Counts
	period   func(time.Time) time.Time // returns the start of the period that contains a time
	coarser  []func(time.Time) time.Time
}

type machineKey struct {
	bot      string
	identity store.BotIdentity
}

type sumKey struct {
	start    int64
	machine  *Machine
	protocol string
	endpoint store.Endpoint
	outcome  store.Outcome
}

// newLogReport returns an empty report.
func newLogReport(o *LogOptions) *logReport {
	r := &logReport{
		o: *o, seed: maphash.MakeSeed(), bots: accesslog.Bots{Table: o.Bots, Local: o.Local}, period: day, coarser: []func(time.Time) time.Time{month, year, ever},
		machines: make(map[machineKey]*Machine), sums: make(map[sumKey]*store.Counts),
	}
	count := func(p *TopPage) int64 { return p.Requests }
	r.pages, r.agents = top[TopPage]{most: maxTop, count: count}, top[TopPage]{most: maxTop / 32, count: count}
	if u, err := url.Parse(o.Site); err == nil {
		r.host = u.Hostname()
	}
	return r
}

func day(t time.Time) time.Time   { return t.Truncate(24 * time.Hour) }
func month(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC) }
func year(t time.Time) time.Time  { return time.Date(t.Year(), 1, 1, 0, 0, 0, 0, time.UTC) }
func ever(time.Time) time.Time    { return time.Unix(0, 0).UTC() }

// add adds a request.
func (r *logReport) add(l *accesslog.Line) {
	if l.Time.Before(r.o.Since) || r.host != "" && l.Host != nil && !accesslog.SameHost(l.Host, r.host) {
		r.log.Skipped++
		return
	}
	if r.bots.IsOwn(l) {
		r.log.Own++
		return
	}
	r.log.AllBytes += l.Bytes
	r.log.Timed = r.log.Timed || l.Duration >= 0
	bot := r.bots.Of(l.Agent)
	if bot == nil {
		r.log.Others++
		if l.Agent == nil {
			r.log.NoAgent++
		}
		return
	}
	e := r.bots.Event(l, bot)
	if bot == bots.Other && accesslog.IsMillrace(l.Agent) {
		e.Bot = "millrace"
	}
	m := r.machine(bot, &e)
	hash := maphash.Bytes(r.seed, l.Target) ^ bits.RotateLeft64(maphash.Bytes(r.seed, l.Host), 1) ^ m.seed
	sent := e.Status == http.StatusOK && e.Bytes > 0 && string(l.Method) == http.MethodGet
	unchanged := sent && r.repeats.again(hash, uint32(e.Bytes))
	page := sent && e.Endpoint == store.EndpointFetch
	for _, t := range []*Traffic{&m.Traffic, &r.log.Total} {
		t.add(&e, sent, page, unchanged)
	}
	if m.First.IsZero() || e.Time.Before(m.First) {
		m.First = e.Time
	}
	if e.Time.After(m.Last) {
		m.Last = e.Time
	}
	if e.Endpoint == store.EndpointFetch && (sent || e.Status == http.StatusNotModified) {
		r.pages.at(e.Path).add(&e, sent, unchanged)
	}
	if e.Bot == bots.Other.Name {
		r.agents.at(string(l.Agent[:min(len(l.Agent), store.MaxEventText)])).add(&e, page, unchanged)
	}
	r.sum(m, &e)
}

func (t *Traffic) add(e *store.Event, sent, page, unchanged bool) {
	t.Requests++
	t.Bytes += e.Bytes
	t.Seconds += e.Took.Seconds()
	if e.Status == http.StatusNotModified {
		t.NotModified++
	}
	if sent {
		t.Sent++
	}
	if page {
		t.Pages++
		t.PageBytes += e.Bytes
	}
	if unchanged {
		t.Unchanged++
		t.UnchangedBytes += e.Bytes
		if page {
			t.UnchangedPageBytes += e.Bytes
		}
	}
}

func (p *TopPage) add(e *store.Event, page, unchanged bool) {
	p.Requests++
	p.Bytes += e.Bytes
	if unchanged {
		p.Unchanged++
	}
	if page {
		p.sent++
		p.pageBytes += e.Bytes
	}
}

// machine returns the sums of a bot.
func (r *logReport) machine(bot *bots.Bot, e *store.Event) *Machine {
	key := machineKey{e.Bot, e.Identity}
	m := r.machines[key]
	if m == nil {
		m = &Machine{Bot: e.Bot, Family: e.Family, Purpose: bot.Purpose, Identity: e.Identity, seed: rand.Uint64()}
		if !r.o.Bots.Located(bot) {
			m.Ranges = bot.Ranges
		}
		r.machines[key] = m
	}
	return m
}

// sum adds an event to the sums by day. Too many sums become sums by month, then by year.
func (r *logReport) sum(m *Machine, e *store.Event) {
	key := sumKey{r.period(e.Time).Unix(), m, e.Protocol, e.Endpoint, store.OutcomeOf(e.Status)}
	c := r.sums[key]
	if c == nil {
		for len(r.sums) >= maxSums && len(r.coarser) > 0 {
			r.coarsen()
			key.start = r.period(e.Time).Unix()
		}
		if c = r.sums[key]; c == nil {
			c = new(store.Counts)
			r.sums[key] = c
		}
	}
	addCounts(c, &store.Counts{Events: 1, Results: e.Results, Bytes: e.Bytes, Took: e.Took})
	if e.Cached {
		c.Cached++
	}
}

// coarsen makes the periods of the sums longer.
func (r *logReport) coarsen() {
	r.period, r.coarser = r.coarser[0], r.coarser[1:]
	old := r.sums
	r.sums = make(map[sumKey]*store.Counts)
	for key, c := range old {
		key.start = r.period(time.Unix(key.start, 0).UTC()).Unix()
		if sum := r.sums[key]; sum != nil {
			addCounts(sum, c)
		} else {
			r.sums[key] = c
		}
	}
}

func addCounts(c, d *store.Counts) {
	c.Events, c.Cached, c.Results, c.Bytes, c.Took = c.Events+d.Events, c.Cached+d.Cached, c.Results+d.Results, c.Bytes+d.Bytes, c.Took+d.Took
}

// ordered yields the sums in the order in which a store yields sums.
func (r *logReport) ordered() iter.Seq2[store.Sum, error] {
	return func(yield func(store.Sum, error) bool) {
		sums := make([]store.Sum, 0, len(r.sums))
		for key, c := range r.sums {
			m := key.machine
			sums = append(sums, store.Sum{
				Start: time.Unix(key.start, 0).UTC(), Per: store.Day, Bot: m.Bot, Family: m.Family, Identity: m.Identity,
				Protocol: key.protocol, Endpoint: key.endpoint, Outcome: key.outcome, Counts: *c,
			})
		}
		slices.SortFunc(sums, func(a, b store.Sum) int {
			return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.Bot, b.Bot), strings.Compare(a.Protocol, b.Protocol),
				cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Identity, b.Identity))
		})
		for i := range sums {
			if !yield(sums[i], nil) {
				return
			}
		}
	}
}

// report returns the report on the requests so far. s is the scanner of the logs. damaged contains
// the errors of logs that were read in part.
func (r *logReport) report(s *accesslog.Scanner, damaged []string) (*Report, error) {
	out := r.log
	out.Files, out.Lines, out.Long, out.Unknown, out.Examples, out.Damaged = r.o.Files, s.Lines, s.Long, s.Unknown, s.Examples, damaged
	out.Machines, out.TopPages, out.TopOther = []Machine{}, []TopPage{}, []TopPage{}
	for _, m := range slices.SortedFunc(maps.Values(r.machines), func(a, b *Machine) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Bot, b.Bot), cmp.Compare(a.Identity, b.Identity))
	}) {
		out.Machines = append(out.Machines, *m)
		if out.First.IsZero() || m.First.Before(out.First) {
			out.First = m.First
		}
		if m.Last.After(out.Last) {
			out.Last = m.Last
		}
	}
	for _, name := range r.pages.names(topPages) {
		r.pages.of[name].Name = name
		out.TopPages = append(out.TopPages, *r.pages.of[name])
	}
	for _, name := range r.agents.names(topPages) {
		r.agents.of[name].Name = name
		out.TopOther = append(out.TopOther, *r.agents.of[name])
	}
	out.MaxCountError = max(r.pages.lost, r.agents.lost)
	out.Documents = documents(&out.Total, nil, r.o.Coefficients)
	site := &Served{Site: cmp.Or(r.o.Site, strings.Join(r.o.Files, ", ")), Rows: []analytics.DaySaved{}, Unusual: []analytics.Unusual{}, Log: &out}
	var err error
	site.Savings, err = analytics.SumOf(r.ordered(), analytics.Pages{}, r.o.Coefficients, func(d analytics.DaySaved) { site.Rows = append(site.Rows, d) })
	return &Report{Sites: []*Pulled{}, Served: []*Served{site}, Coefficients: coefficients(savings.List(r.o.Coefficients), perGB, perToken), first: r.o.Since}, err
}
