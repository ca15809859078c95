package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
)

const (
	robotsPath  = "/robots.txt"
	robotsAge   = 24 * time.Hour // RFC 9309, section 2.4
	robotsRetry = time.Minute    // time until the next attempt after a failed fetch

	manyRobots     = 256      // number of origins above which all are dropped
	manyRobotsText = 32 << 20 // total size of the files in bytes above which all are dropped
)

// RobotsMemory stores robots.txt files across processes. It must be safe for concurrent use. The
// client logs errors. An error causes at most one additional request.
type RobotsMemory interface {
	// Load returns the saved record of an origin, such as "https://example.com:443", or nil if
	// none is saved.
	Load(ctx context.Context, origin string) ([]byte, error)
	// Save stores a record, which is JSON of at most 1 MiB, and replaces the last one.
	Save(ctx context.Context, origin string, record []byte) error
}

// RobotsError is the error for a URL that the site's robots.txt disallows. It wraps
// [millrace.ErrForbidden].
type RobotsError struct {
	URL    string // without credentials
	Robots string // URL of the robots.txt
	Line   int    // line of the record that disallows the URL
	Rule   string // the record, such as "Disallow: /private"
}

// Error returns "URL: disallowed by robots.txt (line 4: Disallow: /private)".
func (e *RobotsError) Error() string {
	return fmt.Sprintf("%s: disallowed by robots.txt (line %d: %s)", e.URL, e.Line, e.Rule)
}

// ErrorCode returns "robots-disallow".
func (e *RobotsError) ErrorCode() string { return "robots-disallow" }

// Unwrap returns [millrace.ErrForbidden].
func (e *RobotsError) Unwrap() error { return millrace.ErrForbidden }

// robotsFailure is the error for a failed fetch of robots.txt, which disallows everything until a
// fetch succeeds (RFC 9309, section 2.3.1.4). It hides the kind of its cause, so that no caller
// retries a page because of it.
type robotsFailure struct {
	file  *url.URL
	cause error
}

func (e *robotsFailure) Error() string {
	cause := strings.TrimPrefix(e.cause.Error(), "fetch "+e.file.String()+": ")
	text := fmt.Sprintf("cannot fetch robots.txt of %s://%s: %s", e.file.Scheme, e.file.Host, cause)
	if e.ErrorCode() == "robots-unavailable" {
		text += "; no page may be fetched until that succeeds (RFC 9309, section 2.3.1.4)"
	}
	return text
}

// ErrorCode returns the code of the cause if no connection could be made, since no page can be
// fetched in that case.
func (e *robotsFailure) ErrorCode() string {
	switch code := millrace.ErrorCode(e.cause); code {
	case "certificate", "connection-refused", "dns", "dns-unknown", "no-tls", "timeout-tls", "tls":
		return code
	}
	return "robots-unavailable"
}

func (e *robotsFailure) Unwrap() error { return millrace.ErrUnavailable }

