package crawl

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
)

func TestRobots(t *testing.T) {
	s := newSite(t)
	s.set("/robots.txt", text("User-agent: *\nDisallow: /secret\nDisallow: /later\n"))
	s.set("/", html("Home", words("home"), "/secret/1", "/secret/2", "/a", "/redirect"))
	s.set("/a", html("A", words("a"), "/secret/2", "/secret/3"))
	s.set("/secret/*", html("S", words("s")))
	s.set("/redirect", redirect("/secret/4"))
	m := newMill(t, s.URL+"/")
	rep := m.run(m.open(Options{}))
	equal(t, "pages", m.pages(), []string{"/", "/a"})
	for _, u := range s.asked() {
		if strings.HasPrefix(u, "/secret") {
			t.Errorf("%s was requested", u)
		}
	}
	if rep.SkippedN != 1 || rep.Skipped[0].Code != "robots-disallow" {
		t.Errorf("skipped: %v", rep.Skipped)
	}
}

// A stored page is deleted when robots.txt disallows it.
func TestDisallowedLater(t *testing.T) {
	s := newSite(t)
	s.set("/", html("Home", words("home"), "/a", "/b", "/c", "/d", "/e", "/f"))
	for _, p := range []string{"/a", "/b", "/c", "/d", "/e", "/f"} {
		s.set(p, html(p, words(p)))
	}
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{}))
	s.set("/robots.txt", text("User-agent: *\nDisallow: /a\n"))
	s.asked()
	rep := m.run(m.open(Options{}))
	if got := reason(rep, "/a"); got != "robots-disallow" {
		t.Errorf("the reason is %q", got)
	}
	equal(t, "pages", m.pages(), []string{"/", "/b", "/c", "/d", "/e", "/f"})
	for _, u := range s.asked() {
		if u == "/a" {
			t.Error("the page was requested")
		}
	}
}

func TestNoFollowNoIndex(t *testing.T) {
	s := newSite(t)
	tagged := func(tag, title string, links ...string) http.HandlerFunc {
		page := html(title, words(title), links...)
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Add("X-Robots-Tag", tag)
			page(w, r)
		}
	}
	s.set("/", document(`<!DOCTYPE html><title>Home</title><main><h1>Home</h1><p>`+words("home")+`</p>
		<a href=/nofollow>x</a> <a href=/noindex>x</a> <a href=/header>x</a> <a href=/none>x</a> <a href=/other>x</a> <a href=/ours>x</a>
		<a href=/old>x</a> <a href=/fresh>x</a> <a rel=nofollow href=/unfollowed>x</a></main>`))
	s.set("/nofollow", document(head("Nofollow", `<meta name=robots content=nofollow>`, words("nofollow"), "/from-nofollow")))
	s.set("/noindex", document(head("Noindex", `<meta name=robots content=noindex>`, words("noindex"), "/from-noindex")))
	s.set("/header", tagged("noindex", "header", "/from-header"))
	s.set("/none", tagged("none", "none", "/from-none"))
	s.set("/other", tagged("otherbot: noindex, nofollow", "other", "/from-other"))
	s.set("/ours", tagged("millrace: noindex", "ours", "/from-ours"))
	s.set("/old", tagged("unavailable_after: 25 Jun 2010 15:00:00 PST", "old"))
	s.set("/fresh", tagged("unavailable_after: 25 Jun 2999 15:00:00 PST", "fresh"))
	s.set("/unfollowed", html("U", words("u")))
	for _, p := range []string{"nofollow", "noindex", "header", "none", "other", "ours"} {
		s.set("/from-"+p, html(p, words("from "+p)))
	}
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{}))
	equal(t, "pages", m.pages(), []string{"/", "/fresh", "/from-header", "/from-noindex", "/from-other", "/from-ours", "/nofollow", "/other"})
	for _, u := range s.asked() {
		if u == "/unfollowed" || u == "/from-nofollow" || u == "/from-none" {
			t.Errorf("%s was requested", u)
		}
	}
}

func TestExpired(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for tag, want := range map[string]bool{
		"unavailable_after: 25 Jun 2010 15:00:00 PST":                  true,
		"noarchive, unavailable_after: Friday, 25-Jun-10 15:00:00 GMT": true,
		"unavailable_after: 2010-06-25":                                true,
		"unavailable_after: 2010-06-25T15:00:00+02:00, nofollow":       true,
		"Unavailable_After: Mon, 02 Jan 2006 15:04:05 GMT":             true,
		"unavailable_after: 2999-06-25":                                false,
		"unavailable_after: never":                                     false,
		"unavailable_after:":                                           false,
		"noindex":                                                      false,
		"unavailable_after: " + strings.Repeat("or later ", 50):        false,
	} {
		if got := expired([]string{tag}, now); got != want {
			t.Errorf("%.80q: %v", tag, got)
		}
	}
}

