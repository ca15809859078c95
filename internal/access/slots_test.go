package access

import (
	"errors"
	"net/netip"
	"runtime/debug"
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

// The collector is eager while many streams are open.
func TestCollect(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	percent := func() int {
		n := debug.SetGCPercent(400)
		debug.SetGCPercent(n)
		return n
	}
	s := NewSlots(0, Collect(400))
	var ends []func()
	for n := range 300 {
		end, err := s.Enter(Client{})
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
		if n == 254 && percent() != 400 {
			t.Errorf("%d with few", percent())
		}
	}
	if percent() != 100 {
		t.Errorf("%d with many", percent())
	}
	for n, end := range ends {
		if end(); n == 150 && percent() != 100 {
			t.Errorf("%d with fewer", percent())
		}
	}
	if percent() != 400 {
		t.Errorf("%d with none", percent())
	}
}