// Robots returns the rules of u's origin for the product in the client's User-Agent, even if the
// client ignores them. It fetches robots.txt at most once in 24 hours, with at most five redirects.
// Concurrent callers share one fetch.
//
// A 4xx response other than 429, HTML, or a redirect without a usable target means that there are
// no rules. A redirect from https to http is a failure instead. If the file cannot be fetched, an
// older copy applies until it can. Without a copy, the error is [millrace.ErrUnavailable] for a
// minute, and no URL of the origin can be fetched. The errors of [Client.RoundTrip] for a refused
// address, a paused host and the end of ctx are returned unchanged.
func (c *Client) Robots(ctx context.Context, u *url.URL) (*Robots, error) {
	if err := checkURL(u); err != nil {
		return nil, err
	}
	key := origin(u)
	for {
		e, lead := c.robots.get(key)
		switch {
		case lead:
			return c.refreshRobots(ctx, u, key, e)
		case e.flight == nil:
			return e.robots, e.err
		}
		select {
		case <-e.flight:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// RobotsOf returns the rules of u's origin for client. It uses [Client.Robots] if the transport is
// or wraps a [Client]. Otherwise it fetches the file without a cache, for the product "millrace".
func RobotsOf(ctx context.Context, client *http.Client, u *url.URL) (*Robots, error) {
	if c := innerClient(client); c != nil {
		return c.Robots(ctx, u)
	}
	if err := checkURL(u); err != nil {
		return nil, err
	}
	rec, err := askRobots(ctx, client, robotsFile(u), Validators{})
	if err != nil {
		return nil, err
	}
	return ParseRobots(rec.Body, product), nil
}

// RecentRobots acts like [RobotsOf], but uses a copy no older than age if the file can be fetched.
func RecentRobots(ctx context.Context, client *http.Client, u *url.URL, age time.Duration) (*Robots, error) {
	robots, err := RobotsOf(ctx, client, u)
	c := innerClient(client)
	if err != nil || c == nil || !c.robots.expire(origin(u), age) {
		return robots, err
	}
	return c.Robots(ctx, u)
}

// IgnoresRobots reports whether client ignores robots.txt: its transport is or wraps a [Client]
// with Options.IgnoreRobots.
func IgnoresRobots(client *http.Client) bool {
	c := innerClient(client)
	return c != nil && c.ignoreRobots
}

// innerClient returns the [Client] below keys and any [Wrapper] of client, or nil.
func innerClient(client *http.Client) *Client {
	next := client.Transport
	for {
		switch t := next.(type) {
		case *Client:
			return t
		case keyed:
			next = t.next
		case Wrapper:
			next = t.Unwrap()
		default:
			return nil
		}
	}
}

// Wrapper is a transport that passes requests to another transport and does not change which URLs
// may be requested. The package looks for a [Client] below it.
type Wrapper interface {
	http.RoundTripper
	Unwrap() http.RoundTripper // Unwrap returns the wrapped transport
}

// obey returns an error if robots.txt disallows u, or else the Crawl-delay.
func (c *Client) obey(ctx context.Context, u *url.URL) (time.Duration, error) {
	if c.ignoreRobots || u.Path == robotsPath {
		return 0, nil
	}
	r, err := c.Robots(ctx, u)
	if err != nil {
		return 0, err
	}
	if line, rule := r.Rule(u.RequestURI()); line > 0 && !Permitted(ctx, u) {
		return 0, &RobotsError{URL: cleanURL(u), Robots: robotsFile(u).String(), Line: line, Rule: rule}
	}
	return r.CrawlDelay(), nil
}

func robotsFile(u *url.URL) *url.URL {
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: robotsPath}
}

// robotsCache caches the files of origins.
type robotsCache struct {
	mu      sync.Mutex
	origins map[string]*robotsEntry
	size    int // total size of the files in bytes
}

// robotsEntry is the cached state of one origin.
type robotsEntry struct {
	robots *Robots
	rec    *robotsRecord // the file from which robots was parsed; nil if there is no copy
	err    error         // reason why robots is nil
	due    time.Time     // time of the next fetch; zero = at once
	flight chan struct{} // closed at the end of the fetch; nil if none is running
}

// get returns the state of an origin. If lead is true, the caller must fetch the file and call
// put.
func (c *robotsCache) get(key string) (_ robotsEntry, lead bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.origins[key]
	switch {
	case e == nil:
		if c.origins == nil {
			c.origins = make(map[string]*robotsEntry)
		}
		c.trim()
		e = new(robotsEntry)
		c.origins[key] = e
	case e.flight != nil || time.Now().Before(e.due):
		return *e, false
	}
	e.flight = make(chan struct{})
	return *e, true
}

// expire schedules a fetch if the copy is older than age. It reports whether the next call of get
// needs a fetch or waits for one.
func (c *robotsCache) expire(key string, age time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.origins[key]
	if e == nil || e.flight != nil {
		return true // there is no copy, or a fetch is running
	}
	if e.rec == nil || time.Since(e.rec.Time) <= age {
		return false
	}
	e.due = time.Time{}
	return true
}

func (c *robotsCache) put(key string, e robotsEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.origins[key]
	close(was.flight)
	c.size += e.rec.len() - was.rec.len()
	e.flight = nil
	*was = e
}

// trim drops the files if the cache is full, except those that are being fetched. A dropped file is
// fetched again when needed.
func (c *robotsCache) trim() {
	if len(c.origins) < manyRobots && c.size < manyRobotsText {
		return
	}
	for key, e := range c.origins {
		if e.flight == nil {
			c.size -= e.rec.len()
			delete(c.origins, key)
		}
	}
}

// refreshRobots loads a file from the store or fetches it, on behalf of all waiting callers.
func (c *Client) refreshRobots(ctx context.Context, u *url.URL, key string, e robotsEntry) (_ *Robots, err error) {
	// Release the waiting callers in any case. If this caller cancels, the next caller fetches the
	// file.
	defer func() { c.robots.put(key, e) }()
	now := time.Now()
	if e.rec == nil {
		if rec := c.loadRobots(ctx, key); rec != nil {
			e.rec, e.robots = rec, ParseRobots(rec.Body, c.token)
			// Do not use a record from the future, because the clock was wrong when it was stored. Nor use
			// one that disallows the first requested URL, because the file may have changed.
			if age := now.Sub(rec.Time); age >= 0 && age < robotsAge && e.robots.Allowed(u.RequestURI()) {
				e.due, e.err = now.Add(robotsAge-age), nil
				return e.robots, nil
			}
		}
	}
	client := &http.Client{Transport: robotsTransport{c}}
	rec, err := askRobots(ctx, client, robotsFile(u), e.rec.validators())
	now = time.Now()
	switch {
	case err == nil:
		e.rec, e.robots = rec, ParseRobots(rec.Body, c.token)
	case errors.Is(err, millrace.ErrUnmodified):
		same := *e.rec
		same.Time = rec.Time
		e.rec = &same
	default:
		if _, ok := errors.AsType[*robotsFailure](err); !ok {
			return nil, err
		}
		e.due, e.err = now.Add(robotsRetry), err
		if e.rec != nil {
			c.log.WarnContext(ctx, "using cached robots.txt", "origin", key, "date", e.rec.Time, "err", err)
			e.err = nil
		}
		return e.robots, e.err
	}
	e.due, e.err = now.Add(robotsAge), nil
	c.saveRobots(ctx, key, e.rec)
	return e.robots, nil
}

func (c *Client) loadRobots(ctx context.Context, key string) *robotsRecord {
	if c.robotsStore == nil {
		return nil
	}
	data, err := c.robotsStore.Load(ctx, key)
	if err == nil && len(data) == 0 {
		return nil
	}
	rec := new(robotsRecord)
	if err == nil && len(data) > maxRobotsRecord {
		err = fmt.Errorf("%d bytes: %w", len(data), millrace.ErrTooLarge)
	}
	if err == nil {
		err = json.Unmarshal(data, rec)
	}
	if err != nil {
		c.log.WarnContext(ctx, "stored robots.txt is invalid; ignoring it", "origin", key, "err", err)
		return nil
	}
	return rec
}

func (c *Client) saveRobots(ctx context.Context, key string, rec *robotsRecord) {
	if c.robotsStore == nil {
		return
	}
	data, err := json.Marshal(rec)
	if err == nil {
		err = c.robotsStore.Save(ctx, key, data)
	}
	if err != nil {
		c.log.WarnContext(ctx, "could not save robots.txt", "origin", key, "err", err)
	}
}
