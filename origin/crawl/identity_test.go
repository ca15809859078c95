package crawl

import (
	"net/http"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

// canonical returns a handler for a page with a canonical link to another address.
func canonical(title, text, to string, links ...string) http.HandlerFunc {
	return document(head(title, `<link rel=canonical href="`+to+`">`, text, links...))
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusMovedPermanently) }
}

func TestIdentity(t *testing.T) {
	for _, c := range []struct {
		name  string
		site  func(s *site)
		want  []string
		skips map[string]string // part of the reason, by address
	}{
		{name: "a duplicate that says so", site: func(s *site) {
			s.set("/", html("Home", words("home"), "/a?print=1", "/b"))
			s.set("/a?print=1", canonical("A", words("a"), "/a", "/c"))
			s.set("/a", canonical("A", words("a"), "/a"))
			s.set("/c", html("C", words("c")))
			s.set("/b", canonical("B", words("b"), "/b"))
		}, want: []string{"/", "/a", "/b", "/c"}},
		{name: "a canonical link to what is not there", site: func(s *site) {
			s.set("/", html("Home", words("home"), "/a"))
			s.set("/a", canonical("A", words("a"), "/nowhere"))
		}, want: []string{"/", "/a"}, skips: map[string]string{"/nowhere": "http-404"}},
		{name: "a canonical link to the home page on every page", site: func(s *site) {
			s.set("/", canonical("Home", words("home"), "/", "/a", "/b", "/c", "/d", "/e"))
			for _, p := range []string{"a", "b", "c", "d", "e"} {
				s.set("/"+p, canonical(p, words(p), "/"))
			}
		}, want: []string{"/", "/a", "/b", "/c", "/d", "/e"}},
		{name: "a canonical link to a page that was never linked to, on every page", site: func(s *site) {
			s.set("/", html("Home", words("home"), "/a", "/b"))
			s.set("/a", canonical("A", words("a"), "/template"))
			s.set("/b", canonical("B", words("b"), "/template"))
			s.set("/template", canonical("T", words("t"), "/template"))
		}, want: []string{"/", "/a", "/b", "/template"}},
		{name: "two pages that go by each other", site: func(s *site) {
			s.set("/", html("Home", words("home"), "/a"))
			s.set("/a", canonical("A", words("a"), "/b"))
			s.set("/b", canonical("A", words("a"), "/a"))
		}, want: []string{"/", "/b"}},
		{name: "three pages in a circle", site: func(s *site) {
			s.set("/", html("Home", words("home"), "/a"))
			s.set("/a", canonical("A", words("a"), "/b"))
			s.set("/b", canonical("A", words("a"), "/c"))
			s.set("/c", canonical("A", words("a"), "/a"))
		}, want: []string{"/", "/c"}},
		{name: "a canonical link that redirects back", site: func(s *site) {
			s.set("/", html("Home", words("home"), "/a/"))
			s.set("/a/", canonical("A", words("a"), "/a"))
			s.set("/a", redirect("/a/"))
		}, want: []string{"/", "/a/"}},
		{name: "a copy of a site that is at home elsewhere", site: func(s *site) {
			s.set("/", canonical("Home", words("home"), "https://home.example/", "/a", "https://home.example/b"))
			s.set("/a", canonical("A", words("a"), "https://home.example/a"))
			s.set("/b", canonical("B", words("b"), "https://home.example/b"))
			s.set("/sitemap.xml", text("<urlset><url><loc>https://home.example/c</loc></url></urlset>"))
			s.set("/c", canonical("C", words("c"), "https://elsewhere.example/c"))
		}, want: []string{"/", "/a", "/b", "https://elsewhere.example/c"}},
		{name: "an address on another site", site: func(s *site) {
			s.set("/", html("Home", words("home"), "/a", "/b"))
			s.set("/a", canonical("A", words("a"), "https://elsewhere.example/a"))
			s.set("/b", canonical("B", words("b"), "https://elsewhere.example/"))
		}, want: []string{"/", "/b", "https://elsewhere.example/a"}},
		{name: "twins", site: func(s *site) {
			s.set("/", html("Home", words("home"), "/a/", "/a", "/index.html", "/d/", "/d/index.html", "/e", "/e/"))
			s.set("/index.html", html("Home", words("home")))
			s.set("/a", html("A", words("a")))
			s.set("/a/", html("A", words("a")))
			s.set("/d/", html("D", words("d")))
			s.set("/d/index.html", html("D", words("d")))
			s.set("/e", html("E", words("e")))
			s.set("/e/", html("E", words("another e"))) // not quite variants
		}, want: []string{"/", "/A", "/D", "/e", "/e/"}},
		{name: "redirects", site: func(s *site) {
			s.set("/", html("Home", words("home"), "/old", "/away", "/loop", "/round1", "/track"))
			s.set("/old", redirect("/older"))
			s.set("/older", redirect("/new"))
			s.set("/new", html("New", words("new")))
			s.set("/away", redirect("https://elsewhere.invalid/"))
			s.set("/loop", redirect("/loop?utm_source=x"))
			s.set("/round1", redirect("/round2"))
			s.set("/round2", redirect("/round1"))
			s.set("/track", redirect("/new?utm_source=x"))
		}, want: []string{"/", "/new"}, skips: map[string]string{"/loop": "redirect-loop", "/away": "redirect-outside"}},
		{name: "a redirect inside of the HTML", site: func(s *site) {
			s.set("/", html("Home", words("home"), "/old"))
			s.set("/old", document(`<html><head><title>Moved</title><meta http-equiv=refresh content="0; url=/new"></head><body><p>It is elsewhere.</p></body></html>`))
			s.set("/new", html("New", words("new")))
		}, want: []string{"/", "/new"}},
		{name: "a home page that leads on", site: func(s *site) {
			s.set("/", redirect("/en/"))
			s.set("/en/", html("Home", words("home"), "/en/a"))
			s.set("/en/a", html("A", words("a")))
		}, want: []string{"/en/", "/en/a"}},
		{name: "parameters that do not count", site: func(s *site) {
			s.set("/", html("Home", words("home"), "/a?x=1&utm_campaign=z", "/a?utm_medium=y&x=1", "/a?x=1#top", "/b?p=1&q=2", "/b?q=2&p=1", "/a?x=1&replytocom=7"))
			s.set("/a", html("A", words("a")))
			s.set("/b", html("B", words("b")))
		}, want: []string{"/", "/a?x=1", "/b?p=1&q=2"}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			s := newSite(t)
			c.site(s)
			m := newMill(t, s.URL+"/")
			rep := m.run(m.open(Options{}))
			check := func(when string) {
				t.Helper()
				got := m.pages()
				for i, p := range got { // the order of fetches determines which of the variants is the page
					switch p {
					case "/a", "/a/":
						got[i] = "/A"
					case "/d", "/d/", "/d/index.html":
						got[i] = "/D"
					}
				}
				want := strings.Join(c.want, " ")
				if c.name != "twins" {
					got = m.pages()
				}
				if g := strings.Join(got, " "); g != want {
					t.Errorf("%s: the pages are %s, want %s", when, g, want)
				}
			}
			check("first")
			for u, part := range c.skips {
				if got := reason(rep, u); got != part {
					t.Errorf("%s: code %q, want %q", u, got, part)
				}
			}
			if rep.SkippedN != len(c.skips) {
				t.Errorf("skipped: %v", rep.Skipped)
			}
			seq := m.seq()
			rep = m.run(m.open(Options{}))
			check("then")
			if m.seq() != seq || rep.UnconfirmedDeletions > 0 {
				t.Errorf("the second run has written although nothing has changed: %+v", rep)
			}
		})
	}
}

