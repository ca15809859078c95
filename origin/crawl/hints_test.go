package crawl

import (
	"fmt"
	"testing"
	"time"
)

// A list that dates every page today causes only a few extra fetches. A correct list causes a
// fetch of each page that it reports as new.
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
		rep := m.run(c) // nothing is due yet
		asked := len(s.asked()) - 2
		if lies && asked > maxWrong+c.width() {
			t.Errorf("%d pages are asked for because a list lies", asked)
		}
		if !lies {
			asked-- // the probe of a nonexistent address, because a page is completely different
		}
		if !lies && (asked != n || rep.Updated != n) {
			t.Errorf("%d pages are asked for, %d have changed, because a list says so of %d", asked, rep.Updated, n)
		}
	}
}

// The crawl follows links of many shapes to pages that only redirect, and continues in spite
// of many broken links.
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
