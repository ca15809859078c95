package web

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// Sites name the Markdown of their pages in different ways, and some sites have no links to it.
func TestReadManners(t *testing.T) {
	paths := []string{"/", "/a/", "/b", "/c.html", "/d/e/"}
	for name, c := range map[string]struct {
		change func(s *otherSite)
		most   int // maximum number of requests
	}{
		"links":  {func(*otherSite) {}, 11},
		"Accept": {func(s *otherSite) { s.name, s.accept = nil, true }, 11},
		"links of their own": {func(s *otherSite) {
			s.name = func(p string) string { return "/raw" + strings.ReplaceAll(p, "/", "-") + ".txt.md" }
		}, 16},
		"llms.txt, its authors' names": {func(s *otherSite) {
			s.links, s.llms = false, true
			s.name = func(p string) string {
				switch {
				case strings.HasSuffix(p, "/"):
					return p + "index.html.md"
				case strings.HasSuffix(p, ".html"):
					return p + ".md"
				}
				return p + ".md"
			}
		}, 24},
		"llms.txt, without extension": {func(s *otherSite) {
			s.links, s.llms = false, true
			s.name = func(p string) string {
				return strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(p, ".html"), "/"), "/") + ".md"
			}
			delete(s.pages, "/")
		}, 24},
		"no canonical links": {func(s *otherSite) {
			for p, page := range s.pages {
				page.canon = "-"
				s.pages[p] = page
			}
		}, 11},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(paths...)
			c.change(s)
			m := &copied{site: s, now: otherDay.Add(48 * time.Hour)}
			rep, asked := m.sync(t)
			m.holds(t)
			if rep.Added != len(s.pages) || len(asked) > c.most {
				t.Errorf("%+v, %d requests: %v", rep, len(asked), asked)
			}
			// The unchanged sitemap is enough to detect that no page has changed.
			if _, asked := m.sync(t); !slices.Equal(asked, []string{"/sitemap.xml"}) {
				t.Errorf("after no change, requested %v", asked)
			}
			s.set("/b", "Another text", otherDay.Add(40*time.Hour))
			if rep, asked := m.sync(t); rep.Updated != 1 || len(asked) != 2 {
				t.Errorf("after a change of one page: %+v, %v", rep, asked)
			}
			m.holds(t)
			delete(s.pages, "/b")
			if rep, _ := m.sync(t); rep.Deleted+rep.UnconfirmedDeletions != 1 {
				t.Errorf("after a deletion: %+v", rep)
			}
		})
	}
}

// A site without Markdown needs only a few requests, and so does a site without a sitemap.
func TestReadNothing(t *testing.T) {
	for name, change := range map[string]func(s *otherSite){
		"no Markdown":    func(s *otherSite) { s.name = nil },
		"llms.txt alone": func(s *otherSite) { s.name, s.llms = nil, true },
		"no sitemap":     func(s *otherSite) { s.lists = map[string][]string{} },
		"an empty sitemap, no page": func(s *otherSite) {
			s.name, s.lists = nil, map[string][]string{"/sitemap.xml": {}}
		},
		"elsewhere": func(s *otherSite) {
			s.edit = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Host == "site.example" && r.URL.Path == "/" {
					http.Redirect(w, r, "https://other.example/", http.StatusFound)
					return true
				}
				return false
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite("/", "/a/", "/b", "/c/")
			change(s)
			m := &copied{site: s, now: otherDay}
			for _, err := range m.reader().Changes(t.Context(), "") {
				if !errors.Is(err, millrace.ErrNotFound) {
					t.Errorf("the error is %v", err)
				}
			}
			if len(s.asked) > 13 {
				t.Errorf("%d requests: %v", len(s.asked), s.asked)
			}
			s.asked = nil
			if _, err := probe(t.Context(), m.reader().Client, goodSite, nil); !errors.Is(err, millrace.ErrNotFound) {
				t.Errorf("a look: %v", err)
			}
			if len(s.asked) > 13 {
				t.Errorf("discovery takes %d requests: %v", len(s.asked), s.asked)
			}
		})
	}
}