// Pages of different text with the same canonical address on another site are all kept.
func TestClaims(t *testing.T) {
	s := newSite(t)
	s.set("/", html("Home", words("home"), "/a", "/b", "/c"))
	for _, p := range []string{"a", "b", "c"} {
		s.set("/"+p, canonical(p, words(p), "https://elsewhere.example/one"))
	}
	m := newMill(t, s.URL+"/")
	for range 3 {
		m.run(m.open(Options{}))
		if got := m.pages(); len(got) != 4 {
			t.Fatalf("the pages are %v", got)
		}
		s.set("/b", canonical("b", words("b again"), "https://elsewhere.example/one"))
	}
}

// If a page no longer exists, the crawl fetches its duplicates again, because one of them may now
// be the page.
func TestHeir(t *testing.T) {
	s := newSite(t)
	s.set("/", html("Home", words("home"), "/a", "/b", "/c", "/d", "/e", "/f", "/g"))
	for _, p := range []string{"c", "d", "e", "f", "g"} {
		s.set("/"+p, html(p, words(p)))
	}
	s.set("/a", html("A", words("a")))
	s.set("/b", canonical("A", words("a"), "/a"))
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{}))
	equal(t, "pages", m.pages(), []string{"/", "/a", "/c", "/d", "/e", "/f", "/g"})
	s.asked()
	m.run(m.open(Options{}))
	for _, u := range s.asked() {
		if u == "/b" {
			t.Error("a duplicate is requested in every run")
		}
	}
	s.set("/a", nil)
	s.set("/b", canonical("A", words("a"), "/b"))
	m.run(m.open(Options{}))
	equal(t, "pages", m.pages(), []string{"/", "/b", "/c", "/d", "/e", "/f", "/g"})
}

