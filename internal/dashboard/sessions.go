package dashboard

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// Sessions holds the sessions of a dashboard and counts login attempts. The data is in the store,
// so that all replicas have the same sessions and limits, and a restart does not end them. Sessions
// can outlive a dashboard that a reload replaces.
type Sessions struct {
	state    store.State
	name     string
	sessions state.JSON[map[string]*session] // sessions by the hash of their IDs
	attempts state.JSON[attempts]

	// hashing contains a value while a password is hashed, so only one hash uses memory at a time.
	// waiting contains a value for each request that waits for hashing.
	hashing chan struct{}
	waiting chan struct{}
}

// session is one login.
type session struct {
	ID       string    `json:"-"` // the hash of the ID
	CSRF     string    `json:"csrf"`
	Password string    `json:"password"` // identifies the password used
	Created  time.Time `json:"created"`
	Seen     time.Time `json:"seen"`
	Message  *message  `json:"message,omitempty"` // message for the next page
}

// attempts are the login attempts. Refused attempts do not count, so the limit of all unknown clients
// also bounds the number of entries in Clients.
type attempts struct {
	All     bucket                     `json:"all"`     // limit of all unknown clients together
	Clients map[netip.Prefix]bucket    `json:"clients"` // one bucket per client; full buckets are removed
	Known   map[netip.Prefix]time.Time `json:"known"`   // clients with a successful login, and its time
}

const (
	sessionIdle   = 2 * time.Hour
	maxSessionAge = 24 * time.Hour
	maxSessions   = 64
	maxWaiting    = 8

	// Limit per client: five attempts, then one every 15 s. Limit for all
	// unknown clients together: thirty, then one every 2 s.
	clientBurst, clientEvery = 5, 15 * time.Second
	allBurst, allEvery       = 30, 2 * time.Second
	maxKnown                 = 64

	// seenEvery is the interval at which the use of a session is stored.
	seenEvery = time.Minute
)

// NewSessions returns the sessions of a dashboard, which are stored in st under a name.
func NewSessions(st store.State, name string) *Sessions {
	return &Sessions{
		state: st, name: name,
		sessions: state.JSON[map[string]*session]{State: st, Namespace: name, Key: "dashboard/sessions"},
		attempts: state.JSON[attempts]{State: st, Namespace: name, Key: "dashboard/attempts"},
		hashing:  make(chan struct{}, 1), waiting: make(chan struct{}, maxWaiting),
	}
}

// token returns 32 random bytes as text.
func token() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // Read never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// digest returns the form in which an ID or the hash of a password is stored.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// valid reports whether a session belongs to a password, given as a digest, and has not ended.
func (s *session) valid(password string, now time.Time) bool {
	return s.Password == password && now.Sub(s.Seen) <= sessionIdle && now.Sub(s.Created) <= maxSessionAge && !now.Before(s.Created.Add(-time.Minute))
}

// begin begins a session and returns its ID. It stores only a hash of the ID. It removes sessions
// that have ended.
func (d *Sessions) begin(ctx context.Context, hash string, now time.Time) (id string, err error) {
	id = token()
	s := &session{CSRF: token(), Password: digest(hash), Created: now, Seen: now}
	return id, d.sessions.Update(ctx, func(all *map[string]*session) error {
		if *all == nil {
			*all = make(map[string]*session)
		}
		maps.DeleteFunc(*all, func(_ string, o *session) bool { return !o.valid(s.Password, now) })
		for len(*all) >= maxSessions {
			oldest := slices.MinFunc(slices.Collect(maps.Keys(*all)), func(a, b string) int { return (*all)[a].Seen.Compare((*all)[b].Seen) })
			delete(*all, oldest)
		}
		(*all)[digest(id)] = s
		return nil
	})
}

// find returns the session of an ID, or nil if it is unknown, expired, or from
// another password.
func (d *Sessions) find(ctx context.Context, id, hash string, now time.Time) (*session, error) {
	all, err := d.sessions.Load(ctx)
	if err != nil {
		return nil, err
	}
	s := all[digest(id)]
	if s == nil || !s.valid(digest(hash), now) {
		return nil, nil
	}
	s.ID = digest(id)
	if now.Sub(s.Seen) > seenEvery {
		err = d.change(ctx, s, func(s *session) { s.Seen = now })
	}
	return s, err
}

