package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace"
)

// swap replaces a value and checks the kind of the error. A nil kind means no error.
func (f *fixture) swap(namespace, key, old, new string, kind error) {
	f.Helper()
	err := f.store.State().Swap(f.Context(), namespace, key, []byte(old), []byte(new))
	if !errors.Is(err, kind) {
		f.Errorf("swap %s of %s from %q to %q: %v, want %v", key, namespace, old, new, err, kind)
	}
}

func (f *fixture) value(namespace, key string) string {
	f.Helper()
	v, err := f.store.State().Value(f.Context(), namespace, key)
	if err != nil {
		f.Fatalf("%s of %s: %v", key, namespace, err)
	}
	return string(v)
}

func stateCases() []testCase {
	return []testCase{
		{"Swap replaces only the given value", func(_ *testing.T, f *fixture) {
			want(f, "at first", f.value("a", "k"), "")
			f.swap("a", "k", "", "one", nil)
			f.swap("a", "k", "", "two", millrace.ErrConflict)
			f.swap("a", "k", "other", "two", millrace.ErrConflict)
			f.swap("a", "k", "one", "two\x00\xff", nil)
			want(f, "value", f.value("a", "k"), "two\x00\xff")
			want(f, "another key", f.value("a", "K"), "")
			want(f, "another namespace", f.value("A", "k"), "")
			f.reopen()
			want(f, "after reopening", f.value("a", "k"), "two\x00\xff")
			f.swap("a", "k", "two\x00\xff", "", nil)
			want(f, "removed", f.value("a", "k"), "")
			f.swap("a", "k", "", "", nil)
			f.swap("a", "k", "", "again", nil)
		}},
		{"a value needs a namespace and a key, and no site", func(_ *testing.T, f *fixture) {
			f.swap("", "k", "", "x", millrace.ErrInvalid)
			f.swap("a", "", "", "x", millrace.ErrInvalid)
			f.swap("https://elsewhere.example", "robots.txt", "", strings.Repeat("x", 1<<20), nil)
			want(f, "bytes", len(f.value("https://elsewhere.example", "robots.txt")), 1<<20)
		}},
		{"Namespaces yields those with a value of a key", func(t *testing.T, f *fixture) {
			var all []string
			for i := range 1200 {
				all = append(all, fmt.Sprintf("n%04d", i))
				f.swap(all[i], "k", "", "x", nil)
			}
			f.swap("a", "other", "", "x", nil)
			f.swap(all[0], "k", "x", "", nil)
			var got []string
			for name, err := range f.store.State().Namespaces(t.Context(), "k") {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, name)
			}
			want(f, "namespaces", got, all[1:])
			for name, err := range f.store.State().Namespaces(t.Context(), "k") {
				want(f, "first", []any{name, err}, []any{all[1], nil})
				break
			}
		}},
		{"of several concurrent Swaps of one value, one succeeds", func(t *testing.T, f *fixture) {
			var done atomic.Int64
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					err := f.store.State().Swap(t.Context(), "a", "k", nil, fmt.Append(nil, i))
					switch {
					case err == nil:
						done.Add(1)
					case !errors.Is(err, millrace.ErrConflict):
						t.Errorf("swap: %v", err)
					}
				})
			}
			all.Wait()
			want(f, "done", done.Load(), int64(1))
		}},
	}
}
