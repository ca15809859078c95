package analytics

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/internal/webhook"
	"github.com/millrace/millrace/store"
)

// ExporterOptions configure an [Exporter]. The zero value works, except that a webhook needs
// Secrets.
type ExporterOptions struct {
	// Name is the value of Lag.Exporter. If empty, the exporter uses Target.String.
	Name string
	// Base is the base URL of the site, for receivers that identify pages by URL.
	Base string
	// Secrets sign the messages of a webhook.
	Secrets []webhook.Secret
	// UserAgent is the User-Agent for Umami and Plausible, which drop requests of
	// programs that look like bots. If empty, [NeutralName].
	UserAgent string
	Every     time.Duration // interval between two polls for events. If zero, 5 s.
	// Leases allow only one process to export. If nil, no other process may use the store.
	Leases store.Leases

	Now    func() time.Time // clock. If nil, time.Now.
	Logger *slog.Logger     // logs failures and recoveries. If nil, nothing is logged.
}

const (
	lookEvery    = 5 * time.Second
	longestWait  = 5 * time.Minute
	beforeFirst  = 24 * time.Hour // maximum age of events for a new receiver
	warnInterval = time.Hour      // interval at which a lasting failure is logged
)

// NeutralName is the default User-Agent. Umami and Plausible treat names such as
// "millrace/1.0" as bots and drop their requests.
const NeutralName = "Mozilla/5.0 (Linux) millrace"

// Exporter sends the events of a site to one receiver in the background, in order and at least
// once. The store keeps the exporter's position. While the receiver is down, the backlog grows.
// Events that the store deletes meanwhile are lost and counted.
type Exporter struct {
	usage    store.Usage
	position state.JSON[*exportPosition]
	site     string
	target   *Target
	kind     receiver
	post     post
	o        ExporterOptions

	at    uint64          // number of the last event before the first one that is not done
	done  map[uint64]bool // later events that are done: received or dropped
	begun bool            // at is set

	failures map[uint64]int // how often each event failed while others were accepted

	mu  sync.Mutex
	lag Lag // without the fields that are read from the store
}

// exportPosition is the stored position of an exporter.
type exportPosition struct {
	Number uint64 `json:"number"` // number of the last event that was received or dropped
}

// positionOf returns the stored position of an exporter. Its value is nil until the exporter has
// started.
func positionOf(st store.State, site, name string) state.JSON[*exportPosition] {
	return state.JSON[*exportPosition]{State: st, Namespace: site, Key: "export to " + name}
}

// Lag is the backlog of an exporter, with its counts.
type Lag struct {
	Exporter string    // the receiver without secrets, such as "umami https://stats.example.com"
	Events   uint64    // events that are not exported yet
	Since    time.Time // time of the oldest of these events; zero if there are none
	Failing  string    // the current error, or ""

	// Counts since the exporter was created.
	Sent    uint64
	Lost    uint64 // deleted or unreadable in the store, or too old for the receiver
	Refused uint64 // permanently rejected by the receiver
	Ignored uint64 // accepted but not counted by the receiver
}

// NewExporter returns an exporter of a site. st stores its position. client must refuse
// private addresses, since the target may be any address. o may be nil. Errors wrap
// [millrace.ErrInvalid].
func NewExporter(usage store.Usage, st store.State, site string, t *Target, client *http.Client, o *ExporterOptions) (*Exporter, error) {
	e := &Exporter{
		usage: usage, position: positionOf(st, site, t.Name()), site: site, target: t, kind: receivers[t.Kind],
		done: make(map[uint64]bool), failures: make(map[uint64]int),
	}
	if o != nil {
		e.o = *o
	}
	e.lag.Exporter = cmp.Or(e.o.Name, t.String())
	e.o.Every = cmp.Or(e.o.Every, lookEvery)
	e.o.UserAgent = cmp.Or(e.o.UserAgent, NeutralName)
	if e.o.Now == nil {
		e.o.Now = time.Now
	}
	if e.o.Logger == nil {
		e.o.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	e.post, err = newPost(t, site, fetch.NoRedirects(client), &e.o)
	return e, err
}

// Lag returns the current backlog.
func (e *Exporter) Lag(ctx context.Context) Lag {
	e.mu.Lock()
	l := e.lag
	e.mu.Unlock()
	place, err := e.position.Load(ctx)
	if err != nil {
		return l
	}
	var at uint64
	if place != nil {
		at = place.Number
	}
	head, err := e.newest(ctx)
	if err != nil || head <= at {
		return l
	}
	l.Events = head - at
	for first, err := range e.usage.Events(ctx, e.site, store.EventQuery{After: at, Limit: 1}) {
		if err == nil {
			l.Since = first.Time
		}
	}
	return l
}

// note changes the backlog that Lag returns.
func (e *Exporter) note(change func(*Lag)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.lag)
}

// errGone is the error for a receiver that responds with 410.
var errGone = errors.New("receiver responded with 410 Gone; no events are sent until the next start")

// Run exports events until the context ends. If a webhook responds with 410, Run waits for the end
// of the context without sending any more events.
func (e *Exporter) Run(ctx context.Context) {
	lease.Keep(ctx, e.o.Leases, "export "+e.site+" to "+e.target.Name(), e.o.Logger, e.export)
}

// export exports events while this process has the lease.
func (e *Exporter) export(ctx context.Context) {
	e.begun = false // another process may have exported
	clear(e.done)
	fails, logged := 0, time.Time{}
	for ctx.Err() == nil {
		moved, err := e.round(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if !logged.IsZero() {
				e.o.Logger.InfoContext(ctx, "event export recovered", "receiver", e.target.String())
			}
			fails, logged = 0, time.Time{}
			e.note(func(l *Lag) { l.Failing = "" })
			if !moved && fetch.Sleep(ctx, e.o.Every) != nil {
				return
			}
			continue
		case moved:
			fails = 0
		}
		e.note(func(l *Lag) { l.Failing = err.Error() })
		if errors.Is(err, errGone) {
			e.o.Logger.ErrorContext(ctx, "event export stopped", "receiver", e.target.String(), "err", err)
			<-ctx.Done() // keep reporting the backlog
			return
		}
		wait := fetch.Backoff(err, fails, time.Second, longestWait)
		fails++
		if now := e.o.Now(); logged.IsZero() || now.Sub(logged).Abs() >= warnInterval { // log a lasting failure once per interval
			logged = now
			e.o.Logger.WarnContext(ctx, "event export failed; retrying", "receiver", e.target.String(), "err", err, "retry_in", wait.Round(time.Millisecond))
		}
		if fetch.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// newest returns the number of the newest event, or 0 if none.
func (e *Exporter) newest(ctx context.Context) (uint64, error) {
	for last, err := range e.usage.Events(ctx, e.site, store.EventQuery{Newest: true, Limit: 1}) {
		return last.Number, err
	}
	return 0, nil
}