func TestTraps(t *testing.T) {
	for _, c := range []struct {
		name  string
		page  func(s *site, w http.ResponseWriter, r *http.Request)
		pages int // maximum number of stored pages
		real  int // minimum number of stored pages
		lines int // maximum number of reported skips
	}{
		{name: "an endless calendar", page: func(_ *site, w http.ResponseWriter, r *http.Request) {
			var y, mo int
			if _, err := fmt.Sscanf(r.URL.Path, "/trap/%d/%d", &y, &mo); err != nil {
				y, mo = 2026, 1
			}
			month := func(d time.Time) string { return fmt.Sprintf("/trap/%d/%02d", d.Year(), d.Month()) }
			at := time.Date(y, time.Month(mo), 1, 0, 0, 0, 0, time.UTC)
			html(at.Format("January 2006"), "No events in "+at.Format("2006-01")+".", month(at.AddDate(0, 1, 0)), month(at.AddDate(0, -1, 0)),
				month(at.AddDate(1, 0, 0)), month(at.AddDate(10, 0, 0)), month(at.AddDate(-7, 0, 0)))(w, r)
		}, pages: 400, lines: 1},
		{name: "facets", page: func(_ *site, w http.ResponseWriter, r *http.Request) {
			var links []string
			for _, f := range []string{"color", "size", "brand", "price", "sort", "style"} {
				for v := range 6 {
					q := r.URL.Query()
					q.Set(f, fmt.Sprint("v", v))
					links = append(links, "/trap?"+q.Encode())
				}
			}
			html("Shop", "Shirts in "+r.URL.RawQuery+".", links...)(w, r)
		}, pages: 5000, lines: 130},
		{name: "a path that goes round", page: func(_ *site, w http.ResponseWriter, r *http.Request) {
			html("Round", words(r.URL.Path), "a/b/", "c/")(w, r)
		}, pages: 300, lines: 100},
		{name: "a query that grows", page: func(_ *site, w http.ResponseWriter, r *http.Request) {
			html("Grow", words(r.URL.RawQuery), fmt.Sprintf("/trap?%s&k%d=1", r.URL.RawQuery, len(r.URL.RawQuery)))(w, r)
		}, pages: 20, lines: 1},
		{name: "session ids in the path", page: func(s *site, w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			n := len(s.log)
			s.mu.Unlock()
			html("Session", "Welcome to the shop.", fmt.Sprintf("/trap/s%x/shop", mix(uint64(n))), fmt.Sprintf("/trap/s%x/cart", mix(uint64(n+1))))(w, r)
		}, pages: 350, lines: 1},
		{name: "a chain of redirects", page: func(_ *site, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}, pages: 40, lines: 1},
		{name: "a forum", page: func(_ *site, w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/trap/t/") {
				var n int
				_, _ = fmt.Sscanf(r.URL.Query().Get("page"), "%d", &n)
				var links []string
				for i := range 100 {
					links = append(links, fmt.Sprintf("/trap/t/title-%d/%d", n*100+i, n*100+i))
				}
				if n < 14 {
					links = append(links, fmt.Sprintf("/trap/?page=%d", n+1))
				}
				html("Threads", "Threads.", links...)(w, r)
				return
			}
			html("Thread "+r.URL.Path, "Somebody has asked "+words(r.URL.Path))(w, r)
		}, real: 1516, pages: 1516},
		{name: "a wiki", page: func(_ *site, w http.ResponseWriter, r *http.Request) {
			title := r.URL.Query().Get("title")
			var links []string
			for i := range 400 {
				links = append(links, fmt.Sprintf("/trap/index.php?title=Page_%d", i))
			}
			html("W "+title, "About "+words(title), links...)(w, r)
		}, real: 402, pages: 402},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			if c.pages > 400 {
				testkit.Soak(t)
			}
			s := newSite(t)
			s.set("/", html("Home", words("home"), "/trap/"))
			s.set("/trap*", func(w http.ResponseWriter, r *http.Request) { c.page(s, w, r) })
			m := newMill(t, s.URL+"/")
			rep := m.run(m.open(Options{}))
			n := len(m.pages())
			asked := len(s.asked())
			if n < c.real || asked > c.pages+6 {
				t.Errorf("%d pages after %d requests, want %d of %d", n, asked, c.real, c.pages)
			}
			if rep.SkippedN > c.lines || c.lines > 0 && rep.SkippedN == 0 {
				t.Errorf("%d pages were skipped, the first %v", rep.SkippedN, rep.Skipped[:min(3, rep.SkippedN)])
			}
			t.Logf("%d pages, %d requests, %d skips: %v", n, asked, rep.SkippedN, rep.Skipped[:min(2, rep.SkippedN)])
			// The budgets for the shapes are kept after the run.
			s.set("/", html("Home", words("home again"), "/trap/"))
			m.run(m.open(Options{}))
			if more := len(m.pages()) - n; more > n/5+30 {
				t.Errorf("a second run found %d more pages", more)
			}
		})
	}
}

