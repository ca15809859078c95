package webauth

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// Limits of the cached and fetched directories.
const (
	manyDirectories = 1024             // maximum number of cached directories
	fetchesAtOnce   = 16               // maximum number of concurrent fetches
	waitersAtOnce   = 128              // maximum number of requests that wait for one fetch
	directoryTime   = 5 * time.Second  // timeout of one request
	againAfter      = time.Minute      // minimum time between two fetches for a missing key
	failedFor       = time.Minute      // time before a failed fetch is repeated
	staleFor        = 24 * time.Hour   // keys remain valid for this long after the last successful fetch
	minCacheAge     = time.Minute      // minimum time to cache a directory
	usualAge        = time.Hour        // time to cache a directory that sends no lifetime
	maxCacheAge     = 24 * time.Hour   // maximum time to cache a directory
	skew            = 30 * time.Second // tolerated difference of clocks
)

// directories fetches and caches the directories that signatures name.
type directories struct {
	client *http.Client
	limit  time.Duration // time limit of one fetch, including the wait in the host's queue
	*directoryCache
}

// directoryCache contains the cached directories and the state of the fetches.
type directoryCache struct {
	now     func() time.Time
	test    bool // accept the published test key
	slots   chan struct{}
	mu      sync.Mutex
	waiting int
	dirs    map[string]*keyDirectory
}

// keyDirectory is the cached state of one directory.
type keyDirectory struct {
	keys    []PublicKey
	read    time.Time // time of the last successful fetch; zero if none
	until   time.Time // the keys are fresh until then
	err     error     // error of the last fetch
	retry   time.Time // earliest next fetch after an error
	used    time.Time
	pending chan struct{} // closed at the end of the running fetch; nil if none
}

// newDirectories returns a cache that fetches with client. If client is nil, every fetch
// fails.
func newDirectories(client *http.Client) *directories {
	if client == nil {
		client = &http.Client{Transport: offline{}}
	}
	return &directories{fetch.NoRedirects(client), directoryTime, &directoryCache{
		now: time.Now, slots: make(chan struct{}, fetchesAtOnce), dirs: make(map[string]*keyDirectory),
	}}
}

// errBusy reports that a directory was not fetched because of too many other fetches.
var errBusy = fmt.Errorf("%w: too many fetches of key directories", millrace.Coded("busy", millrace.ErrUnavailable))

// key returns a key of the directory at a URL. The error is [millrace.ErrNotFound] if the
// directory lacks the key, and [millrace.ErrUnavailable] if the directory could not be
// fetched.
func (d *directories) key(ctx context.Context, url, id string) (ed25519.PublicKey, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	h := d.dirs[url]
	if h != nil && h.pending == nil && !h.due(id, now) {
		h.used = now
		return h.find(id, now)
	}
	if h == nil || h.pending == nil {
		if !d.begin(ctx, url, h, now) {
			if h != nil {
				return h.find(id, now) // stale keys are still valid
			}
			return nil, errBusy
		}
		h = d.dirs[url]
	}
	if d.waiting >= waitersAtOnce {
		return nil, errBusy
	}
	d.waiting++
	pending := h.pending
	d.mu.Unlock()
	select {
	case <-pending:
	case <-ctx.Done():
	}
	d.mu.Lock()
	d.waiting--
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return h.find(id, d.now())
}

// due reports whether to fetch the directory for a key.
func (h *keyDirectory) due(id string, now time.Time) bool {
	switch {
	case h.err != nil:
		return !now.Before(h.retry)
	case !now.Before(h.until):
		return true
	}
	// An expired key is no reason to fetch again.
	return !h.has(id) && now.Sub(h.read) >= againAfter
}

func (h *keyDirectory) has(id string) bool {
	for i := range h.keys {
		if h.keys[i].ID == id {
			return true
		}
	}
	return false
}

// find returns a key from the cache.
func (h *keyDirectory) find(id string, now time.Time) (ed25519.PublicKey, error) {
	known := !h.read.IsZero() && now.Sub(h.read) < staleFor
	if known {
		for i := range h.keys {
			if k := &h.keys[i]; k.ID == id && k.isValid(now) {
				return k.Key, nil
			}
		}
	}
	switch {
	case h.err != nil:
		return nil, h.err
	case !known:
		return nil, errBusy
	}
	return nil, millrace.Coded("no-key", fmt.Errorf("%w: the key directory has no valid key %q", millrace.ErrNotFound, clip(id)))
}

