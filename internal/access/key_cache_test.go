package access

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// counting is a key store that counts reads and may fail.
type counting struct {
	store.Keys
	down bool
	asks int
}

func (c *counting) List(ctx context.Context) ([]store.Key, error) {
	if c.asks++; c.down {
		return nil, errors.New("secret disk")
	}
	return c.Keys.List(ctx)
}

// guarded returns a guard with keys and a clock, and a function that returns the status for a
// key with the scope read.
func guarded(t *testing.T, now *time.Time) (g *Guard, keys *counting, status func(key string) int) {
	t.Helper()
	keys = &counting{Keys: memory.New(nil).Keys()}
	g, err := New(&Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	g.keys.now = func() time.Time { return *now }
	g.keys.clock = g.keys.now
	return g, keys, func(key string) int {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+key)
		q := g.Request(r)
		if err := q.CheckKey(); err != nil {
			return millrace.Status(err)
		}
		return http.StatusOK
	}
}

func addKey(t *testing.T, keys store.Keys, name string, expires time.Time, scope millrace.Scope) (string, store.KeyHash) {
	t.Helper()
	key, hash := store.NewKey()
	if err := keys.Add(t.Context(), store.Key{Name: name, Hash: hash, Scopes: []millrace.Scope{scope}, Expires: expires}); err != nil {
		t.Fatal(err)
	}
	return key, hash
}

// A new key works at once. Requests with unknown keys cause few reads of the store.
func TestNewKey(t *testing.T) {
	now := time.Now()
	g, keys, status := guarded(t, &now)
	g.guesses.burst = 1 << 20
	if key, _ := addKey(t, keys, "read", time.Time{}, millrace.ScopeRead); status(key) != 200 {
		t.Fatal(status(key))
	}
	key, _ := addKey(t, keys, "new", time.Time{}, millrace.ScopeRead)
	now = now.Add(keysNew)
	if code := status(key); code != 200 {
		t.Errorf("a request with a new key: status %d", code)
	}
	keys.asks = 0
	unknown, _ := store.NewKey()
	for range 1000 { // all within one second
		now = now.Add(time.Millisecond)
		if code := status(unknown); code != 401 {
			t.Fatal(code)
		}
	}
	if most := int(time.Second / keysNew); keys.asks > most {
		t.Errorf("the store is read %d times per second", keys.asks)
	}
	g.keys.took = keysNew // a slow store is read less often
	keys.asks = 0
	now = now.Add(keysNew)
	if status(unknown); keys.asks != 0 {
		t.Errorf("a slow store is read again after %v", keysNew)
	}
}

// While the store cannot be read, keys are refused, and not every request reads the store.
func TestKeysCannotBeRead(t *testing.T) {
	now := time.Now()
	g, keys, status := guarded(t, &now)
	read, _ := addKey(t, keys, "read", time.Time{}, millrace.ScopeRead)
	_, hash := addKey(t, keys, "update", now.Add(time.Hour), millrace.ScopeUpdate)
	if code := status(read); code != 200 {
		t.Fatal(code)
	}
	_, done := g.keys.lease(t.Context(), &store.Key{}, millrace.ScopeRead)
	defer done()
	key, _ := g.keys.key(t.Context(), http.Header{"Authorization": {"Bearer " + read}}, false)
	ctx, done := g.keys.lease(t.Context(), key, millrace.ScopeRead)
	defer done()
	keys.down, keys.asks = true, 0
	for i := range 29 {
		now = now.Add(keysFor)
		for range 5 {
			if code := status(read); code != 503 {
				t.Fatal(code)
			}
		}
		if g.keys.sweep(t.Context()); ctx.Err() != nil {
			t.Fatalf("ended after %d reads", i)
		}
	}
	if keys.asks != 29 {
		t.Errorf("read %d times", keys.asks)
	}
	now = now.Add(keysFor)
	if g.keys.sweep(t.Context()); !errors.Is(context.Cause(ctx), ErrRevoked) {
		t.Error("the lease does not end")
	}
	// A cached key still expires.
	g.keys.failed = 0
	key = g.keys.cached(hash)
	ctx, done = g.keys.lease(t.Context(), key, millrace.ScopeUpdate)
	defer done()
	if g.keys.sweep(t.Context()); ctx.Err() != nil {
		t.Error("the lease ended before the key expired")
	}
	was := now
	now = now.Add(time.Hour)
	if g.keys.sweep(t.Context()); !errors.Is(context.Cause(ctx), ErrRevoked) {
		t.Error("an expired key remains valid while the store is down")
	}
	now = was
	keys.down, now = false, now.Add(keysFor)
	if code := status(read); code != 200 {
		t.Errorf("afterwards: %d", code)
	}
	now = now.Add(-time.Hour) // setting the clock back does not keep old keys valid
	if keys.asks = 0; status(read) != 200 || keys.asks != 1 {
		t.Errorf("read %d times", keys.asks)
	}
}
