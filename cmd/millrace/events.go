package main

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/analytics"
)

// recording are the flags that say what is kept of what machines ask for.
type recording struct {
	Events            time.Duration `default:"720h" placeholder:"DURATION" help:"How long to keep each request of a bot, without address and key (default: ${default}). Daily sums are kept forever. 0 records nothing."`
	EventsHashQueries bool          `help:"Store bots' search queries as keyed hashes (default: as text)." hidden:""`
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

// events returns the options of what records; nil = nothing is recorded.
func (c *recording) events(ctx context.Context, o *source) (*analytics.Options, error) {
	if c.Events == 0 {
		return nil, nil
	}
	out := &analytics.Options{Keep: c.Events}
	var err error
	if c.EventsHashQueries {
		out.QueryKey, err = analytics.QueryKey(ctx, o.Store.State(), o.Name)
	}
	return out, err
}
