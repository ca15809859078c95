package fetch

import (
	"context"
	"strings"
	"sync"
	"time"
)

// Limit is what a site asks of its readers in words that a client does not
// know by itself, such as those of a policy.
type Limit struct {
	// Gap is the least time between the starts of two requests; 0 is none. More
	// than a minute is taken as a minute, as of a Crawl-delay.
	Gap time.Duration
	// Take is asked before each request is sent, those for robots.txt, redirects
	// and retries included. Its error keeps the request from being sent, and is
	// given in the place of an answer. nil if none. It must be safe for
	// concurrent use.
	Take func(ctx context.Context) error
}

// limitsOf are the limits of hosts, by name.
type limitsOf struct {
	mu    sync.Mutex
	hosts map[string]Limit
}

// SetLimit bounds the requests to a host, by its name, whatever the port, from
// now on, in place of what was set before. A longer gap that [Options.Delay] or
// robots.txt ask for counts all the same.
func (c *Client) SetLimit(host string, l Limit) {
	l.Gap = min(max(0, l.Gap), maxCrawlDelay)
	c.pace.putOff(hostName(host), l.Gap)
	c.asked.mu.Lock()
	defer c.asked.mu.Unlock()
	if c.asked.hosts == nil {
		c.asked.hosts = make(map[string]Limit)
	}
	c.asked.hosts[hostName(host)] = l
}

func (l *limitsOf) of(host string) Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hosts[hostName(host)]
}

// hostName is the name that a host's queue has.
func hostName(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }
