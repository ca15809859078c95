package edition

import (
	"fmt"
	"strings"
	"testing"
)

// What no room has is asked of the rooms once for an edition, by each form of it
// that is wanted; a later edition may have it.
func TestAbsent(t *testing.T) {
	site := newMemSite(0)
	site.set("/1", "one")
	room := &memRoom{}
	p := newTestPress(t, site, room, nil)
	publish(t, p)
	finds := func(want int64, method, target string, fields ...string) {
		t.Helper()
		before := room.finds.Load()
		for range 3 {
			if w := ask(t, p, method, target, fields...); w.Code != 0 {
				t.Errorf("%s %s: %d", method, target, w.Code)
			}
		}
		if n := room.finds.Load() - before; n != want {
			t.Errorf("%s %s %q: the room was asked %d times, want %d", method, target, fields, n, want)
		}
	}
	finds(1, "GET", "/2.txt")
	finds(0, "HEAD", "/2.txt")
	finds(1, "GET", "/2.txt", "Accept", "text/markdown")
	finds(0, "GET", "/2.txt", "Accept", "text/markdown")
	finds(3, "GET", "/2.txt", "Accept", "text/markdown", "Accept", "text/html")
	finds(3, "GET", "/2.txt?q=1")
	finds(3, "POST", "/2.txt")
	finds(3, "GET", "/"+strings.Repeat("x", maxTarget))
	site.set("/2", "two")
	publish(t, p)
	if w := ask(t, p, "GET", "/2.txt"); w.Code != 200 {
		t.Errorf("in the next edition: %d", w.Code)
	}
	for i := range 3 * maxAbsent {
		ask(t, p, "GET", fmt.Sprintf("/absent/%d", i))
	}
	a := &p.Current().absent
	if n := len(a.young) + len(a.old); n > 2*maxAbsent || n < maxAbsent {
		t.Errorf("%d targets are remembered, want at most %d", n, 2*maxAbsent)
	}
	finds(0, "GET", fmt.Sprintf("/absent/%d", 3*maxAbsent-1))
}
