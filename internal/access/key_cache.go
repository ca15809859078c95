package access

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// keyCache caches the keys of a store for a short time. A revoked key stops working within that
// time, in every process.
type keyCache struct {
	keys store.Keys
	now  func() time.Time
	// clock returns the store's time, which determines when keys expire.
	clock func() time.Time
	own   atomic.Pointer[store.Key] // the owner's key, see OwnKey; nil if none

	mu     sync.Mutex
	read   time.Time // time of the last read
	took   time.Duration
	err    error // error of the last read
	byHash map[uint64][]store.Key
	leases map[*lease]struct{}
	failed int // failed reads in a row
}

const (
	keysFor    = time.Second           // lifetime of the cached keys
	keysNew    = 50 * time.Millisecond // lifetime of the cached keys for a request with an unknown key, which may be new
	keysShare  = 20                    // reads for unknown keys take at most 1/keysShare of the time
	keysWait   = 5 * time.Second       // time limit of a read
	keysFailed = 30                    // failed reads in a row after which all leases end
)

// lease is a request that ends when its key is no longer valid.
type lease struct {
	hash  store.KeyHash
	scope millrace.Scope
	end   context.CancelCauseFunc
}

func newKeyCache(keys store.Keys) *keyCache {
	return &keyCache{keys: keys, now: time.Now, clock: time.Now, leases: make(map[*lease]struct{})}
}

// bucket returns the index of a hash in byHash. The duration of a lookup reveals only these 8 bytes
// of the hash, which a client cannot choose.
func bucket(h store.KeyHash) (n uint64) {
	for _, b := range h[:8] {
		n = n<<8 | uint64(b)
	}
	return n
}

// find returns the key with a hash, valid or not, or nil if absent.
func (k *keyCache) find(ctx context.Context, hash store.KeyHash) (*store.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.refresh(ctx, keysFor); err != nil {
		return nil, err
	}
	if key := k.cached(hash); key != nil {
		return key, nil
	}
	// The key may have been created since the last read.
	if err := k.refresh(ctx, max(keysNew, keysShare*k.took)); err != nil {
		return nil, err
	}
	return k.cached(hash), nil
}

// cached returns a key from the cache, or nil. The caller holds the lock.
func (k *keyCache) cached(hash store.KeyHash) (found *store.Key) {
	same := k.byHash[bucket(hash)]
	for i := range same {
		if subtle.ConstantTimeCompare(same[i].Hash[:], hash[:]) == 1 {
			found = &same[i]
		}
	}
	return found
}

// refresh reads the keys from the store. If the time since the last read is less than ago, refresh
// only returns the error of that read. The caller holds the lock.
func (k *keyCache) refresh(ctx context.Context, ago time.Duration) error {
	now := k.now()
	if since := now.Sub(k.read); !k.read.IsZero() && since >= 0 && since < ago {
		return k.err
	}
	// Other requests wait for the same read, so it must not end with this request.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keysWait)
	defer cancel()
	keys, err := k.keys.List(ctx)
	k.read, k.err = k.now(), nil
	k.took = k.read.Sub(now)
	if err != nil {
		k.err = fmt.Errorf("read keys: %w: %w", millrace.ErrUnavailable, err)
		return k.err
	}
	k.byHash = make(map[uint64][]store.Key, len(keys))
	for _, key := range keys {
		k.byHash[bucket(key.Hash)] = append(k.byHash[bucket(key.Hash)], key)
	}
	return nil
}

// lease returns a context that ends when a key is revoked or expires, and a function that ends the
// lease.
func (k *keyCache) lease(ctx context.Context, key *store.Key, scope millrace.Scope) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &lease{key.Hash, scope, cancel}
	k.mu.Lock()
	k.leases[l] = struct{}{}
	k.mu.Unlock()
	return ctx, func() {
		k.mu.Lock()
		delete(k.leases, l)
		k.mu.Unlock()
		cancel(nil)
	}
}

// ErrRevoked is the cancellation cause of a lease whose key is no longer valid.
var ErrRevoked = fmt.Errorf("%w: the key is revoked or expired", millrace.ErrForbidden)

