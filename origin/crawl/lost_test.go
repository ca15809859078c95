package crawl

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// If a lost page exists again, the crawl finds it, although requests for the page that links to it
// result in a 304.
func TestLost(t *testing.T) {
	form := document(`<!DOCTYPE html><title>Log in</title><main><form method=post><input name=user><input type=password name=p><button>Log in</button></form></main>`)
	for name, c := range map[string]http.HandlerFunc{
		"404":      nil,
		"410":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) },
		"login":    form,
		"redirect": redirect("/b"),
		"soft":     html("Oops", "Sorry, we could not find what you were looking for. Try the search."),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			links := []string{"/a", "/b", "/c", "/d", "/e", "/f"}
			s.set("/", html("Home", words("home"), links...))
			for _, p := range links {
				s.set(p, html(p, words(p)))
			}
			if name == "soft" {
				s.set("/no-such-page*", c)
			}
			now := time.Now()
			m := newMill(t, s.URL+"/")
			run := func() []string {
				m.run(m.open(Options{Now: func() time.Time { return now }}))
				return s.asked()
			}
			run()
			page := s.mux["/a"]
			s.set("/a", c)
			run()
			want := []string{"/", "/b", "/c", "/d", "/e", "/f"}
			equal(t, "pages without it", m.pages(), want)
			rep := m.run(m.open(Options{Now: func() time.Time { return now }}))
			if rep.SkippedN > 0 || rep.Added+rep.Updated+rep.Deleted > 0 {
				t.Errorf("a page that is still lost was reported again: %+v", rep)
			}
			s.set("/a", page)
			run()
			equal(t, "pages", m.pages(), append([]string{"/", "/a"}, want[1:]...))
			// After that, the page is fetched about once a week, and finally no longer.
			s.set("/a", c)
			now = now.Add(time.Hour)
			run()
			days := 0
			for range 80 {
				now = now.Add(24 * time.Hour)
				if slices.Contains(run(), "/a") {
					days++
				}
			}
			if days < 7 || days > 12 {
				t.Errorf("the page was requested on %d of 80 days", days)
			}
			s.set("/a", page)
			if run(); len(m.pages()) != 6 {
				t.Errorf("the page is still requested after %v", lossAge)
			}
		})
	}
}

// After a confirmed mass loss, all pages come back in one run.
func TestMassLossEnds(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at once": 0, "after nine days": 9 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			chain(s, 40)
			now := time.Now()
			m := newMill(t, s.URL+"/")
			run := func() int {
				m.run(m.open(Options{Now: func() time.Time { return now }}))
				return len(m.pages())
			}
			run()
			for i := 1; i < 40; i++ {
				s.set(fmt.Sprintf("/p/%d", i), nil)
			}
			if n := run(); n != 40 {
				t.Fatalf("%d pages are left after the first run", n)
			}
			if n := run(); n != 1 {
				t.Fatalf("%d pages are left after the second run", n)
			}
			now = now.Add(wait)
			chain(s, 40)
			if n := run(); n != 40 {
				t.Errorf("%d of 40 pages exist again", n)
			}
		})
	}
}

// A page that was missing during a run is found by the next run, even if the page that links
// to it gets a 304. If it is still missing, the next run fetches it once, and the following
// runs skip it for a week.
func TestAwayMeanwhile(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at once": 0, "after two days": 48 * time.Hour} {
		for _, known := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, known %v", name, known), func(t *testing.T) {
				s := newSite(t)
				now := time.Now()
				m := newMill(t, s.URL+"/")
				run := func() []string {
					m.run(m.open(Options{Now: func() time.Time { return now }}))
					return s.asked()
				}
				links := []string{"/a", "/b", "/c", "/d", "/e", "/f"}
				for _, p := range links {
					s.set(p, html(p, words(p)))
				}
				page := s.mux["/a"]
				if known {
					s.set("/", html("Home", words("before"), links...))
					run()
				}
				s.set("/", html("Home", words("home"), links...))
				s.set("/a", nil)
				run()
				now = now.Add(wait)
				s.set("/a", page)
				run()
				equal(t, "pages", m.pages(), append([]string{"/"}, links...))

				s.set("/a", nil)
				s.set("/", html("Home", words("after"), links...))
				run()
				now = now.Add(48 * time.Hour)
				for i, want := range []bool{true, false, false} {
					if got := slices.Contains(run(), "/a"); got != want {
						t.Errorf("run %d after the loss requests the page: %v", i+1, got)
					}
				}
			})
		}
	}
}

// If a run fetches a page without success and then finds a link to it, the next run fetches the
// page again.
func TestLostThenLinked(t *testing.T) {
	s := newSite(t)
	now := time.Now()
	m := newMill(t, s.URL+"/")
	run := func() {
		m.run(m.open(Options{Concurrency: 1, Now: func() time.Time { return now }}))
	}
	s.set("/", html("Home", words("home"), "/a", "/b"))
	s.set("/b", html("B", words("b")))
	run()
	s.set("/b", html("B", words("b again"), "/a")) // fetched after /a, which is queued first
	now = now.Add(48 * time.Hour)
	run()
	s.set("/a", html("A", words("a")))
	run()
	equal(t, "pages", m.pages(), []string{"/", "/a", "/b"})
}

// A broken link is fetched again after a week, because its page may exist by then.
func TestLinkBeforePage(t *testing.T) {
	s := newSite(t)
	s.set("/", html("Home", words("home"), "/a", "/soon"))
	s.set("/a", html("A", words("a")))
	now := time.Now()
	m := newMill(t, s.URL+"/")
	o := Options{Now: func() time.Time { return now }}
	m.run(m.open(o))
	s.set("/soon", html("Soon", words("soon")))
	now = now.Add(lossAgain)
	m.run(m.open(o))
	equal(t, "pages", m.pages(), []string{"/", "/a", "/soon"})
}

// A cursor stores a limited number of lost addresses: pages before broken links, the latest
// losses first.
func TestLossesAreBounded(t *testing.T) {
	m := newMill(t, "https://a.example/")
	c := m.open(Options{})
	r := newRun(c, cursor{}, nil)
	r.table.begin(true)
	for i := range 2 * maxLosses {
		u := fmt.Sprintf("https://a.example/%d", i)
		st := pending
		if i%4 == 0 {
			st = hasPage
		}
		r.lose(&task{url: u, state: st}, key(u))
	}
	out := r.stillMissing()
	if len(out) != maxLosses || !out[0].Had || !out[maxLosses/2-1].Had || out[maxLosses/2].Had || r.lostMore {
		t.Errorf("%d are kept, %v", len(out), r.lostMore)
	}
	u := "https://a.example/more"
	if r.lose(&task{url: u, state: hasPage}, key(u)); len(r.losses) != 2*maxLosses || !r.lostMore {
		t.Errorf("%d losses are in memory", len(r.losses))
	}
}
