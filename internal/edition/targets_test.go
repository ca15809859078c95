package edition

import (
	"fmt"
	"strings"
	"testing"
)

// The server asks the protocols for an absent document once per edition and accepted
// form. A later edition may have the document.
func TestAbsent(t *testing.T) {
	site := newMemSite(0)
	site.set("/1", "one")
	proto := &memProtocol{}
	s := newTestServer(t, site, proto, nil)
	publish(t, s)
	finds := func(want int64, method, target string, fields ...string) {
		t.Helper()
		before := proto.finds.Load()
		for range 3 {
			if w := ask(t, s, method, target, fields...); w.Code != 0 {
				t.Errorf("%s %s: %d", method, target, w.Code)
			}
		}
		if n := proto.finds.Load() - before; n != want {
			t.Errorf("%s %s %q: the protocol was called %d times, want %d", method, target, fields, n, want)
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
	publish(t, s)
	if w := ask(t, s, "GET", "/2.txt"); w.Code != 200 {
		t.Errorf("in the next edition: %d", w.Code)
	}
	for i := range 3 * maxTargets {
		ask(t, s, "GET", fmt.Sprintf("/absent/%d", i))
	}
	a := &s.Current().targets
	if n := len(a.young) + len(a.old); n > 2*maxTargets || n < maxTargets {
		t.Errorf("%d targets are cached, want at most %d", n, 2*maxTargets)
	}
	finds(0, "GET", fmt.Sprintf("/absent/%d", 3*maxTargets-1))
}

// A query that no protocol defines names the same document as no query. The document is
// looked up and cached once, and its response has its own URL.
func TestIgnoredQuery(t *testing.T) {
	for _, vary := range []string{"", "Accept"} {
		site := newMemSite(4)
		proto := &memProtocol{vary: vary}
		s := newTestServer(t, site, proto, nil)
		publish(t, s)
		for _, path := range []string{"/even.txt", "/1.txt"} {
			want := ask(t, s, "GET", path)
			bytes, rendered := s.cache.bytes(), proto.renders.Load()
			for i := range 100 {
				target := fmt.Sprintf("%s?x=%d", path, i)
				w := ask(t, s, "GET", target)
				if w.Code != 200 || w.Body.String() != want.Body.String() || w.Header().Get("Etag") != want.Header().Get("Etag") {
					t.Fatalf("%s: %d %q", target, w.Code, w.Body)
				}
				if link := w.Header()["Link"]; len(link) != 1 || !strings.HasSuffix(link[0], `>; rel="canonical"`) {
					t.Errorf("%s: Link %q", target, link)
				}
			}
			if n := s.cache.bytes(); n != bytes {
				t.Errorf("%s: the cache grew from %d to %d bytes", path, bytes, n)
			}
			if n := proto.renders.Load(); vary == "" && n != rendered {
				t.Errorf("%s was rendered %d times", path, n-rendered)
			}
			before := proto.finds.Load()
			ask(t, s, "GET", path+"?x=7")
			if n := proto.finds.Load() - before; vary == "" && n != 0 {
				t.Errorf("%s?x=7 was looked up %d times again", path, n)
			}
		}
		if w := ask(t, s, "GET", "/none.txt?x=1"); w.Code != 0 {
			t.Errorf("a missing document: %d", w.Code)
		}
	}
}