func TestTrapsFromLists(t *testing.T) {
	s := newSite(t)
	var urls []string
	for i := range 600 {
		urls = append(urls, fmt.Sprintf("%s/same/%d", s.URL, i))
	}
	s.set("/sitemap.xml", text(urlset(urls...)))
	s.set("/", html("Home", words("home")))
	s.set("/same/*", func(w http.ResponseWriter, r *http.Request) {
		html("Same "+r.URL.Path, "The same on every page.")(w, r)
	})
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{}))
	if n := len(m.pages()); n != 601 {
		t.Errorf("%d pages of a sitemap of 601", n)
	}
}

func TestSoft404(t *testing.T) {
	s := newSite(t)
	s.set("/", html("Home", words("home"), "/a", "/gone", "/missing"))
	s.set("/a", html("A", words("a")))
	s.set("/*", html("Oops", "Sorry, we could not find what you were looking for. Try the search."))
	m := newMill(t, s.URL+"/")
	rep := m.run(m.open(Options{}))
	equal(t, "pages", m.pages(), []string{"/", "/a"})
	if got := reason(rep, "/gone"); got != "soft-404" || rep.SkippedN != 2 {
		t.Errorf("skipped: %v", rep.Skipped)
	}
	s.asked()
	m.run(m.open(Options{}))
	for _, u := range s.asked() {
		if strings.Contains(u, "no-such-page") {
			t.Error("the second run requests a nonexistent address again")
		}
	}
}

func TestLogin(t *testing.T) {
	s := newSite(t)
	form := document(`<!DOCTYPE html><title>Log in</title><main><form method=post><input name=user><input type=password name=p><button>Log in</button></form></main>`)
	s.set("/", html("Home", words("home"), "/a", "/b", "/wall"))
	s.set("/a", html("A", words("a")))
	s.set("/b", redirect("/login?next=/b"))
	s.set("/login", form)
	s.set("/wall", form)
	m := newMill(t, s.URL+"/")
	rep := m.run(m.open(Options{}))
	equal(t, "pages", m.pages(), []string{"/", "/a"})
	if rep.SkippedN != 1 || rep.Skipped[0].Code != "login" {
		t.Errorf("skipped: %v", rep.Skipped)
	}
	s.set("/", form)
	if _, err := m.try(m.open(Options{})); millrace.Status(err) != 403 || millrace.ErrorCode(err) != "login" {
		t.Errorf("a home page that requires a login: %v", err)
	}
	s.set("/", redirect("/login"))
	if _, err := m.try(m.open(Options{})); millrace.Status(err) != 403 || millrace.ErrorCode(err) != "login" {
		t.Errorf("a home page that redirects to a login: %v", err)
	}
	equal(t, "pages", m.pages(), []string{"/", "/a"})
}

// Hidden pages and redirects to other sites are reported once, whatever their
// number.
func TestHiddenAndAway(t *testing.T) {
	s := newSite(t)
	links := []string{"/a"}
	s.set("/a", html("A", words("a")))
	for i := range 10 {
		hidden, away := fmt.Sprintf("/hidden/%d", i), fmt.Sprintf("/away/%d", i)
		s.set(hidden, document(head(hidden, "<meta name=robots content=noindex>", words(hidden))))
		s.set(away, redirect(fmt.Sprintf("https://elsewhere.example/%d", i)))
		links = append(links, hidden, away)
	}
	s.set("/", html("Home", words("home"), links...))
	m := newMill(t, s.URL+"/")
	rep := m.run(m.open(Options{}))
	equal(t, "pages", m.pages(), []string{"/", "/a"})
	codes := make(map[string]bool)
	for _, s := range rep.Skipped {
		codes[s.Code] = true
	}
	if rep.SkippedN != 2 || !codes["noindex"] || !codes["redirect-outside"] {
		t.Errorf("%d: %v", rep.SkippedN, rep.Skipped)
	}
	// The sink stores them nevertheless.
	stored := 0
	for range m.site.KnownRefs(t.Context(), from) {
		stored++
	}
	if stored != 22 {
		t.Errorf("%d names are stored", stored)
	}
}

func TestReasonsOfTraps(t *testing.T) {
	for _, err := range []error{errTangled, errNothingNew} {
		if millrace.Status(err) != 413 {
			t.Errorf("%d %v", millrace.Status(err), err)
		}
	}
}
