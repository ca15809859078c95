package sqlite

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/store"
)

// told gives all sums of a store, and what was asked for most.
func told(t *testing.T, s *Store) (list []string) {
	t.Helper()
	for _, per := range []store.Period{store.Day, store.Hour} {
		for sum, err := range s.Sums(t.Context(), "main", store.SumQuery{Per: per}) {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, fmt.Sprintf("%+v", sum))
		}
	}
	for _, of := range topics[1:] {
		items, err := s.Top(t.Context(), "main", of, time.Time{}, time.Time{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range items {
			it.Last = time.Time{} // which is forgotten when they are added up after the day
			list = append(list, fmt.Sprintf("%s: %+v", of, it))
		}
	}
	slices.Sort(list)
	return list
}

// TestUsageTogether has two processes record the same site, and add up what both
// have: whatever the order, it comes to the same as with one.
func TestUsageTogether(t *testing.T) {
	t.Parallel()
	byRunning, byReading := 0, 0
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 1))
		now := time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)
		o := &Options{Now: func() time.Time { return now }, blockEvents: 16, foldEvents: 1 + rng.IntN(80)}
		file := filepath.Join(t.TempDir(), "x.db")
		both := []*Store{usageStore(t, file, o), usageStore(t, file, o)}
		one := usageStore(t, filepath.Join(t.TempDir(), "x.db"), o)
		turn := 0
		for round := range 30 {
			if rng.IntN(4) == 0 {
				turn = 1 - turn
			}
			s := both[turn]
			switch rng.IntN(10) {
			case 0:
				id, err := usageSite(bound{t.Context(), s.read}, "main")
				if err != nil {
					t.Fatal(err)
				}
				if s.running.of[id] != nil {
					byRunning++
				} else {
					byReading++
				}
				if _, err := s.fold(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			case 1:
				if err := s.Tidy(t.Context(), "main", time.Time{}, time.Time{}); err != nil {
					t.Fatal(err)
				}
			default:
				events := visits(rng, now, 0.01, 1+rng.IntN(40))
				for i := range rng.IntN(3) { // of the day before and the next
					events[rng.IntN(len(events))].Time = now.Add(time.Duration(i*24-12) * time.Hour)
				}
				if err := s.Record(t.Context(), "main", events); err != nil {
					t.Fatal(err)
				}
				if err := one.Record(t.Context(), "main", events); err != nil {
					t.Fatal(err)
				}
				now = now.Add(time.Duration(rng.IntN(30)) * time.Minute)
			}
			if round%6 != 5 {
				continue
			}
			want := told(t, one)
			for i, s := range both {
				if diff := cmp.Diff(want, told(t, s)); diff != "" {
					t.Fatalf("seed %d: process %d (-one alone +both):\n%s", seed, i, diff)
				}
			}
		}
	}
	if byRunning == 0 || byReading == 0 {
		t.Errorf("%d times something was added up that the process had counted itself, %d times it had to read it", byRunning, byReading)
	}
}

// TestUsageApart records more bots than are to be told apart while they are in
// no sum: they are added early, and all are counted.
func TestUsageApart(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := usageStore(t, filepath.Join(t.TempDir(), "x.db"), &Options{Now: func() time.Time { return now }})
	const n = foldApart + 100
	events := make([]store.Event, n)
	for i := range events {
		events[i] = store.Event{Time: now, Bot: fmt.Sprint("bot ", i), Protocol: "scp", Endpoint: store.EndpointFetch, Path: "/", Status: 200}
	}
	if err := s.Record(t.Context(), "main", events); err != nil {
		t.Fatal(err)
	}
	next, summed, err := usageState(bound{t.Context(), s.read}, 1)
	if err != nil || next != n+1 || summed != next {
		t.Errorf("next %d, in sums before %d, %v", next, summed, err)
	}
	var sum int64
	for e, err := range s.Sums(t.Context(), "main", store.SumQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		sum += e.Events
	}
	if sum != n {
		t.Errorf("%d events are in sums, not %d", sum, n)
	}
}

// TestTops holds the ways to bring tops together, and to leave out the least,
// against slow ones.
func TestTops(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		want := make(map[string]topRow)
		var lists []tops
		for range rng.IntN(7) {
			var list tops
			for i := range 30 {
				if rng.IntN(3) == 0 {
					r := topRow{name: fmt.Sprintf("%02d", i), events: 1 + rng.Int64N(4), empty: rng.Int64N(2), bytes: rng.Int64N(9), last: rng.Int64N(5)}
					list = append(list, r)
					w, ok := want[r.name]
					if !ok {
						w = topRow{name: r.name}
					}
					w.add(&r)
					want[r.name] = w
				}
			}
			lists = append(lists, list)
		}
		var sorted tops
		for _, r := range want {
			sorted = append(sorted, r)
		}
		byName := func(a, b topRow) int {
			return int(a.name[0])*256 + int(a.name[1]) - int(b.name[0])*256 - int(b.name[1])
		}
		slices.SortFunc(sorted, byName)
		got := together(lists)
		if !slices.Equal(got, sorted) {
			t.Fatalf("seed %d: %v, want %v", seed, got, sorted)
		}
		n := 1 + rng.IntN(30)
		most := sorted.most(n)
		slices.SortFunc(most, byName)
		if cut := got.cut(n); !slices.Equal(cut, tops(most)) {
			t.Fatalf("seed %d: the %d asked most: %v, want %v", seed, n, cut, most)
		}
	}
}

// TestInOrder holds the order of texts against that of a slow sort.
func TestInOrder(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		texts := []string{""}
		start := strings.Repeat("/a", rng.IntN(4))
		for range rng.IntN(40) {
			b := []byte(start)
			for range rng.IntN(12) {
				b = append(b, "ab\x00\xff"[rng.IntN(4)])
			}
			texts = append(texts, string(b))
		}
		slices.Sort(texts)
		want := slices.Clone(texts)
		rng.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
		got := []string{}
		for _, o := range inOrder(texts) {
			got = append(got, texts[o.at])
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %q, want %q", seed, got, want)
		}
	}
	if got := inOrder(nil); len(got) != 0 {
		t.Errorf("%v of nothing", got)
	}
}
