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

// ExporterOptions configure an [Exporter]. The zero value works for all but a
// webhook.
type ExporterOptions struct {
	// Name names the exporter in its Lag, where two have receivers that look alike;
	// "" = how the target prints.
	Name string
	// Base is the URL of the site, for receivers that want to know pages by theirs.
	Base string
	// Secrets sign what a webhook is sent.
	Secrets []webhook.Secret
	// UserAgent names this program to Umami and Plausible, which drop what comes
	// from a program that they take for a bot; "" = a name that they do not.
	UserAgent string
	Every     time.Duration // between two looks for events; 0 = 5 s
	// Leases let one process export for all; nil = no other process uses the store.
	Leases store.Leases

	Now    func() time.Time // nil = time.Now
	Logger *slog.Logger     // told of failures, and of their end; nil = discard
}

const (
	lookEvery    = 5 * time.Second
	longestWait  = 5 * time.Minute
	beforeFirst  = 24 * time.Hour // how far back a new receiver starts
	warnInterval = time.Hour      // interval of logs of a lasting failure
)

// NeutralName names this program to services that take "millrace/1.0" for a bot,
// as they do most names of that form, and would not count what it tells.
const NeutralName = "Mozilla/5.0 (Linux) millrace"

// Exporter sends the events of a site to one receiver, in order and at least
// once, in the background. The store keeps its position. While the receiver is
// down, it falls behind; events that the store deletes meanwhile are lost, and
// counted.
type Exporter struct {
	usage    store.Usage
	position state.JSON[*exportPosition]
	site     string
	target   *Target
	kind     receiver
	post     post
	o        ExporterOptions

	at    uint64          // the last number that the receiver has
	done  map[uint64]bool // those that follow which it has, too
	begun bool            // at is known

	doubts map[uint64]int // how often the receiver has failed at one, while it took others

	mu  sync.Mutex
	lag Lag // without what the store knows
}

// exportPosition is how far an exporter has come.
type exportPosition struct {
	Number uint64 `json:"number"` // of the last event that the receiver has
}

// positionOf returns the place of the exporter of a name: nil until it begins.
func positionOf(st store.State, site, name string) state.JSON[*exportPosition] {
	return state.JSON[*exportPosition]{State: st, Namespace: site, Key: "export to " + name}
}

// Lag is how far an exporter is behind, and what has become of the rest.
type Lag struct {
	Exporter string    // its receiver, as it may be seen, such as "umami https://stats.example.com"
	Events   uint64    // that the receiver does not have yet
	Since    time.Time // of the oldest of them; zero if none
	Failing  string    // why it does not take them now; "" = it does

	// Since the exporter was made:
	Sent    uint64
	Lost    uint64 // the store does not have them any more, or cannot read them, or the receiver would take them for new
	Refused uint64 // that the receiver takes in no case
	Ignored uint64 // that it has taken and not counted
}

// NewExporter returns an exporter of a site of a store, whose State has how far
// it has come. client has to be one that is guarded, since a target is an
// address of the outside. o may be nil. Errors are [millrace.ErrInvalid].
func NewExporter(usage store.Usage, st store.State, site string, t *Target, client *http.Client, o *ExporterOptions) (*Exporter, error) {
	e := &Exporter{
		usage: usage, position: positionOf(st, site, t.Name()), site: site, target: t, kind: receivers[t.Kind],
		done: make(map[uint64]bool), doubts: make(map[uint64]int),
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

// Lag returns how far the exporter is behind, as far as the store says so.
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

// note changes what Lag gives.
func (e *Exporter) note(change func(*Lag)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.lag)
}

// errGone says that a receiver wants nothing any more.
var errGone = errors.New("the receiver wants no more events (410 Gone); nothing is sent until the next start")

// Run exports events until the context ends, or the receiver wants none.
func (e *Exporter) Run(ctx context.Context) {
	lease.Keep(ctx, e.o.Leases, "export "+e.site+" to "+e.target.Name(), e.o.Logger, e.export)
}

// export is Run while no other process exports to the receiver.
func (e *Exporter) export(ctx context.Context) {
	e.begun = false // another process may have exported
	clear(e.done)
	fails, told := 0, time.Time{}
	for ctx.Err() == nil {
		moved, err := e.round(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if !told.IsZero() {
				e.o.Logger.InfoContext(ctx, "events are taken again", "receiver", e.target.String())
			}
			fails, told = 0, time.Time{}
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
			e.o.Logger.ErrorContext(ctx, "events are not handed on any more", "receiver", e.target.String(), "error", err)
			<-ctx.Done() // how far it is behind goes on to be seen
			return
		}
		wait := fetch.Backoff(err, fails, time.Second, longestWait)
		fails++
		if now := e.o.Now(); told.IsZero() || now.Sub(told).Abs() >= warnInterval { // not every time of a long day
			told = now
			e.o.Logger.WarnContext(ctx, "events cannot be handed on; they are kept", "receiver", e.target.String(), "error", err, "again_in", wait.Round(time.Millisecond))
		}
		if fetch.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// newest returns the number of the last event; 0 if none.
func (e *Exporter) newest(ctx context.Context) (uint64, error) {
	for last, err := range e.usage.Events(ctx, e.site, store.EventQuery{Newest: true, Limit: 1}) {
		return last.Number, err
	}
	return 0, nil
}
