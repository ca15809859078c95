package dashboard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/netip"
	"sync"
	"time"
)

// Sessions holds the sessions of a dashboard and counts login attempts. It exists only in
// memory, so a restart ends all sessions. It outlives a dashboard that a reload replaces.
type Sessions struct {
	key [32]byte // key for the tokens of login forms

	// hashing is held while a password is hashed, so only one hash needs memory at a time.
	// waiting is held while a request waits for hashing.
	hashing chan struct{}
	waiting chan struct{}

	mu       sync.Mutex
	sessions map[[sha256.Size]byte]*session // sessions by the hash of their IDs
	attempts map[netip.Prefix]*bucket       // one bucket per client, except full ones
	swept    time.Time                      // last removal of full buckets
	all      bucket                         // limit of all unknown clients together
	known    map[netip.Prefix]time.Time     // clients with a successful login, and its time
}

// session is one login.
type session struct {
	id       [sha256.Size]byte
	csrf     string
	password string // the hash of the password used
	created  time.Time
	seen     time.Time
	message  *message // for the next page
}

const (
	sessionIdle = 2 * time.Hour
	sessionMost = 24 * time.Hour
	maxSessions = 64
	maxWaiting  = 8

	// Limit per client: five attempts, then one every 15 s. Limit for all
	// unknown clients together: thirty, then one every 2 s.
	clientBurst, clientEvery = 5, 15 * time.Second
	allBurst, allEvery       = 30, 2 * time.Second
	maxClients               = 10_000
	maxKnown                 = 64
)

// NewSessions returns a Sessions without any session.
func NewSessions() *Sessions {
	d := &Sessions{
		hashing: make(chan struct{}, 1), waiting: make(chan struct{}, maxWaiting), sessions: map[[sha256.Size]byte]*session{},
		attempts: map[netip.Prefix]*bucket{}, known: map[netip.Prefix]time.Time{},
	}
	_, _ = rand.Read(d.key[:]) // Read never fails
	return d
}

// token returns 32 random bytes as text.
func token() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // Read never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// begin begins a session and returns its ID, of which it stores only a hash.
func (d *Sessions) begin(hash string, now time.Time) string {
	id := token()
	s := &session{id: sha256.Sum256([]byte(id)), csrf: token(), password: hash, created: now, seen: now}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.sessions) >= maxSessions {
		oldest := s
		for _, o := range d.sessions {
			if o.seen.Before(oldest.seen) || oldest == s {
				oldest = o
			}
		}
		delete(d.sessions, oldest.id)
	}
	d.sessions[s.id] = s
	return id
}

// find returns the session of an ID, or nil if it is unknown, expired, or from
// another password.
func (d *Sessions) find(id, hash string, now time.Time) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sessions[sha256.Sum256([]byte(id))]
	if s == nil {
		return nil
	}
	if s.password != hash || now.Sub(s.seen) > sessionIdle || now.Sub(s.created) > sessionMost || now.Before(s.created.Add(-time.Minute)) {
		delete(d.sessions, s.id)
		return nil
	}
	s.seen = now
	return s
}

// end ends a session.
func (d *Sessions) end(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, s.id)
}

// setMessage stores a message for the next page of a session; takeMessage returns
// and removes it.
func (d *Sessions) setMessage(s *session, m *message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.message = m
}

func (d *Sessions) takeMessage(s *session) *message {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := s.message
	s.message = nil
	return m
}

// validToken reports whether a form's token is that of the session.
func (s *session) validToken(csrf string) bool {
	return subtle.ConstantTimeCompare([]byte(s.csrf), []byte(csrf)) == 1
}

// formToken returns the token of a login form for the cookie of a browser.
func (d *Sessions) formToken(cookie string) string {
	m := hmac.New(sha256.New, d.key[:])
	m.Write([]byte(cookie))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// bucket is a rate limit. full is the time at which all attempts are available.
type bucket struct{ full time.Time }

// take counts an attempt, or returns the time until the next one.
func (b *bucket) take(now time.Time, burst int, every time.Duration) time.Duration {
	if b.full.Before(now) || b.full.Sub(now) > time.Duration(burst)*every {
		b.full = now // full, or the clock was set back
	}
	if wait := b.full.Sub(now) - time.Duration(burst-1)*every; wait > 0 {
		return wait
	}
	b.full = b.full.Add(every)
	return 0
}

// network returns the client of an address: the address itself, or its /64.
func network(a netip.Addr) netip.Prefix {
	bits := 64
	if a = a.Unmap().WithZone(""); a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // the zero address has the zero prefix and counts as one client
	return p
}

// attempt counts an attempt of a client, or returns the time until the next one.
// Attempts of unknown clients do not delay known ones.
func (d *Sessions) attempt(from netip.Addr, now time.Time) time.Duration {
	client := network(from)
	d.mu.Lock()
	defer d.mu.Unlock()
	_, known := d.known[client] // at most maxKnown; the total limit does not apply to them
	b := d.attempts[client]
	if b == nil {
		if len(d.attempts) >= maxClients && now.Sub(d.swept).Abs() > clientEvery {
			d.swept = now
			for c, o := range d.attempts {
				if o.full.Before(now) {
					delete(d.attempts, c)
				}
			}
		}
		b = new(bucket)
		if known || len(d.attempts) < maxClients {
			d.attempts[client] = b
		} // otherwise only the total limit applies
	}
	if wait := b.take(now, clientBurst, clientEvery); wait > 0 {
		return wait
	}
	if known {
		return 0
	}
	return d.all.take(now, allBurst, allEvery)
}

// succeeded marks a client as known and resets its attempts.
func (d *Sessions) succeeded(from netip.Addr, now time.Time) {
	client := network(from)
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.attempts, client)
	if len(d.known) >= maxKnown {
		oldest, at := client, now
		for c, t := range d.known {
			if t.Before(at) {
				oldest, at = c, t
			}
		}
		delete(d.known, oldest)
	}
	d.known[client] = now
}
