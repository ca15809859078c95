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

// Sessions are the sessions of a dashboard and the attempts to begin one. They are
// kept in memory alone: a restart ends all of them. They outlive a dashboard
// that a new configuration replaces.
type Sessions struct {
	key [32]byte // of the tokens of login forms

	// hashing is held while a password is hashed, and waiting by who waits for
	// that, so that however many come, the memory is that of one.
	hashing chan struct{}
	waiting chan struct{}

	mu       sync.Mutex
	sessions map[[sha256.Size]byte]*session // by the hash of their ids
	attempts map[netip.Prefix]*bucket       // of each client that owes something
	swept    time.Time                      // when those were thrown out of attempts that owe nothing
	all      bucket                         // of clients that have never been let in
	known    map[netip.Prefix]time.Time     // clients that were let in, and when
}

// session is one login.
type session struct {
	id       [sha256.Size]byte
	csrf     string
	password string // the hash that was right
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
	_, _ = rand.Read(d.key[:]) // it never fails
	return d
}

// token returns 32 random bytes as text.
func token() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// begin begins a session, and returns the id, which is nowhere else.
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

// find returns the session of an id that lasts, or nil if none. One that
// another password has begun is over.
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

// setMessage keeps a message for the next page of a session, and told gives it.
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

// validToken reports whether a form's token is the session's.
func (s *session) validToken(csrf string) bool {
	return subtle.ConstantTimeCompare([]byte(s.csrf), []byte(csrf)) == 1
}

// formToken returns the token of a login form whose browser has a cookie.
func (d *Sessions) formToken(cookie string) string {
	m := hmac.New(sha256.New, d.key[:])
	m.Write([]byte(cookie))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// bucket is a limit: the time at which all attempts are there again.
type bucket struct{ full time.Time }

// take uses up an attempt, or returns the time until the next one.
func (b *bucket) take(now time.Time, burst int, every time.Duration) time.Duration {
	if b.full.Before(now) || b.full.Sub(now) > time.Duration(burst)*every {
		b.full = now // or the clock was set back
	}
	if wait := b.full.Sub(now) - time.Duration(burst-1)*every; wait > 0 {
		return wait
	}
	b.full = b.full.Add(every)
	return 0
}

// network returns what counts as one client: an address, or a /64.
func network(a netip.Addr) netip.Prefix {
	bits := 64
	if a = a.Unmap().WithZone(""); a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // the zero address gives the zero prefix: one client
	return p
}

// attempt counts an attempt of a client, or returns the time until the next
// one. Attempts of unknown clients do not delay one that has logged in before.
func (d *Sessions) attempt(from netip.Addr, now time.Time) time.Duration {
	client := network(from)
	d.mu.Lock()
	defer d.mu.Unlock()
	_, known := d.known[client] // at most maxKnown, and the limit of all is none for them
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
		} // else the limit of all is left
	}
	if wait := b.take(now, clientBurst, clientEvery); wait > 0 {
		return wait
	}
	if known {
		return 0
	}
	return d.all.take(now, allBurst, allEvery)
}

// succeeded notes that a client has known the password: what it has tried is
// forgotten.
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
