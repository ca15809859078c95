package arc

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// A cache that follows a site by its changes returns the same days as one that reads the log
// of each view, also for days with too many changes.
func TestHistory(t *testing.T) {
	const most = 6
	type dayState struct {
		Start, Newest time.Time
		Since         uint64
		N             int
	}
	of := func(h *dayChanges, s *shop) (out []dayState) {
		t.Helper()
		days, err := h.daysOf(t.Context(), s.view(), most)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range days {
			if d.n > most {
				d.newest = time.Time{} // the day has no delta
			}
			out = append(out, dayState{d.start, d.newest, d.since, d.n})
		}
		return out
	}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s, cached := openShop(t, start), new(dayChanges)
		for step := range 60 {
			s.now = s.now.Add(time.Duration(rng.IntN(8)*rng.IntN(5)) * time.Hour)
			for range rng.IntN(4) {
				s.now = s.now.Add(time.Second)
				switch path := fmt.Sprintf("/%d", rng.IntN(30)); rng.IntN(5) {
				case 0:
					s.remove(path)
				default:
					s.put(plain(path, fmt.Sprint(rng.Uint32())))
				}
			}
			if step%15 == 14 {
				if err := s.site.Compact(t.Context(), 0, time.Duration(rng.IntN(10))*dayLength); err != nil {
					t.Fatal(err)
				}
			}
			if rng.IntN(3) == 0 {
				continue // the next edition has several changes
			}
			if want, got := fmt.Sprint(of(new(dayChanges), s)), fmt.Sprint(of(cached, s)); got != want {
				t.Fatalf("seed %d, step %d:\n%s, want\n%s", seed, step, got, want)
			}
		}
	}
}
