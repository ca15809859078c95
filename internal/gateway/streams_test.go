package gateway

import (
	"errors"
	"net/netip"
	"testing"
)

// One client takes at most half of the places, and leaves the others to those
// that have few.
func TestStreams(t *testing.T) {
	s := newStreams(100)
	greedy := client{from: netip.MustParseAddr("192.0.2.1")}
	var ends []func()
	for range 50 {
		end, err := s.enter(greedy)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	if _, err := s.enter(greedy); !errors.Is(err, errStreams) {
		t.Errorf("more than half: %v", err)
	}
	for key := range 9 {
		who := client{key: string(rune('a' + key))}
		for n := range 7 {
			end, err := s.enter(who)
			switch {
			case err == nil:
				ends = append(ends, end)
			case s.open == 100 && errors.Is(err, errBusy):
			case n < s.few() || !errors.Is(err, errStreams):
				t.Errorf("%v's stream %d: %v", who, n, err)
			}
		}
	}
	if s.open != 100 {
		t.Errorf("%d streams of 100", s.open)
	}
	for _, end := range ends {
		end()
	}
	if s.open != 0 || len(s.each) != 0 {
		t.Errorf("%d open, of %v", s.open, s.each)
	}
}
