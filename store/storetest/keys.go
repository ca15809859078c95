package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// add stores a new key and returns its hash.
func (f *fixture) add(name string, expires time.Time, scopes ...millrace.Scope) store.KeyHash {
	f.Helper()
	_, hash := store.NewKey()
	if err := f.store.Keys().Add(f.Context(), store.Key{Name: name, Hash: hash, Scopes: scopes, Expires: expires}); err != nil {
		f.Fatalf("add key %s: %v", name, err)
	}
	return hash
}

func (f *fixture) keys() []store.Key {
	f.Helper()
	keys, err := f.store.Keys().List(f.Context())
	if err != nil {
		f.Fatalf("keys: %v", err)
	}
	return keys
}

func keyCases() []testCase {
	const read, update = millrace.ScopeRead, millrace.ScopeUpdate
	return []testCase{
		{"a store begins without a key", func(_ *testing.T, f *fixture) { want(f, "keys", f.keys(), nil) }},
		{"keys are stored unchanged", func(_ *testing.T, f *fixture) {
			now := f.clock()
			soon := now.Add(90 * time.Minute)
			b := f.add("b, with a space and ü", soon, read, update, read)
			f.pass(time.Second)
			a := f.add("a", time.Time{}, update)
			all := []store.Key{
				{Name: "a", Hash: a, Scopes: []millrace.Scope{update}, Created: now.Add(time.Second)},
				{Name: "b, with a space and ü", Hash: b, Scopes: []millrace.Scope{read, update}, Created: now, Expires: soon},
			}
			want(f, "keys", f.keys(), all)
			f.reopen()
			want(f, "keys after reopening", f.keys(), all)
			want(f, "holds", []bool{all[1].ValidAt(soon.Add(-time.Second)), all[1].ValidAt(soon), all[0].ValidAt(soon)}, []bool{true, false, true})
			want(f, "may", []bool{all[0].HasScope(read), all[0].HasScope(update), all[0].HasScope("")}, []bool{false, true, false})
		}},
		{"a key that expired before 1970 is invalid", func(_ *testing.T, f *fixture) {
			f.add("old", time.Unix(0, 0), read)
			k := f.keys()[0]
			want(f, "holds", k.ValidAt(f.clock()), false)
		}},
		{"a revoked key stays in the list, and its name is free", func(_ *testing.T, f *fixture) {
			first := f.add("a", time.Time{}, read)
			f.pass(time.Minute)
			if err := f.store.Keys().Revoke(f.Context(), "a"); err != nil {
				f.Fatal(err)
			}
			revoked := f.clock()
			f.pass(time.Minute)
			for _, name := range []string{"a", "b", "", "A"} {
				if err := f.store.Keys().Revoke(f.Context(), name); !errors.Is(err, millrace.ErrNotFound) {
					f.Errorf("revoke %q: %v", name, err)
				}
			}
			second := f.add("a", time.Time{}, update)
			keys := f.keys()
			want(f, "hashes", []store.KeyHash{keys[0].Hash, keys[1].Hash}, []store.KeyHash{first, second})
			want(f, "revoked", []time.Time{keys[0].Revoked, keys[1].Revoked}, []time.Time{revoked, {}})
			want(f, "holds", []bool{keys[0].ValidAt(f.clock()), keys[1].ValidAt(f.clock())}, []bool{false, true})
		}},
		{"no two keys have the same name or hash", func(_ *testing.T, f *fixture) {
			hash := f.add("a", f.clock().Add(-time.Hour), read)
			_, other := store.NewKey()
			for _, k := range []store.Key{{Name: "a", Hash: other}, {Name: "b", Hash: hash}} {
				k.Scopes = []millrace.Scope{read}
				if err := f.store.Keys().Add(f.Context(), k); !errors.Is(err, millrace.ErrConflict) {
					f.Errorf("add %s: %v", k.Name, err)
				}
			}
			want(f, "number", len(f.keys()), 1)
		}},
		{"of several concurrent Adds of one name, one succeeds", func(_ *testing.T, f *fixture) {
			var wg sync.WaitGroup
			errs := make([]error, 8)
			for i := range errs {
				_, hash := store.NewKey()
				wg.Go(func() {
					errs[i] = f.store.Keys().Add(f.Context(), store.Key{Name: "a", Hash: hash, Scopes: []millrace.Scope{read}})
				})
			}
			wg.Wait()
			added := 0
			for _, err := range errs {
				if err == nil {
					added++
				} else if !errors.Is(err, millrace.ErrConflict) {
					f.Errorf("%v", err)
				}
			}
			want(f, "added", added, 1)
		}},
		{"an invalid key is refused", func(_ *testing.T, f *fixture) {
			secret, hash := store.NewKey()
			for name, scopes := range map[string][]millrace.Scope{
				"": {read}, "a\nb": {read}, "a\x00": {read}, "a\u009bb": {read}, "\xff": {read}, strings.Repeat("a", store.MaxKeyName+1): {read},
				secret: {read}, "no scope": nil, "unknown scope": {read, "write"}, "empty scope": {""},
			} {
				err := f.store.Keys().Add(f.Context(), store.Key{Name: name, Hash: hash, Scopes: scopes})
				if !errors.Is(err, millrace.ErrInvalid) || strings.Contains(fmt.Sprint(err), secret) {
					f.Errorf("%q with %q: %v", name, scopes, err)
				}
			}
			want(f, "keys", f.keys(), nil)
		}},
	}
}
