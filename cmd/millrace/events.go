package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/store"
)

// recording are the flags that say what is kept of what machines ask for.
type recording struct {
	Events            time.Duration `default:"720h" placeholder:"DURATION" help:"How long each request of a machine is kept, without address and key; sums by day stay. 0 = nothing is recorded (default: ${default})."`
	EventsHashQueries bool          `help:"Keep a hash of what machines search for, by a key of the store's own, in place of the words (default: the words)." hidden:""`
}

// validate refuses values that would be taken for something else.
func (c *recording) validate() error {
	if c.Events < 0 || c.Events > 0 && c.Events < time.Hour {
		return usageError("--events " + c.Events.String() + ": write how long requests are kept, an hour or more, such as 720h; 0 = nothing is recorded")
	}
	if c.EventsHashQueries && c.Events == 0 {
		return usageError("--events-hash-queries: with --events 0, no query is kept; leave one of them out")
	}
	return nil
}

// eventRecorder takes down what machines ask for, as long as there is a service that
// answers them: it outlives those that are configured alike.
type eventRecorder struct {
	*analytics.Recorder
	c     recording
	usage store.Usage
	name  string // of the site
	pages pageWeights

	mu    sync.Mutex
	users int
	stop  context.CancelFunc
	ended chan struct{}
}

// pageWeights asks the site for weights that was put at work last.
type pageWeights struct{ site atomic.Pointer[store.Site] }

// HTMLSizes implements [analytics.HTMLSizes].
func (w *pageWeights) HTMLSizes(ctx context.Context, urls []string) ([]millrace.HTMLSize, error) {
	return (*w.site.Load()).HTMLSizes(ctx, urls)
}

// record makes the recorder of a service, or takes that of the service before;
// nil = nothing is recorded.
func (c *recording) record(ctx context.Context, p *process, o *source, site store.Site, was *eventRecorder) (*eventRecorder, error) {
	if was != nil && was.c == *c && was.name == o.Name {
		return was, nil
	}
	usage, ok := o.Store.(store.Usage)
	if c.Events == 0 || !ok {
		return nil, nil
	}
	r := &eventRecorder{c: *c, usage: usage, name: o.Name}
	r.pages.site.Store(&site)
	recO := &analytics.Options{Weights: &r.pages, Keep: c.Events, Leases: o.Store.Leases(), Logger: p.log}
	if c.EventsHashQueries {
		var err error
		if recO.QueryKey, err = analytics.QueryKey(ctx, o.Store.State(), o.Name); err != nil {
			return nil, err
		}
	}
	r.Recorder = analytics.New(usage, o.Name, recO)
	return r, nil
}

// enter has events stored for one more service.
func (r *eventRecorder) enter(ctx context.Context, site store.Site) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pages.site.Store(&site)
	if r.users++; r.users > 1 {
		return
	}
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	r.ended = ended
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
}

// leave is called once for each enter, when nobody is answered any more. With the
// last one, all events are stored.
func (r *eventRecorder) leave() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users--; r.users == 0 {
		r.stop()
		<-r.ended
	}
}
