package artifacttest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
)

// putsOfOneName puts one name many times concurrently. All calls must succeed, and all readers must
// see the same bytes.
func (f *fixture) putsOfOneName() {
	for round := range 10 {
		name := fmt.Sprintf("round/%d", round)
		var all sync.WaitGroup
		seen := make([]string, 8)
		for i := range seen {
			all.Go(func() {
				content := strings.Repeat(fmt.Sprint(i), 50_000+i)
				if err := f.Put(f.Context(), name, strings.NewReader(content)); err != nil {
					f.Error(err)
					return
				}
				r, err := f.Open(f.Context(), name, 0, -1)
				if err != nil {
					f.Error(err)
					return
				}
				defer r.Close()
				got, err := io.ReadAll(r)
				if err != nil {
					f.Error(err)
				}
				seen[i] = string(got)
			})
		}
		all.Wait()
		slices.Sort(seen)
		if len(slices.Compact(seen)) != 1 {
			f.Fatal("readers have seen different bytes of one artifact")
		}
		if n := len(seen[0]) - 50_000; n < 0 || n > 7 || seen[0] != strings.Repeat(fmt.Sprint(n), 50_000+n) {
			f.Fatalf("an artifact has %d bytes that no Put wrote", len(seen[0]))
		}
	}
}

// allAtOnce puts, touches, deletes, reads and lists a few names concurrently. Each artifact must be
// complete or absent.
func (f *fixture) allAtOnce() {
	names := []string{"a", "a/b", "c"}
	content := func(name string) string { return strings.Repeat(name+"\n", 3000) }
	var all sync.WaitGroup
	for g := range 6 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for range 300 {
				name := names[rng.IntN(len(names))]
				var err error
				switch g {
				case 0, 1:
					err = f.Put(f.Context(), name, strings.NewReader(content(name)))
				case 2:
					err = f.Delete(f.Context(), name)
				case 3:
					err = artifact.Touch(f.Context(), f, name)
				case 4:
					var r io.ReadCloser
					if r, err = f.Open(f.Context(), name, 0, -1); err == nil {
						got, readErr := io.ReadAll(r)
						// Reading may fail if the artifact is deleted meanwhile.
						if readErr == nil && string(got) != content(name) {
							err = fmt.Errorf("%s has %d bytes", name, len(got))
						}
						r.Close()
					}
				case 5:
					last := ""
					for info, listErr := range f.List(f.Context(), "") {
						if listErr != nil || info.Size != int64(len(content(info.Name))) || info.Name <= last {
							err = fmt.Errorf("list has %+v after %q (%w)", info, last, errors.Join(listErr))
							break
						}
						last = info.Name
					}
				}
				if err != nil && (!errors.Is(err, millrace.ErrNotFound) || g < 3 || g == 5) {
					f.Errorf("goroutine %d, %s: %v", g, name, err)
				}
			}
		})
	}
	all.Wait()
	for _, name := range names {
		f.put(name, content(name))
		f.want(name, content(name))
	}
	f.wantList("", names...)
}

// putsAndDeletes puts and deletes one small artifact concurrently. Put must succeed even if a
// Delete removes the artifact meanwhile.
func (f *fixture) putsAndDeletes() {
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for range 200 {
				err := f.Delete(f.Context(), "a")
				if g < 6 {
					err = f.Put(f.Context(), "a", strings.NewReader("x"))
				}
				if err != nil {
					f.Errorf("goroutine %d: %v", g, err)
				}
			}
		})
	}
	all.Wait()
	f.put("a", "x")
	f.want("a", "x")
}

// random applies random operations to a store and a map, and compares them.
func (f *fixture) random() {
	rng := rand.New(rand.NewPCG(21, 1))
	model := map[string]string{}
	segments := []string{"a", "b", "a-b", "a.b", "0"}
	for step := range 600 {
		name := segments[rng.IntN(len(segments))]
		for rng.IntN(2) == 0 {
			name += "/" + segments[rng.IntN(len(segments))]
		}
		if len(name) > 12 {
			continue
		}
		content, exists := model[name]
		switch rng.IntN(6) {
		case 0, 1, 2:
			next := fmt.Sprint(step, strings.Repeat("x", rng.IntN(2000)))
			f.put(name, next)
			if !exists {
				model[name] = next
			}
		case 3:
			if err := f.Delete(f.Context(), name); err != nil {
				f.Fatal(err)
			}
			delete(model, name)
		case 4:
			if exists {
				f.want(name, content)
			} else {
				f.wantAbsent(name)
			}
		case 5:
			prefix := name[:rng.IntN(len(name)+1)]
			var want []string
			for _, n := range slices.Sorted(maps.Keys(model)) {
				if strings.HasPrefix(n, prefix) {
					want = append(want, n)
				}
			}
			f.wantList(prefix, want...)
		}
		if f.Failed() {
			f.Fatalf("at step %d", step)
		}
	}
	f.wantList("", slices.Sorted(maps.Keys(model))...)
	for name, content := range model {
		f.want(name, content)
	}
}