// A feed of all changes replaces the sitemap; an incomplete feed does not.
func TestReadFeed(t *testing.T) {
	paths := []string{"/"}
	for i := range 20 {
		paths = append(paths, fmt.Sprintf("/p%d", i))
	}
	s := newSite(paths...)
	for i, p := range paths {
		s.set(p, "Text of "+p, otherDay.Add(time.Duration(i)*time.Minute))
	}
	gone := map[string]time.Time{}
	s.feed = atom(gone, 8)
	m := &copied{site: s, now: otherDay.Add(2 * time.Hour)}
	m.sync(t)
	m.holds(t)
	only := func(what string, want ...string) {
		t.Helper()
		_, asked := m.sync(t)
		slices.Sort(asked)
		slices.Sort(want)
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("%s (-want +asked):\n%s", what, diff)
		}
		m.holds(t)
	}
	only("nothing has changed", "/feed.atom")
	s.set("/p3", "Edited", otherDay.Add(time.Hour))
	s.set("/new", "New", otherDay.Add(time.Hour))
	delete(s.pages, "/p7")
	gone[goodSite+"/p7"] = otherDay.Add(time.Hour)
	only("one edited, one new, one gone", "/feed.atom", "/p3.md", "/new.md")
	only("nothing again", "/feed.atom")
	s.set("/p4", "At the same time as others", otherDay.Add(time.Hour))
	only("the same second", "/feed.atom", "/p4.md")
	// If there are more changes than the feed contains, the sitemap is read.
	var want []string
	for _, p := range paths[1:13] {
		if _, ok := s.pages[p]; ok {
			s.set(p, "Again "+p, otherDay.Add(90*time.Minute))
			want = append(want, p+".md")
		}
	}
	only("more than the feed has", append(want, "/feed.atom", "/sitemap.xml")...)
	only("nothing again", "/feed.atom")
	// After a day, the sitemap is read in any case.
	m.now = m.now.Add(25 * time.Hour)
	if _, asked := m.sync(t); !slices.Contains(asked, "/sitemap.xml") || len(asked) > 5 {
		t.Errorf("a day later: %v", asked)
	}
	// A tombstone may refer to an unknown entry.
	delete(s.pages, "/p9")
	gone["urn:x:p9"] = m.now
	if rep, asked := m.sync(t); !slices.Contains(asked, "/sitemap.xml") || rep.Deleted != 1 {
		t.Errorf("a tombstone of an unknown entry: %+v, %v", rep, asked)
	}
	// The feed contains only posts.
	posts := newSite(paths...)
	posts.feed = func(*otherSite) string {
		return `<feed xmlns="` + atomSpace + `" xmlns:at="` + tombstoneSpace + `"><updated>2026-03-02T00:00:00Z</updated>` +
			`<entry><id>a</id><updated>2026-03-02T00:00:00Z</updated><link href="/p1"/></entry><entry><id>b</id><updated>2026-02-01T00:00:00Z</updated><link href="/p2"/></entry></feed>`
	}
	m = &copied{site: posts, now: otherDay.Add(48 * time.Hour)}
	m.sync(t)
	if !slices.ContainsFunc(m.notes, func(n string) bool { return strings.Contains(n, "feed-changes") }) {
		t.Errorf("the notes are %q", m.notes)
	}
	posts.set("/p5", "Not in the feed", otherDay.Add(40*time.Hour))
	if _, asked := m.sync(t); !slices.Equal(asked, []string{"/sitemap.xml", "/p5.md"}) {
		t.Errorf("an incomplete feed: %v", asked)
	}
	// The feed is used as soon as it is complete.
	posts.feed = atom(nil, 8)
	m.now = m.now.Add(25 * time.Hour)
	m.sync(t)
	if _, asked := m.sync(t); !slices.Equal(asked, []string{"/feed.atom"}) {
		t.Errorf("a feed that has become complete: %v", asked)
	}
	m.holds(t)
}