// change applies f to a stored session, unless the session has ended meanwhile.
func (d *Sessions) change(ctx context.Context, s *session, f func(s *session)) error {
	return d.sessions.Update(ctx, func(all *map[string]*session) error {
		if is := (*all)[s.ID]; is != nil {
			f(is)
		}
		return nil
	})
}

// end ends a session.
func (d *Sessions) end(ctx context.Context, s *session) error {
	return d.sessions.Update(ctx, func(all *map[string]*session) error {
		delete(*all, s.ID)
		return nil
	})
}

// setMessage stores a message for the next page of a session; takeMessage returns
// and removes it.
func (d *Sessions) setMessage(ctx context.Context, s *session, m *message) error {
	if m == nil {
		return nil
	}
	return d.change(ctx, s, func(s *session) { s.Message = m })
}

func (d *Sessions) takeMessage(ctx context.Context, s *session) (*message, error) {
	if s.Message == nil {
		return nil, nil
	}
	return s.Message, d.change(ctx, s, func(s *session) { s.Message = nil })
}

// validToken reports whether the token of a form is that of the session.
func (s *session) validToken(csrf string) bool {
	return subtle.ConstantTimeCompare([]byte(s.CSRF), []byte(csrf)) == 1
}

// formToken returns the token of a login form for the cookie of a browser. All replicas return the
// same token.
func (d *Sessions) formToken(ctx context.Context, cookie string) (string, error) {
	key, err := state.Make(ctx, d.state, d.name, "dashboard/key", func(key []byte) bool { return len(key) == sha256.Size }, func() ([]byte, error) {
		key := make([]byte, sha256.Size)
		_, err := rand.Read(key)
		return key, err
	})
	if err != nil {
		return "", err
	}
	m := hmac.New(sha256.New, key)
	m.Write([]byte(cookie))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil)), nil
}

// bucket is a rate limit. Full is the time at which all attempts are available.
type bucket struct {
	Full time.Time `json:"full"`
}

// take counts an attempt. If none is available, it returns the time until the next one.
func (b *bucket) take(now time.Time, burst int, every time.Duration) time.Duration {
	if b.Full.Before(now) || b.Full.Sub(now) > time.Duration(burst)*every {
		b.Full = now // full, or the clock was set back
	}
	if wait := b.Full.Sub(now) - time.Duration(burst-1)*every; wait > 0 {
		return wait
	}
	b.Full = b.Full.Add(every)
	return 0
}

// network returns the network that counts as one client: an IPv4 address, or the /64 of an IPv6
// address.
func network(a netip.Addr) netip.Prefix {
	bits := 64
	if a = a.Unmap().WithZone(""); a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // the zero address has the zero prefix and counts as one client
	return p
}

// attempt counts an attempt of a client. If the client has none left, it returns the time until
// the next one. Attempts of unknown clients do not delay known ones.
func (d *Sessions) attempt(ctx context.Context, from netip.Addr, now time.Time) (wait time.Duration, err error) {
	client := network(from)
	err = d.attempts.Update(ctx, func(a *attempts) error {
		b, all := a.Clients[client], a.All
		if wait = b.take(now, clientBurst, clientEvery); wait > 0 {
			return errWait
		}
		if _, known := a.Known[client]; !known { // at most maxKnown clients are known, so they need no total limit
			if wait = all.take(now, allBurst, allEvery); wait > 0 {
				return errWait
			}
		}
		if a.All = all; a.Clients == nil {
			a.Clients = make(map[netip.Prefix]bucket)
		}
		maps.DeleteFunc(a.Clients, func(_ netip.Prefix, o bucket) bool { return o.Full.Before(now) })
		a.Clients[client] = b
		return nil
	})
	if errors.Is(err, errWait) {
		err = nil
	}
	return wait, err
}

var errWait = errors.New("too many attempts")

// succeeded marks a client as known, because it has logged in, and resets its attempts.
func (d *Sessions) succeeded(ctx context.Context, from netip.Addr, now time.Time) error {
	client := network(from)
	return d.attempts.Update(ctx, func(a *attempts) error {
		delete(a.Clients, client)
		if a.Known == nil {
			a.Known = make(map[netip.Prefix]time.Time)
		}
		if len(a.Known) >= maxKnown {
			delete(a.Known, slices.MinFunc(slices.Collect(maps.Keys(a.Known)), func(x, y netip.Prefix) int { return a.Known[x].Compare(a.Known[y]) }))
		}
		a.Known[client] = now
		return nil
	})
}
