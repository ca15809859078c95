package crawl

import (
	"fmt"
	"testing"
	"time"
)

// If a list claims every day that all pages have changed, this causes only a few extra fetches. If
// a list is correct, each page that it reports as new is fetched.
func TestLyingLists(t *testing.T) {
	for _, lies := range []bool{true, false} {
		s := newSite(t)
		const n = 120
		day := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
		publish := func(edit bool) {
			day = day.AddDate(0, 0, 1)
			urls := []string{}
			for i := range n {
				p := fmt.Sprintf("/p/%d", i)
				if edit {
					s.set(p, html(p, words(p+day.String())))
				}
				urls = append(urls, s.URL+p+" "+day.Format(time.DateOnly))
			}
			s.set("/sitemap.xml", document(urlset(urls...)))
		}
		s.set("/", html("Home", words("home")))
		publish(true)
		m := newMill(t, s.URL+"/")
		c := m.open(Options{})
		m.run(c)
		s.asked()
		publish(!lies)
		rep := m.run(c) // no page is due yet
		asked := len(s.asked()) - 2
		if lies && asked > maxWrong+c.width() {
			t.Errorf("%d pages were requested because of a wrong list", asked)
		}
		if !lies {
			asked-- // without the request for a nonexistent address, which is sent because a page differs completely
		}
		if !lies && (asked != n || rep.Updated != n) {
			t.Errorf("%d pages were requested and %d updated, but the list reports %d", asked, rep.Updated, n)
		}
	}
}

// The crawl follows links of many shapes to pages that only redirect, and continues despite many
// broken links.
func TestShortLinks(t *testing.T) {
	s := newSite(t)
	var links []string
	for i := range 700 {
		links = append(links, fmt.Sprintf("/?p=%d", i), fmt.Sprintf("/broken-%d", i))
		s.set(fmt.Sprintf("/?p=%d", i), redirect(fmt.Sprintf("/posts/%d", i)))
		p := fmt.Sprintf("/posts/%d", i)
		s.set(p, html(p, words(p)))
	}
	s.set("/", html("Home", words("home"), append(links, "/last")...))
	s.set("/last", html("Last", words("last")))
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{}))
	if got := len(m.pages()); got != 702 {
		t.Errorf("%d pages", got)
	}
	s.set("/?p=700", redirect("/posts/700"))
	s.set("/posts/700", html("New", words("new")))
	s.set("/", html("Home", words("home"), append(links, "/last", "/?p=700")...))
	m.run(m.open(Options{}))
	if got := len(m.pages()); got != 703 {
		t.Errorf("%d pages", got)
	}
}
