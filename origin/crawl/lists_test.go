package crawl

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

const sitemapNS = `xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"`

// urlset returns a sitemap. An address may be followed by a space and a date.
func urlset(urls ...string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?><urlset ` + sitemapNS + `>`)
	for _, u := range urls {
		u, date, _ := strings.Cut(u, " ")
		fmt.Fprintf(&b, "<url><loc>%s</loc>", u)
		if date != "" {
			fmt.Fprintf(&b, "<lastmod>%s</lastmod>", date)
		}
		b.WriteString("</url>")
	}
	return b.String() + "</urlset>"
}

func index(urls ...string) string {
	var b strings.Builder
	b.WriteString(`<sitemapindex ` + sitemapNS + `>`)
	for _, u := range urls {
		fmt.Fprintf(&b, "<sitemap><loc>%s</loc></sitemap>", u)
	}
	return b.String() + "</sitemapindex>"
}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, s)
	}
}

func TestLists(t *testing.T) {
	s, other := newSite(t), newSite(t)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, urlset(s.URL+"/packed"))
	z.Close()
	s.set("/robots.txt", text("Sitemap: "+s.URL+"/one.xml\nSitemap: /list.txt\nSitemap: "+other.URL+"/theirs.xml\nSitemap: http://[\n"))
	s.set("/one.xml", document(index(s.URL+"/two.xml", s.URL+"/one.xml", s.URL+"/packed.xml.gz", "http://elsewhere.invalid/x.xml")))
	s.set("/two.xml", document(index(s.URL+"/one.xml", s.URL+"/three.xml")))
	s.set("/three.xml", document(urlset(s.URL+"/deep", s.URL+"/deep?utm_source=sitemap", "http://elsewhere.invalid/no", s.URL+"/pic.png")))
	s.set("/packed.xml.gz", document(packed.String()))
	s.set("/list.txt", document(s.URL+"/plain\n"))
	other.set("/theirs.xml", document(urlset(s.URL+"/crossed", other.URL+"/no")))
	s.set("/", document(head("Home", `<link rel=alternate type="application/atom+xml" href="/feed">`, words("home"))))
	s.set("/feed", document(`<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>x</title><link href="`+s.URL+`/fed"/><updated>2024-01-02T03:04:05Z</updated></entry></feed>`))
	for _, p := range []string{"/deep", "/packed", "/plain", "/crossed", "/fed"} {
		s.set(p, html(p, words(p)))
	}
	m := newMill(t, s.URL+"/")
	rep := m.run(m.open(Options{}))
	want := []string{"/", "/crossed", "/deep", "/fed", "/packed", "/plain"}
	equal(t, "pages", m.pages(), want)
	if rep.SkippedN != 0 {
		t.Errorf("skipped: %v", rep.Skipped)
	}
	v, err := m.site.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := v.Page(t.Context(), millrace.Ref{URL: "/fed"})
	if err != nil || !p.Modified.Equal(time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("the date in the feed was not used as a hint: %v, %v", p, err)
	}
	seq := m.seq()
	s.asked()
	m.run(m.open(Options{}))
	cond := s.cond
	asked := s.asked()
	equal(t, "requests", asked, []string{"/", "/crossed", "/deep", "/fed", "/feed", "/list.txt", "/one.xml", "/packed", "/packed.xml.gz", "/plain", "/robots.txt", "/three.xml", "/two.xml"})
	if cond != len(asked)-1 || m.seq() != seq { // a new client has no cached robots.txt
		t.Errorf("%d of %d requests are conditional", cond, len(asked))
	}
	// A changed sitemap is read even if its index is unchanged.
	s.set("/three.xml", document(urlset(s.URL+"/deep", s.URL+"/new")))
	s.set("/new", html("New", words("new")))
	m.run(m.open(Options{}))
	equal(t, "pages", m.pages(), []string{"/", "/crossed", "/deep", "/fed", "/new", "/packed", "/plain"})
}

// As long as a list contains a missing address, each run fetches the address.
func TestListedLater(t *testing.T) {
	s := newSite(t)
	s.set("/", html("Home", words("home")))
	s.set("/sitemap.xml", document(urlset(s.URL+"/later", s.URL+"/a")))
	s.set("/a", html("A", words("a")))
	m := newMill(t, s.URL+"/")
	rep := m.run(m.open(Options{}))
	if reason(rep, "/later") != "http-404" {
		t.Errorf("skipped: %v", rep.Skipped)
	}
	s.set("/later", html("Later", words("later")))
	m.run(m.open(Options{}))
	equal(t, "pages", m.pages(), []string{"/", "/a", "/later"})
}

// Modification times in lists determine only the order of fetches.
func TestHints(t *testing.T) {
	s := newSite(t)
	s.set("/", html("Home", words("home"), "/a", "/b", "/c", "/d"))
	for _, p := range []string{"/a", "/b", "/c", "/d"} {
		s.set(p, html(p, words(p)))
	}
	list := func(a, b, c, d string) {
		s.set("/sitemap.xml", document(urlset(s.URL+"/a "+a, s.URL+"/b "+b, s.URL+"/c "+c, s.URL+"/d "+d)))
	}
	list("2024-01-01", "2024-01-02", "2024-01-03", "9999-01-01")
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{Concurrency: 1}))
	s.set("/a", html("A", words("a changed behind the back of its list")))
	list("2024-01-01", "2024-01-02", "2024-01-09", "9999-01-01")
	s.mu.Lock()
	s.log = nil
	s.mu.Unlock()
	rep := m.run(m.open(Options{Concurrency: 1}))
	s.mu.Lock()
	got := strings.Join(s.log, " ")
	s.mu.Unlock()
	if want := "/robots.txt / /sitemap.xml /c"; !strings.HasPrefix(got, want) {
		t.Errorf("requested %s, want %s first", got, want)
	}
	if rep.Updated != 1 {
		t.Errorf("%+v", rep.Counts)
	}
}

func TestListTroubles(t *testing.T) {
	for _, c := range []struct {
		name  string
		robot string // robots.txt, with $ for the site
		lists map[string]string
		why   string // part of the reason; "" = no address is skipped
		most  int    // maximum number of requests
	}{
		{"broken XML", "Sitemap: $/s.xml", map[string]string{"/s.xml": `<urlset ` + sitemapNS + `><url><loc>$/a</loc></url><url><loc>`}, "xml-truncated", 5},
		{"HTML where a list should be", "Sitemap: $/s.xml", map[string]string{"/s.xml": "<!DOCTYPE html><title>404</title>"}, "html", 5},
		{"HTML where a list may be", "", map[string]string{"/sitemap.xml": "<!DOCTYPE html><title>404</title>"}, "", 8},
		{"no list where one should be", "Sitemap: $/s.xml", nil, "http-404", 5},
		{"a list that leads away", "Sitemap: $/away", nil, "list-elsewhere", 5},
		{"a loop", "Sitemap: $/i.xml", map[string]string{"/i.xml": index("$/j.xml"), "/j.xml": index("$/i.xml", "$/s.xml"), "/s.xml": urlset("$/a")}, "", 8},
		{"indexes in indexes", "Sitemap: $/1.xml", map[string]string{"/1.xml": index("$/2.xml"), "/2.xml": index("$/3.xml"), "/3.xml": index("$/4.xml"), "/4.xml": urlset("$/b")}, "list-depth", 9},
		{"a list of another protocol", "Sitemap: $/arc-sitemap.json", map[string]string{"/arc-sitemap.json": "{}", "/sitemap.xml": urlset("$/a")}, "", 5},
		{"empty", "Sitemap: $/s.xml", map[string]string{"/s.xml": ""}, "empty", 5},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			s, other := newSite(t), newSite(t)
			other.set("/s.xml", text(urlset(s.URL+"/stolen")))
			s.set("/away", redirect(other.URL+"/s.xml"))
			s.set("/", html("Home", words("home"), "/a"))
			s.set("/a", html("A", words("a")))
			s.set("/robots.txt", text(strings.ReplaceAll(c.robot, "$", s.URL)))
			for p, body := range c.lists {
				s.set(p, text(strings.ReplaceAll(body, "$", s.URL)))
			}
			m := newMill(t, s.URL+"/")
			rep := m.run(m.open(Options{}))
			equal(t, "pages", m.pages(), []string{"/", "/a"})
			if c.why == "" && rep.SkippedN > 0 || c.why != "" && (rep.SkippedN != 1 || rep.Skipped[0].Code != c.why) {
				t.Errorf("skipped: %q, want %q", rep.Skipped, c.why)
			}
			if asked := s.asked(); len(asked) > c.most {
				t.Errorf("requests: %v", asked)
			}
		})
	}
}

// A sitemap that does not match its digest is incomplete, even if its XML is well-formed. It
// is fetched again, and no address is treated as withdrawn from it.
func TestListDigest(t *testing.T) {
	s := newSite(t)
	s.set("/robots.txt", text("Sitemap: "+s.URL+"/s.xml"))
	s.set("/", html("Home", words("home")))
	s.set("/a", html("A", words("a")))
	list := document(urlset(s.URL + "/a"))
	s.set("/s.xml", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Digest", "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:")
		list(w, r)
	})
	m := newMill(t, s.URL+"/")
	for range 2 {
		rep := m.run(m.open(Options{}))
		if rep.SkippedN != 1 || rep.Skipped[0].Code != "digest" {
			t.Errorf("skipped: %v", rep.Skipped)
		}
	}
}

func TestManyLists(t *testing.T) {
	s := newSite(t)
	s.set("/", html("Home", words("home")))
	s.set("/robots.txt", text("Sitemap: /i.xml"))
	var children []string
	for i := range 50_000 {
		children = append(children, fmt.Sprintf("%s/child-%d.xml", s.URL, i))
	}
	s.set("/i.xml", text(index(children...)))
	s.set("/child-*", text(urlset(s.URL+"/")))
	m := newMill(t, s.URL+"/")
	rep := m.run(m.open(Options{}))
	if n := len(s.asked()); n > maxLists+10 {
		t.Errorf("%d requests", n)
	}
	if rep.SkippedN != 1 || rep.Skipped[0].Code != "list-count" {
		t.Errorf("skipped: %v", rep.Skipped)
	}
}

// Addresses that a sitemap no longer contains are fetched at once. The other addresses are not
// fetched.
func TestWithdrawn(t *testing.T) {
	s := newSite(t)
	s.set("/robots.txt", text("Sitemap: "+s.URL+"/one.xml\nSitemap: "+s.URL+"/two.xml\n"))
	s.set("/", html("Home", words("home")))
	one := []string{}
	for i := range 10 {
		p := fmt.Sprintf("/p/%d", i)
		s.set(p, html(p, words(p)))
		one = append(one, s.URL+p)
	}
	s.set("/two", html("Two", words("two")))
	s.set("/one.xml", document(urlset(one...)))
	s.set("/two.xml", document(urlset(s.URL+"/two")))
	now := time.Now()
	m := newMill(t, s.URL+"/")
	c := m.open(Options{Now: func() time.Time { return now }})
	m.run(c)
	now = now.Add(10 * time.Minute)
	m.run(c)
	s.set("/one.xml", document(urlset(one[1:]...)))
	s.set("/p/0", nil)
	s.asked()
	now = now.Add(10 * time.Minute)
	m.run(c)
	// The sitemaps may share a number, because their addresses contain a random port.
	asked := slices.DeleteFunc(s.asked(), func(u string) bool { return u == "/two" })
	equal(t, "requests", asked, []string{"/", "/one.xml", "/p/0", "/two.xml"})
	if n := len(m.pages()); n != 11 {
		t.Errorf("%d pages", n)
	}
}
