package main

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/analytics"
)

// eventFlags holds the flags for recording requests.
type eventFlags struct {
	Events            time.Duration `default:"720h" placeholder:"DURATION" help:"How long to keep each request of a bot, without address and key (default: ${default}). Daily sums are kept forever. 0 records nothing."`
	AccessLog         string        `placeholder:"FILE" help:"Access log of the site's own server, such as /var/log/nginx/access.log. Requests of bots in the log are also recorded."`
	EventsHashQueries bool          `help:"Store bots' search queries as keyed hashes (default: as text)." hidden:""`
}

// validate rejects invalid values.
func (c *eventFlags) validate() error {
	if c.Events < 0 || c.Events > 0 && c.Events < time.Hour {
		return usageError("--events " + c.Events.String() + ": must be 0 (off) or at least one hour, such as 720h")
	}
	if c.AccessLog != "" && c.Events == 0 {
		return usageError("--access-log: has no effect with --events 0; omit one of them")
	}
	if c.EventsHashQueries && c.Events == 0 {
		return usageError("--events-hash-queries: has no effect with --events 0; omit one of them")
	}
	return nil
}

// events returns the options of the recorder, or nil to record nothing.
func (c *eventFlags) events(ctx context.Context, o *source) (*analytics.Options, error) {
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
