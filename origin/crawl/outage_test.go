package crawl

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

// If a site responds to every address with the same page and status 200, no stored page changes.
func TestOutagePage(t *testing.T) {
	notice := document(doc("Back soon", "We are working on our servers and will be back in a few minutes."))
	for _, c := range []struct {
		name  string
		begin int  // number of requests before the notice appears
		home  bool // the root is unchanged
		err   string
		soft  bool // whether the site responded to nonexistent addresses with a page before
	}{
		{name: "everywhere", err: "same-page"},
		{name: "everywhere, on a site with soft 404s", err: "same-page", soft: true},
		{name: "all but the root", home: true},
		{name: "in the middle of a run", home: true, begin: 25},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			s := newSite(t)
			chain(s, 60)
			if c.soft {
				s.set("/*", html("Oops", "Sorry, we could not find what you were looking for. Try the search."))
			}
			m := newMill(t, s.URL+"/")
			m.run(m.open(Options{}))
			seq := m.seq()
			s.asked()
			s.mu.Lock()
			pages := maps.Clone(s.mux)
			if s.mux["/*"] == nil {
				s.mux["/*"] = http.NotFound
			}
			for p, h := range s.mux {
				if p == "/" && c.home {
					continue
				}
				s.mux[p] = func(w http.ResponseWriter, r *http.Request) {
					s.mu.Lock()
					down := len(s.log) > c.begin
					s.mu.Unlock()
					if down {
						notice(w, r)
						return
					}
					h(w, r)
				}
			}
			s.mux["/robots.txt"] = text("")
			s.mu.Unlock()
			rep, err := m.try(m.open(Options{}))
			if c.err != "" && (millrace.Status(err) != 503 || millrace.ErrorCode(err) != c.err) || c.err == "" && err != nil {
				t.Errorf("%v", err)
			}
			if c.err == "" && rep.UnconfirmedDeletions == 0 {
				t.Errorf("%+v", rep)
			}
			if m.seq() != seq || len(m.pages()) != 60 {
				t.Errorf("%d pages, and some were written", len(m.pages()))
			}
			s.mu.Lock()
			s.mux = pages
			s.mu.Unlock()
			if rep := m.run(m.open(Options{})); rep.UnconfirmedDeletions > 0 || m.seq() != seq || len(m.pages()) != 60 {
				t.Errorf("afterwards: %+v", rep)
			}
		})
	}
}

// A rewritten page is not an outage, even if the site responds to nonexistent addresses with an
// error page or its home page and status 200.
func TestRewritten(t *testing.T) {
	for _, name := range []string{"404", "soft 404", "home page"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			chain(s, 20)
			set := func(i int) {
				s.set("/", html("Home", words(fmt.Sprint("home", i)), "/p/1", "/p/2"))
				switch name {
				case "soft 404":
					s.set("/*", html("Oops", "Sorry, we could not find what you were looking for. Try the search."))
				case "home page":
					s.set("/*", html("Home", words(fmt.Sprint("home", i)), "/p/1", "/p/2"))
				}
			}
			set(0)
			m := newMill(t, s.URL+"/")
			m.run(m.open(Options{}))
			set(1)
			for i := 10; i < 20; i++ {
				s.set(fmt.Sprintf("/p/%d", i), html(fmt.Sprint("New ", i), words(fmt.Sprint("new", i))))
			}
			s.asked()
			rep := m.run(m.open(Options{}))
			if rep.Updated != 11 || rep.UnconfirmedDeletions > 0 || rep.SkippedN > 0 {
				t.Errorf("%+v", rep)
			}
			probes := 0
			for _, u := range s.asked() {
				if strings.Contains(u, "no-such-page") {
					probes++
				}
			}
			if probes != 1 {
				t.Errorf("%d requests for nonexistent addresses", probes)
			}
			if name != "home page" && !slices.Contains(m.pages(), "/p/19") {
				t.Error("a page is missing")
			}
		})
	}
}

// If the previous pages came from another source (RejectUniform), even the first run fails if a site
// responds to every address with the same page.
func TestOutageOfOthers(t *testing.T) {
	notice := document(doc("Welcome", "Accept the terms of this network to go on to where you wanted to go."))
	for _, wary := range []bool{false, true} {
		s := newSite(t)
		s.set("/", notice)
		s.set("/*", notice)
		m := newMill(t, s.URL+"/")
		_, err := m.try(m.open(Options{RejectUniform: wary}))
		if wary != (millrace.Status(err) == 503) || wary != (len(m.pages()) == 0) {
			t.Errorf("wary %t: %d pages, %v", wary, len(m.pages()), err)
		}
		s.set("/*", http.NotFound)
		if _, err := m.try(m.open(Options{RejectUniform: wary})); err != nil || len(m.pages()) != 1 {
			t.Errorf("wary %t, of a site of one page: %d pages, %v", wary, len(m.pages()), err)
		}
	}
}