// Each sitemap of an index is read only if it has changed.
func TestReadIndex(t *testing.T) {
	s := newSite("/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h", "/k", "/l")
	s.robots = "Sitemap: " + goodSite + "/maps.xml\n"
	s.lists = map[string][]string{"/maps.xml": nil, "/1.xml": {"/a", "/b", "/c", "/d"}, "/2.xml": {"/e", "/f", "/g", "/k", "/l", "/h", "https://other.example/x"}}
	m := &copied{site: s, now: otherDay.Add(48 * time.Hour)}
	rep, _ := m.sync(t)
	m.holds(t)
	if rep.Added != 10 || !slices.ContainsFunc(m.notes, func(n string) bool { return strings.Contains(n, "other.example") }) {
		t.Errorf("%+v %q", rep, m.notes)
	}
	if _, asked := m.sync(t); !slices.Equal(asked, []string{"/maps.xml", "/1.xml", "/2.xml"}) {
		t.Errorf("after no change: %v", asked)
	}
	delete(s.pages, "/h")
	s.lists["/2.xml"] = []string{"/e", "/f", "/g", "/k", "/l", "/i"}
	s.set("/i", "New", otherDay)
	if rep, asked := m.sync(t); rep.Added != 1 || rep.Deleted != 1 || !slices.Equal(asked, []string{"/maps.xml", "/1.xml", "/2.xml", "/i.md"}) {
		t.Errorf("after a change of one sitemap: %+v, %v", rep, asked)
	}
	m.holds(t)
	// If a sitemap is new, all sitemaps are read again, but only the new page is requested.
	s.lists["/3.xml"] = []string{"/j"}
	s.set("/j", "Newer", otherDay)
	if rep, asked := m.sync(t); rep.Added != 1 || rep.Deleted != 0 || strings.Count(strings.Join(asked, " "), ".md") != 1 {
		t.Errorf("after an added sitemap: %+v, %v", rep, asked)
	}
	m.holds(t)
	// If a sitemap is missing once, no page is deleted.
	missing := s.lists["/1.xml"]
	delete(s.lists, "/1.xml")
	s.edit = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/maps.xml" {
			return false
		}
		fmt.Fprintf(w, `<sitemapindex xmlns="%s"><sitemap><loc>/1.xml</loc></sitemap><sitemap><loc>/2.xml</loc></sitemap><sitemap><loc>/3.xml</loc></sitemap></sitemapindex>`, sitemapSpace)
		return true
	}
	if rep, _ := m.sync(t); rep.Deleted+rep.UnconfirmedDeletions != 0 {
		t.Errorf("a sitemap is missing: %+v", rep)
	}
	s.lists["/1.xml"], s.edit = missing, nil
	m.sync(t)
	m.holds(t)
}

// Markdown of another page under a guessed name is rejected, and the page's own link is used.
func TestReadClash(t *testing.T) {
	s := newSite("/", "/a/", "/b/", "/c/")
	name := s.name
	s.name = func(p string) string {
		if p == "/b/" {
			return "/b/~2/index.md"
		}
		return name(p)
	}
	s.edit = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/b/index.md" {
			return false
		}
		w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
		w.Header().Set("Link", `</b/index>; rel="canonical"`)
		_, _ = w.Write([]byte("# Another\n"))
		return true
	}
	m := &copied{site: s, now: otherDay.Add(48 * time.Hour)}
	m.sync(t)
	m.holds(t)
	s.set("/b/", "Edited", otherDay.Add(time.Hour))
	if _, asked := m.sync(t); !slices.Equal(asked, []string{"/sitemap.xml", "/b/~2/index.md"}) {
		t.Errorf("a known name was searched for again: %v", asked)
	}
	m.holds(t)
}

// If a page links to its Markdown, a sitemap is not required to find it.
func TestReadPage(t *testing.T) {
	s := newSite("/a/", "/b.html", "/c")
	s.lists = map[string][]string{}
	m := &copied{site: s, now: otherDay}
	for path, page := range s.pages {
		r := m.reader()
		p, err := r.Page(t.Context(), millrace.Ref{URL: goodSite + path})
		if err != nil || p.Text() != page.text {
			t.Fatalf("%s: %+v, %v", path, p, err)
		}
		if _, err := r.Page(t.Context(), millrace.Ref{URL: goodSite + path, Version: p.Version}); !errors.Is(err, millrace.ErrUnmodified) {
			t.Errorf("%s again: %v", path, err)
		}
	}
	for _, u := range []string{goodSite + "/none", "https://other.example/a/"} {
		if p, err := m.reader().Page(t.Context(), millrace.Ref{URL: u}); !errors.Is(err, millrace.ErrNotFound) {
			t.Errorf("%s: %+v, %v", u, p, err)
		}
	}
	if _, err := newReader(nil, "nothing", nil).Page(t.Context(), millrace.Ref{URL: "/"}); !errors.Is(err, millrace.ErrInvalid) {
		t.Error(err)
	}
	for _, cursor := range []millrace.Cursor{"x", "{}", `{"root":"https://other.example/","lists":[{"url":"a"}]}`} {
		for _, err := range m.reader().Changes(t.Context(), cursor) {
			if !errors.Is(err, millrace.ErrConflict) {
				t.Errorf("cursor %s: %v", cursor, err)
			}
		}
	}
}

