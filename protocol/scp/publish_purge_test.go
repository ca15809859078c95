package scp

import (
	"fmt"
	"maps"
	"testing"
	"time"
)

// Many changes occur within one second, and the last one deletes a page. Each snapshot is
// newer than all previous ones; otherwise readers would not fetch it.
func TestGoneInTheSameSecond(t *testing.T) {
	t.Parallel()
	p := publishing(t, nil)
	p.put(t, handbook()...)
	p.publish(t)
	last, lastDelta := time.Time{}, time.Time{}
	var was element
	check := func() {
		t.Helper()
		text := p.publish(t)
		for _, c := range elements(text, "collection", "all") {
			at, err := time.Parse(time.RFC3339, c["generated"])
			same := maps.Equal(c, was) // on a slow machine, generation pauses and the snapshot stays
			if err != nil || !same && !at.After(last) {
				t.Errorf("a snapshot with the time %v after one with %v: %v", at, last, err)
			}
			last, was = at, c
		}
		for _, d := range elements(text, "delta", "all") {
			at, err := time.Parse(time.RFC3339, d["generated"])
			if err != nil || !at.After(lastDelta) {
				t.Errorf("a delta with the time %v after one with %v: %v", at, lastDelta, err)
			}
			lastDelta = at
		}
	}
	p.now = p.now.AddDate(0, 0, 1)
	for i := range 5 {
		p.now = p.now.Add(10 * time.Millisecond)
		p.put(t, fmt.Sprintf("/blog/%d", i), "changed")
		check()
	}
	p.now = p.now.Add(time.Second)
	p.put(t, "/blog/0", "")
	check()
	p.now = p.now.Add(10 * time.Millisecond)
	p.put(t, "/blog/1", "")
	check()
}

// On a site that changes every hour, no delta contains a deleted page. Deltas without a
// deleted page remain.
func TestDeltasOfADayWithDeletions(t *testing.T) {
	t.Parallel()
	p := publishingEvery(t, hourly, nil)
	var pages []string
	for i := range 60 {
		pages = append(pages, fmt.Sprintf("/blog/%d", i), "text")
	}
	p.put(t, pages...)
	p.now = p.now.AddDate(0, 0, 8)
	gone := map[string]bool{}
	for hour := range 18 {
		p.now = p.now.Add(time.Hour)
		p.put(t, fmt.Sprintf("/blog/%d", 2*hour), "changed", fmt.Sprintf("/blog/%d", 2*hour+1), "changed")
		if hour%4 == 3 { // one of the two pages of a delta, both of another, and one in no delta
			for _, n := range []int{2*hour - 2, 2*hour - 4, 2*hour - 3, 40 + hour} {
				u := fmt.Sprintf("/blog/%d", n)
				gone[u] = true
				p.put(t, u, "")
			}
		}
		p.publish(t)
	}
	n := 0
	for _, d := range elements(p.publish(t), "delta", "all") {
		for _, u := range p.urls(t, d) {
			if gone[u] {
				t.Errorf("the deleted page %s is in %v", u, d)
			}
		}
		n++
	}
	if n < 6 {
		t.Errorf("%d deltas remain", n)
	}
}