// If all pages of a site start to redirect to one page, their deletion needs confirmation.
func TestMaintenance(t *testing.T) {
	s := newSite(t)
	s.set("/", html("Home", words("home"), "/a", "/b", "/c"))
	for _, p := range []string{"/a", "/b", "/c"} {
		s.set(p, html(p, words(p)))
	}
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{}))
	for _, p := range []string{"/a", "/b", "/c"} {
		s.set(p, redirect("/closed"))
	}
	s.set("/closed", html("Closed", words("closed")))
	rep := m.run(m.open(Options{}))
	if rep.UnconfirmedDeletions != 3 || len(m.pages()) != 5 {
		t.Errorf("%d deletions are unconfirmed, the pages are %v", rep.UnconfirmedDeletions, m.pages())
	}
	for _, p := range []string{"/a", "/b", "/c"} {
		s.set(p, html(p, words(p)))
	}
	m.run(m.open(Options{}))
	if len(m.pages()) < 4 {
		t.Errorf("the pages are %v", m.pages())
	}
}

func TestPage(t *testing.T) {
	s := newSite(t)
	s.set("/", html("Home", words("home")))
	s.set("/a", html("A", words("a")))
	s.set("/b", canonical("A", words("a"), "/a"))
	s.set("/c", canonical("C", words("c"), "/a"))
	s.set("/old", redirect("/a"))
	s.set("/login", redirect("/"))
	s.set("/secret", redirect("/login?next=secret"))
	m := newMill(t, s.URL+"/")
	c := m.open(Options{})
	for _, x := range []struct {
		url, want string // URL of the page; with "!" before it, the page is an alias
		err       error
	}{
		{"/a", "/a", nil},
		{"/b", "!/a", nil},
		{"/c", "/c", nil},
		{"/old", "!/a", nil},
		{"/nowhere", "", millrace.ErrNotFound},
		{"/secret", "", millrace.ErrForbidden},
	} {
		p, err := c.Page(t.Context(), millrace.Ref{URL: s.URL + x.url})
		got := ""
		if p != nil {
			if got = strings.TrimPrefix(p.URL, s.URL); p.Known == 0 {
				got = "!" + got
			}
		}
		if got != x.want || millrace.Status(err) != millrace.Status(x.err) {
			t.Errorf("%s: %q, %v", x.url, got, err)
		}
	}
	if _, err := c.Page(t.Context(), millrace.Ref{URL: "https://elsewhere.example/"}); millrace.Status(err) != 404 {
		t.Errorf("a page of another site: %v", err)
	}
}
