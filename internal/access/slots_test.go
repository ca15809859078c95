package access

import (
	"errors"
	"net/netip"
	"testing"
)

// One client gets at most half of the slots. The others are for clients with few.
func TestStreams(t *testing.T) {
	s := NewSlots(100, nil)
	greedy := Client{from: netip.MustParseAddr("192.0.2.1")}
	var ends []func()
	for range 50 {
		end, err := s.Enter(greedy)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	if _, err := s.Enter(greedy); !errors.Is(err, ErrCrowded) {
		t.Errorf("more than half: %v", err)
	}
	for key := range 9 {
		who := Client{key: string(rune('a' + key))}
		for n := range 7 {
			end, err := s.Enter(who)
			switch {
			case err == nil:
				ends = append(ends, end)
			case s.open == 100 && errors.Is(err, ErrBusy):
			case n < s.few() || !errors.Is(err, ErrCrowded):
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