// begin starts a fetch unless too many are running, and reports whether it has started one. The
// caller holds the lock.
func (d *directories) begin(ctx context.Context, url string, h *keyDirectory, now time.Time) bool {
	select {
	case d.slots <- struct{}{}:
	default:
		return false
	}
	if h == nil {
		d.evict()
		h = new(keyDirectory)
		d.dirs[url] = h
	}
	h.pending, h.used = make(chan struct{}), now
	// Other requests wait for the fetch, so it outlives the one that started it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.limit)
	go func() {
		defer cancel()
		keys, age, err := d.fetch(ctx, url)
		<-d.slots
		d.mu.Lock()
		defer d.mu.Unlock()
		now := d.now()
		if h.err = err; err == nil {
			h.keys, h.read, h.until = keys, now, now.Add(age)
		} else {
			h.retry = now.Add(failedFor)
		}
		close(h.pending)
		h.pending = nil
	}()
	return true
}

// evict frees one entry: first a directory that was never fetched successfully, then the least
// recently used one. The caller holds the lock.
func (d *directories) evict() {
	if len(d.dirs) < manyDirectories {
		return
	}
	var worst string
	var of *keyDirectory
	for url, h := range d.dirs {
		if h.pending != nil {
			continue
		}
		switch {
		case of == nil, h.read.IsZero() && !of.read.IsZero():
		case h.read.IsZero() != of.read.IsZero(), !h.used.Before(of.used):
			continue
		}
		worst, of = url, h
	}
	delete(d.dirs, worst)
}

// fetch fetches a directory and returns the time for which to cache it.
func (d *directories) fetch(ctx context.Context, url string) (_ []PublicKey, age time.Duration, err error) {
	defer func() {
		// An invalid directory may be temporary, and does not make the signature invalid.
		if err != nil && !errors.Is(err, millrace.ErrUnavailable) {
			err = fmt.Errorf("%w: %s", millrace.ErrUnavailable, err.Error()) // %s hides the kind of the cause
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Accept", DirectoryType+", application/json;q=0.5")
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, 0, fmt.Errorf("key directory: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("key directory %s: %w: status %d", url, millrace.ErrUnavailable, resp.StatusCode)
	}
	body, err := fetch.ReadBody(resp, maxDirectory)
	if err != nil {
		return nil, 0, fmt.Errorf("key directory %s: %w", url, err)
	}
	keys, err := ParseDirectory(body)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", url, err)
	}
	return d.proven(keys, req, resp), ageOf(resp.Header, d.now()), nil
}

// proven drops each key whose signature of the directory is invalid, and the published test
// key unless d.test is set.
func (d *directories) proven(keys []PublicKey, req *http.Request, resp *http.Response) []PublicKey {
	now := d.now()
	signed, err := signatures(resp.Header, directoryTag)
	if err != nil {
		signed = nil // TLS authenticates the directory; ignore a signature that cannot be parsed
	}
	m := &message{status: resp.StatusCode, field: resp.Header, req: requestMessage(req, "")}
	out := keys[:0]
	for _, k := range keys {
		good := k.ID != testKey || d.test
		for i := range signed {
			s := &signed[i]
			if s.keyID != k.ID || !s.covers("@authority", true) {
				continue
			}
			early := s.created.After(now.Add(skew))
			late := !s.expires.IsZero() && !now.Before(s.expires)
			good = good && !early && !late && s.verify(m, k.Key) == nil
		}
		if good {
			out = append(out, k)
		}
	}
	return out
}

// ageOf returns the time for which to cache a directory (RFC 9111, section 4.2.1), within minCacheAge
// and maxCacheAge.
func ageOf(h http.Header, now time.Time) time.Duration {
	age := usualAge
	if at, err := http.ParseTime(h.Get("Expires")); err == nil {
		age = at.Sub(now)
	}
	for directive := range strings.SplitSeq(strings.Join(h["Cache-Control"], ","), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
		switch name {
		case "no-store", "no-cache":
			return minCacheAge
		case "max-age":
			if n, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 32); err == nil {
				age = time.Duration(n) * time.Second
				if gone, err := strconv.ParseInt(h.Get("Age"), 10, 32); err == nil && gone > 0 {
					age -= time.Duration(gone) * time.Second
				}
			}
		}
	}
	return min(max(age, minCacheAge), maxCacheAge)
}

// ClientOptions returns options for a client that fetches key directories, based on o. The
// client ignores robots.txt, has short timeouts and its own queues. It sends a host only a few
// requests a second, so that signatures that name many directories of one host cannot flood
// it. Nil options mean the zero value.
func ClientOptions(o *fetch.Options) *fetch.Options {
	var out fetch.Options
	if o != nil {
		out = *o
	}
	out.IgnoreRobots, out.Delay, out.SharedQueues, out.MaxReceived = true, 0, nil, 0
	out.MaxBody, out.Timeout, out.Concurrency, out.MaxRedirects = maxDirectory, directoryTime, 2, -1
	out.Sign, out.Check = nil, nil
	return &out
}