// sweep ends the leases whose keys are no longer valid, and all leases after keysFailed failed
// reads in a row.
func (k *keyCache) sweep(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.leases) == 0 {
		k.failed = 0
		return
	}
	if k.failed++; k.refresh(ctx, keysFor) == nil {
		k.failed = 0
	}
	now := k.clock()
	for l := range k.leases {
		key := k.cached(l.hash) // from the last successful read
		if k.failed >= keysFailed || key == nil || !key.ValidAt(now) || !key.HasScope(l.scope) {
			l.end(ErrRevoked)
		}
	}
}

// run calls sweep periodically until the context ends.
func (k *keyCache) run(ctx context.Context) {
	tick := time.NewTicker(keysFor)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			k.sweep(ctx)
		}
	}
}

// Refusal is an error with header fields for its response.
type Refusal struct {
	Err       millrace.RequestError
	Challenge string // value of WWW-Authenticate
	Retry     int    // value of Retry-After in seconds, or 0
}

// Error implements error.
func (e *Refusal) Error() string { return e.Err.Error() }

// Unwrap returns the error for the client.
func (e *Refusal) Unwrap() error { return &e.Err }

const challenge = `Bearer realm="millrace"`

// KeyError returns the refusal of a request with a missing or wrong key.
func KeyError(text string) error {
	e := &Refusal{Err: millrace.RequestError{Status: http.StatusUnauthorized, Code: "AUTH_REQUIRED", Text: text}, Challenge: challenge}
	if text != noKey {
		e.Challenge += `, error="invalid_token", error_description="` + text + `"`
	}
	return e
}

// errUnknown is the error for an unknown key, which may be a guess.
var errUnknown = KeyError("unknown key")

// errGuarded is the error for content that needs a key, on a site that has no keys.
var errGuarded = &millrace.RequestError{Status: http.StatusUnauthorized, Code: "AUTH_REQUIRED", Text: "this request needs a key"}

const noKey = "this request needs a key; send it as Authorization: Bearer KEY"

// errTwo is the error for an ambiguous Authorization header.
var errTwo = &Refusal{
	Err:       millrace.RequestError{Status: http.StatusBadRequest, Code: "AUTH_REQUIRED", Text: "more than one Authorization field or value"},
	Challenge: challenge + `, error="invalid_request"`,
}

// ErrKeyInURL is the error for a request with a key in its URL.
var ErrKeyInURL = &Refusal{Err: millrace.RequestError{
	Status: http.StatusBadRequest, Code: "INVALID_PARAM",
	Text: "keys in URLs are refused, because logs and caches store URLs; revoke this key, and send a new one as Authorization: Bearer KEY",
}}

// bearer returns the key of a request, or "" if absent.
func bearer(h http.Header) (string, error) {
	fields := h["Authorization"]
	if len(fields) == 0 {
		return "", nil
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(fields[0]), " ")
	switch {
	case len(fields) > 1 || strings.ContainsRune(token, ','):
		return "", errTwo
	case !strings.EqualFold(scheme, "Bearer"):
		return "", nil // another scheme, possibly for a proxy
	}
	return strings.TrimLeft(token, " "), nil
}

// key returns the key of a request, if it is valid. Otherwise, it returns the error for the
// response, in case the request needs a key. owned reports that the owner sent the request.
func (k *keyCache) key(ctx context.Context, h http.Header, owned bool) (*store.Key, error) {
	token, err := bearer(h)
	switch {
	case err != nil:
		return nil, err
	case token == "" || k == nil:
		return nil, KeyError(noKey)
	}
	hash, err := store.ReadKey(token)
	if err != nil {
		return nil, KeyError(strings.TrimPrefix(err.Error(), millrace.ErrInvalid.Error()+": "))
	}
	if own := k.own.Load(); own != nil && owned && subtle.ConstantTimeCompare(own.Hash[:], hash[:]) == 1 {
		return own, nil
	}
	key, err := k.find(ctx, hash)
	switch {
	case err != nil:
		return nil, err
	case key == nil:
		return nil, errUnknown
	case !key.Revoked.IsZero():
		return nil, KeyError("the key is revoked")
	case !key.ValidAt(k.clock()):
		return nil, KeyError("the key has expired")
	}
	return key, nil
}

