package fetch

import (
	"context"
	"strings"
	"sync"
	"time"
)

// Limit is a request limit of a site from a source that the client does not read, such as a usage
// policy.
type Limit struct {
	// Gap is the minimum time between the starts of two requests. Zero means no gap. A gap of more
	// than one minute counts as one minute, as for a Crawl-delay.
	Gap time.Duration
	// Take is called before each request is sent, including requests for robots.txt, redirects
	// and retries. If it returns an error, the request is not sent and fails with that error.
	// Take may be nil. It must be safe for concurrent use.
	Take func(ctx context.Context) error
}

// limitsOf holds limits by host name.
type limitsOf struct {
	mu    sync.Mutex
	hosts map[string]Limit
}

// SetLimit sets the limit for requests to a host name, whatever the port, and replaces the
// previous one. A longer gap from [Options.Delay] or robots.txt takes precedence.
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

// hostName returns the key of a host's queue.
func hostName(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }
