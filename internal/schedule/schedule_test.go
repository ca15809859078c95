package schedule

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// steady returns rules without jitter.
func steady(least, most time.Duration) *Rules {
	return &Rules{Min: least, Max: most, Rand: func() float64 { return 0.5 }}
}

// pauses returns the pause after each of several scans. Each scan ends when it is due.
func pauses(r *Rules, s State, each ...Scan) (waits []time.Duration, end State) {
	now := noon
	for _, l := range each {
		l.Ended = now
		s = r.After(s, l)
		wait := s.Due(now)
		waits, now = append(waits, wait), now.Add(wait)
	}
	return waits, s
}

// The interval shrinks for a site that changes and grows for one that does not, between the
// bounds.
func TestIntervalAdapts(t *testing.T) {
	r := steady(10*time.Minute, 3*time.Hour)
	changed, same := Scan{Changed: true}, Scan{}
	got, s := pauses(r, State{}, changed, changed, changed, changed, changed, same, same, same, same, same, same, same, same, same)
	want := []time.Duration{
		time.Hour, 30 * time.Minute, 15 * time.Minute, 10 * time.Minute, 10 * time.Minute, 15 * time.Minute, 22*time.Minute + 30*time.Second,
		33*time.Minute + 45*time.Second, 50*time.Minute + 37*time.Second + 500*time.Millisecond,
	}
	if d := cmp.Diff(want, got[:len(want)]); d != "" {
		t.Error(d)
	}
	if got[len(got)-1] != 3*time.Hour || s.Interval != 3*time.Hour {
		t.Errorf("without changes for a long time: %v", got)
	}
}

// Failures delay the next scan and do not change the learned interval.
func TestFails(t *testing.T) {
	r := steady(10*time.Second, 10*time.Minute)
	failed := Scan{Failed: true}
	got, s := pauses(r, State{Interval: 5 * time.Minute}, failed, failed, failed, failed, failed, failed)
	want := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute}
	if d := cmp.Diff(want, got); d != "" || s.Failures != 6 || s.Interval != 5*time.Minute {
		t.Errorf("%s\n%+v", d, s)
	}
	if s.Hint(s.Last) != s.Due(s.Last) {
		t.Error("a hint ends the pause after a failure")
	}
	for range 100 {
		if s = r.After(s, failed); s.Due(s.Last) != 10*time.Minute {
			t.Fatalf("after %d failures: %s", s.Failures, s.Due(s.Last))
		}
	}
	if s = r.After(s, Scan{Ended: noon}); s.Failures != 0 || s.Due(noon) != 7*time.Minute+30*time.Second {
		t.Errorf("after a successful scan: %+v", s)
	}
	if got, _ := pauses(r, State{}, Scan{Failed: true, Refused: true}); got[0] != 10*time.Minute {
		t.Errorf("a site that refuses scans is scanned again in %s", got[0])
	}
}

// A Retry-After takes precedence over the learned interval and over hints.
func TestAsked(t *testing.T) {
	r := steady(time.Second, time.Hour)
	for _, tt := range []struct {
		name      string
		look      Scan
		due, hint time.Duration
	}{
		{"nothing", Scan{Changed: true}, 20 * time.Minute, time.Second},
		{"a time", Scan{Failed: true, NotBefore: noon.Add(9 * time.Hour)}, 9*time.Hour + 30*time.Second, 9 * time.Hour},
		{"a time in the past", Scan{NotBefore: noon.Add(-time.Hour)}, time.Hour, time.Second},
		{"a rate", Scan{Gap: 2 * time.Hour}, 2 * time.Hour, 2 * time.Hour},
		{"a long scan", Scan{Took: 30 * time.Minute}, 2 * time.Hour, 2 * time.Hour},
		{"a scan that must be confirmed", Scan{Unconfirmed: true}, time.Minute, time.Second},
	} {
		tt.look.Ended = noon
		s := r.After(State{Interval: 40 * time.Minute}, tt.look)
		if due, hint := s.Due(noon), s.Hint(noon); due != tt.due || hint != tt.hint {
			t.Errorf("%s: due in %s, want %s; with a hint in %s, want %s", tt.name, due, tt.due, hint, tt.hint)
		}
	}
}

// A hinted scan does not change the interval. Each hint without a change doubles the delay of
// the next hinted scan.
func TestHints(t *testing.T) {
	r := steady(time.Second, time.Hour)
	s := r.After(State{Interval: 40 * time.Minute}, Scan{Ended: noon, Hinted: true, Changed: true})
	if s.Interval != 40*time.Minute || s.Hint(noon) != time.Second {
		t.Errorf("a hint with a change: %+v", s)
	}
	var waits []time.Duration
	for range 15 {
		s = r.After(s, Scan{Ended: noon, Hinted: true})
		waits = append(waits, s.Hint(noon))
	}
	if waits[0] != 2*time.Second || waits[3] != 16*time.Second || waits[14] != 1024*time.Second || s.Interval != 40*time.Minute {
		t.Errorf("hints without changes: %v, %+v", waits, s)
	}
	if s = r.After(s, Scan{Ended: noon, Hinted: true, Changed: true}); s.Hint(noon) != time.Second {
		t.Errorf("a later hint with a change: %+v", s)
	}
}

// If the clock was set back, no site waits longer than planned. If it was set forward, the
// next scan is due.
func TestClock(t *testing.T) {
	s := steady(0, 0).After(State{Interval: time.Hour}, Scan{Ended: noon})
	for at, want := range map[time.Duration]time.Duration{
		0: 90 * time.Minute, time.Hour: 30 * time.Minute, 2 * time.Hour: 0, -time.Hour: 90 * time.Minute, -1e6 * time.Hour: 90 * time.Minute,
	} {
		if got := s.Due(noon.Add(at)); got != want {
			t.Errorf("%s later: %s, want %s", at, got, want)
		}
	}
	if (State{}).Due(noon) != 0 || (State{}).Hint(noon) != 0 {
		t.Error("a new site has to wait")
	}
}

// A stored state is resumed within the current bounds.
func TestResume(t *testing.T) {
	s := steady(0, 0).After(State{Interval: 16 * time.Hour}, Scan{Ended: noon})
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var decoded State
	if err := json.Unmarshal(b, &decoded); err != nil || cmp.Diff(s, decoded) != "" {
		t.Errorf("%v\n%s", err, cmp.Diff(s, decoded))
	}
	if same := steady(0, 0).Resume(decoded); cmp.Diff(s, same) != "" || same.Due(noon) != 24*time.Hour {
		t.Errorf("with the same bounds: %+v", same)
	}
	short := steady(0, time.Hour).Resume(decoded)
	if short.Due(noon) != 66*time.Minute || short.Interval != time.Hour {
		t.Errorf("with other bounds: %+v", short)
	}
	delayed := steady(0, 0).After(State{}, Scan{Ended: noon, Failed: true, NotBefore: noon.Add(20 * time.Hour)})
	if wait := steady(0, time.Hour).Resume(delayed).Due(noon); wait < 20*time.Hour {
		t.Errorf("the Retry-After of the site is lost: %s", wait)
	}
	for _, soon := range []bool{false, true} {
		failed := Scan{Ended: noon, Failed: true, Refused: true}
		if soon { // earlier than the next attempt
			failed.NotBefore = noon.Add(time.Minute)
		}
		s := steady(0, 0).Resume(steady(0, 0).After(State{}, failed))
		if due := s.Due(noon) == 0; due == soon || s.Failures != 1 {
			t.Errorf("a failed site, with Retry-After: %t: %+v", soon, s)
		}
	}
	if s := steady(0, 0).Resume(State{}); s.Due(noon) != 0 {
		t.Errorf("a new site: %+v", s)
	}
}

// After any sequence of scans, the next scan is due between now and the maximum interval, or
// the site's Retry-After.
func TestAlwaysBounded(t *testing.T) {
	r := &Rules{Min: time.Second, Max: time.Hour}
	s, now, random := State{}, noon, rand.New(rand.NewPCG(1, 2))
	yes := func() bool { return random.IntN(2) == 0 }
	for i := range 10_000 {
		l := Scan{
			Ended: now, Took: time.Duration(random.IntN(600)) * time.Second, Changed: yes(), Failed: yes(), Hinted: yes(), Unconfirmed: yes(), Refused: yes(),
			Gap: time.Duration(random.IntN(7200)) * time.Second,
		}
		if random.IntN(9) == 0 {
			l.NotBefore = now.Add(time.Duration(random.IntN(100_000)-1000) * time.Second)
		}
		s = r.After(s, l)
		due, hint := s.Due(now), s.Hint(now)
		most := max(66*time.Minute, l.Gap, 4*l.Took, l.NotBefore.Sub(now)+time.Minute)
		if due <= 0 || due > most || hint <= 0 || hint > due || due < l.Gap || hint < l.Gap || hint < l.NotBefore.Sub(now) {
			t.Fatalf("scan %d, %+v: due in %s, with a hint in %s: %+v", i, l, due, hint, s)
		}
		now = now.Add(time.Duration(random.IntN(int(due))))
	}
}