// lacking returns the error for a key that lacks a scope.
func lacking(scope millrace.Scope) error {
	return &Refusal{
		Err:       millrace.RequestError{Status: http.StatusForbidden, Code: "AUTH_REQUIRED", Text: "the key lacks the scope " + string(scope)},
		Challenge: challenge + `, error="insufficient_scope", scope="` + string(scope) + `"`,
	}
}

// minKeyLength is the minimum number of characters after the prefix in a text that counts as a key.
const minKeyLength = 24

// HoldsKey reports whether a part of a URL looks like a key, plain or percent-encoded.
func HoldsKey(s string) bool {
	if len(s) < len(store.KeyPrefix)+minKeyLength {
		return false
	}
	for range 4 { // plain, and up to three levels of encoding
		for rest := s; ; {
			_, after, ok := strings.Cut(rest, store.KeyPrefix)
			if !ok {
				break
			}
			n := strings.IndexFunc(after, func(c rune) bool { return c >= 0x80 || !isAlphanumeric(byte(c)) })
			if n >= minKeyLength || n < 0 && len(after) >= minKeyLength {
				return true
			}
			rest = after
		}
		if !strings.Contains(s, "%") {
			return false
		}
		decoded := decode(s)
		if decoded == s {
			return false
		}
		s = decoded
	}
	return false
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// decode acts like [url.PathUnescape], but keeps invalid escapes.
func decode(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := url.PathUnescape(s[i : i+3]); err == nil {
				b.WriteString(c)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Redact returns a part of a URL for logging. If the part seems to contain a key, Redact returns a
// placeholder.
func Redact(part string) string {
	if HoldsKey(part) {
		return "/(a key)"
	}
	return part
}

// may returns the key of a request if the key has the scope.
func (q *Request) may(scope millrace.Scope) (*store.Key, error) {
	if !q.asked {
		q.asked = true
		q.key, q.keyErr = q.known()
	}
	if q.keyErr != nil {
		return nil, q.keyErr
	}
	if !q.key.HasScope(scope) {
		return nil, lacking(scope)
	}
	return q.key, nil
}

// known returns the key of the request. A network that has tried many unknown keys temporarily gets
// 429 for every key.
func (q *Request) known() (*store.Key, error) {
	k, l, guesses := q.guard.keys, q.guard.limits, q.guard.guesses
	if k == nil || q.r.Header["Authorization"] == nil {
		return k.key(q.r.Context(), q.r.Header, q.Owned)
	}
	if wait := l.spent(guesses, q.network()); wait > 0 {
		return nil, tooMany("too many unknown keys; try again later", wait)
	}
	key, err := k.key(q.r.Context(), q.r.Header, q.Owned)
	if errors.Is(err, errUnknown) {
		l.take(guesses, q.network())
	}
	return key, err
}

// CheckKey returns an error unless the request has a key with the scope read.
func (q *Request) CheckKey() error {
	if q == nil {
		return errGuarded
	}
	_, err := q.may(millrace.ScopeRead)
	return err
}

// HasKey reports whether the request has a key, valid or not.
func (q *Request) HasKey() bool {
	if q == nil {
		return false
	}
	token, err := bearer(q.r.Header)
	return token != "" || err != nil
}

// CheckContent counts the request against the content limit, and returns an error if the request
// may not read the content of a protocol. guarded reports that the content needs a key.
func (q *Request) CheckContent(guarded bool) error {
	if guarded {
		if err := q.CheckKey(); err != nil {
			return err
		}
	}
	if q == nil {
		return nil
	}
	return q.Charge()
}

// OwnKey creates and returns a key with the scope read that only the owner's requests can use. A
// second call replaces the key. OwnKey returns "" if the site has no keys.
func (g *Guard) OwnKey() (key string) {
	if g.keys != nil {
		own := &store.Key{Name: "the owner, in this process", Scopes: []millrace.Scope{millrace.ScopeRead}}
		key, own.Hash = store.NewKey()
		g.keys.own.Store(own)
	}
	return key
}

// Lease checks a scope and returns a context that ends when the request's key is
// revoked or expires. Call done afterwards.
func (q *Request) Lease(ctx context.Context, scope millrace.Scope) (_ context.Context, done func(), err error) {
	key, err := q.may(scope)
	if err != nil {
		return nil, nil, err
	}
	ctx, done = q.guard.keys.lease(ctx, key, scope)
	return ctx, done, nil
}