// A page from an outdated replica is requested again. If the pages of a site are always older
// than in its lists, they are accepted.
func TestReadLag(t *testing.T) {
	for name, c := range map[string]struct {
		feed bool
		now  time.Time // if it is before the changes, the site sends no times for them
	}{
		"by the sitemap":        {false, otherDay.Add(48 * time.Hour)},
		"by the feed":           {true, otherDay.Add(48 * time.Hour)},
		"by the sitemap, ahead": {false, otherDay.Add(-time.Minute)},
		"by the feed, ahead":    {true, otherDay.Add(-time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite("/", "/a", "/b", "/c")
			if c.feed {
				s.feed = atom(nil, 8)
			}
			m := &copied{site: s, now: c.now}
			old := map[string]otherPage{}
			s.edit = func(w http.ResponseWriter, r *http.Request) bool {
				path, ok := strings.CutSuffix(r.URL.Path, ".md")
				page := s.pages[path]
				if p, lags := old[path]; lags {
					page = p
				}
				if _, is := s.pages[path]; !ok || !is {
					return false
				}
				w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
				w.Header().Set("Date", m.now.Format(http.TimeFormat))
				if !page.modified.After(m.now) {
					w.Header().Set("Last-Modified", page.modified.Format(http.TimeFormat))
				}
				goodBody(w, r, "# Title of "+path+"\n\n"+page.text+"\n")
				return true
			}
			m.sync(t)
			m.sync(t) // a time in the future is accepted when it is seen twice
			m.holds(t)
			old["/a"] = s.pages["/a"]
			s.set("/a", "Newer", otherDay.Add(time.Hour))
			m.sync(t) // the next run requests the page, even if the lists are unchanged
			delete(old, "/a")
			if _, asked := m.sync(t); !slices.Contains(asked, "/a.md") {
				t.Errorf("asked for %v", asked)
			}
			m.holds(t)
			old["/b"] = otherPage{"In between", otherDay.Add(2 * time.Hour), ""}
			s.set("/b", "Newest", otherDay.Add(3*time.Hour))
			m.sync(t)
			m.sync(t) // the difference is the same as before
			delete(old, "/b")
			if _, asked := m.sync(t); len(asked) != 1 {
				t.Errorf("a difference that was seen twice is not accepted: %v", asked)
			}
			if m.now = m.now.Add(25 * time.Hour); !c.feed {
				s.set("/c", "So that it is read", otherDay.Add(4*time.Hour))
			}
			m.sync(t)
			m.sync(t)
			m.holds(t)
		})
	}
}

// A time in the present or future does not identify a version, because another version may have the
// same time.
func TestReadTimes(t *testing.T) {
	for _, c := range []struct {
		state, modified, now string
		want                 bool
	}{
		{"2026-03-01T10:00:00Z", "", "2026-03-01T10:00:02Z", true},
		{"2026-03-01T10:00:00Z", "", "2026-03-01T10:00:01Z", false},
		{"2026-03-01T00:00:00Z", "", "2026-03-01T20:00:00Z", false}, // a day
		{"2026-03-01T00:00:00Z", "", "2026-03-02T00:00:02Z", true},
		{"2026-03-01T10:00:00Z", "2026-03-01T09:59:59Z", "2026-03-02T00:00:00Z", false}, // an older copy
		{"2026-03-01T10:00:00.5Z", "2026-03-01T10:00:00Z", "2026-03-02T00:00:00Z", true},
		{"", "", "2026-03-02T00:00:00Z", false},
	} {
		r := newReader(nil, goodSite, &protocol.ReaderOptions{Now: func() time.Time { return feedTime(c.now) }})
		want := ""
		if c.want {
			want = c.state
		}
		if got := r.settled(c.state, feedTime(c.modified)); got != want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
