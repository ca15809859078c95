package web

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// otherSite is a site with Markdown from another publisher.
type otherSite struct {
	pages map[string]otherPage
	// name returns the name of a page's Markdown, or "" if the page has none.
	name   func(path string) string
	links  bool // whether pages link to their Markdown
	accept bool // whether pages return Markdown if Accept prefers it
	llms   bool
	lists  map[string][]string // sitemaps, with the paths of their pages; a sitemap without paths is the index of the others
	feed   func(s *otherSite) string
	robots string
	edit   func(w http.ResponseWriter, r *http.Request) bool // returns true if it has sent the response

	asked []string // requested paths in order, without robots.txt
}

type otherPage struct {
	text     string
	modified time.Time
	canon    string // canonical URL in its Markdown; "" = itself, "-" = none
}

var otherDay = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// newSite returns a site with pages at the given paths, each with its own text.
func newSite(paths ...string) *otherSite {
	s := &otherSite{pages: map[string]otherPage{}, links: true, name: func(p string) string {
		if strings.HasSuffix(p, "/") {
			return p + "index.md"
		}
		return p + ".md"
	}}
	for _, p := range paths {
		s.pages[p] = otherPage{text: "Text of " + p, modified: otherDay}
	}
	return s
}

func (s *otherSite) set(path, text string, at time.Time) {
	s.pages[path] = otherPage{text: text, modified: at}
}

func (s *otherSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/robots.txt" {
		s.asked = append(s.asked, r.URL.Path)
	}
	h := w.Header()
	switch {
	case s.edit != nil && s.edit(w, r):
		return
	case r.URL.Path == "/robots.txt" && s.robots != "":
		_, _ = w.Write([]byte(s.robots))
		return
	case r.URL.Path == "/llms.txt" && s.llms:
		h.Set("Content-Type", "text/plain; charset=utf-8")
		goodBody(w, r, goodLLMs)
		return
	case r.URL.Path == "/feed.atom" && s.feed != nil:
		h.Set("Content-Type", atomType)
		goodBody(w, r, s.feed(s))
		return
	}
	if body, ok := s.sitemap(r.URL.Path); ok {
		h.Set("Content-Type", "application/xml")
		goodBody(w, r, body)
		return
	}
	for path, p := range s.pages {
		alternate := ""
		if s.name != nil {
			alternate = s.name(path)
		}
		markdown := r.URL.Path == path && s.accept && strings.HasPrefix(r.Header.Get("Accept"), "text/markdown")
		switch {
		case alternate != "" && r.URL.Path == alternate, markdown:
			h.Set("Content-Type", "text/markdown; charset=utf-8")
			switch p.canon {
			case "":
				h.Set("Link", "<"+path+`>; rel="canonical"`)
			case "-":
			default:
				h.Set("Link", "<"+p.canon+`>; rel="canonical"`)
			}
			goodBody(w, r, "# Title of "+path+"\n\n"+p.text+"\n")
			return
		case r.URL.Path == path:
			h.Set("Content-Type", "text/html; charset=utf-8")
			if alternate != "" && s.links {
				h.Add("Link", "<"+alternate+`>; rel="alternate"; type="text/markdown"`)
			}
			head := ""
			if s.feed != nil {
				head = `<link rel="alternate" type="application/atom+xml" href="/feed.atom">`
			}
			_, _ = w.Write([]byte("<!doctype html><title>x</title>" + head + "<p>" + p.text))
			return
		}
	}
	http.NotFound(w, r)
}

func (s *otherSite) sitemap(path string) (string, bool) {
	lists := s.lists
	if lists == nil {
		lists = map[string][]string{"/sitemap.xml": slices.Sorted(maps.Keys(s.pages))}
	}
	paths, ok := lists[path]
	if !ok {
		return "", false
	}
	var b strings.Builder
	root, entry := "urlset", "url"
	if paths == nil {
		root, entry = "sitemapindex", "sitemap"
		for name, of := range lists {
			if of != nil {
				paths = append(paths, name)
			}
		}
		slices.Sort(paths)
	}
	b.WriteString("<" + root + ` xmlns="` + sitemapSpace + `">`)
	for _, p := range paths {
		mod := ""
		if page, ok := s.pages[p]; ok && !page.modified.IsZero() {
			mod = "<lastmod>" + page.modified.Format(time.RFC3339) + "</lastmod>"
		}
		if strings.HasPrefix(p, "/") {
			p = goodSite + p
		}
		fmt.Fprintf(&b, "<%s><loc>%s</loc>%s</%[1]s>\n", entry, p, mod)
	}
	b.WriteString("</" + root + ">")
	return b.String(), true
}

// atom returns a function that renders a feed of changes, with the deletions in gone.
func atom(gone map[string]time.Time, limit int) func(s *otherSite) string {
	return func(s *otherSite) string {
		paths := slices.SortedFunc(maps.Keys(s.pages), func(a, b string) int {
			if c := s.pages[b].modified.Compare(s.pages[a].modified); c != 0 {
				return c
			}
			return strings.Compare(a, b)
		})
		var b strings.Builder
		b.WriteString(`<feed xmlns="` + atomSpace + `" xmlns:at="` + tombstoneSpace + `" xmlns:m="` + termsSpace + `"><id>urn:x</id><title>x</title><updated>2026-01-01T00:00:00Z</updated>`)
		for _, p := range slices.Sorted(maps.Keys(gone)) {
			b.WriteString(`<at:deleted-entry ref="` + p + `" when="` + gone[p].Format(time.RFC3339) + `"/>`)
		}
		for _, p := range paths[:min(limit, len(paths))] {
			fmt.Fprintf(&b, `<entry><id>%s%s</id><title>x</title><updated>%s</updated><m:modified>%[3]s</m:modified><link href="%s"/></entry>`,
				goodSite, p, s.pages[p].modified.Format(time.RFC3339), p)
		}
		b.WriteString("</feed>")
		return b.String()
	}
}

// copied is a mirror of a site.
type copied struct {
	site  *otherSite
	pages mirror.Pages
	now   time.Time
	notes []string
}

func (c *copied) reader() *reader {
	return newReader(&http.Client{Transport: protocoltest.Answer(c.site)}, goodSite, &protocol.ReaderOptions{
		Note: func(n protocol.Note) { c.notes = append(c.notes, n.Rule+" "+n.Text) },
		Now:  func() time.Time { return c.now },
	})
}

// sync updates the mirror, and returns the report and the requested paths.
func (c *copied) sync(t *testing.T) (*mirror.Report, []string) {
	t.Helper()
	c.site.asked = nil
	rep, err := mirror.Sync(t.Context(), Name, c.reader(), &c.pages, &mirror.Options{Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	return rep, c.site.asked
}

// holds fails the test unless the mirror equals the site.
func (c *copied) holds(t *testing.T) {
	t.Helper()
	for path, p := range c.site.pages {
		stored := c.pages.Page(goodSite + path)
		if stored == nil || stored.Text() != p.text || stored.Title != "Title of "+path {
			t.Errorf("%s is %+v, want %q", path, stored, p.text)
		}
	}
	if n := c.pages.Len(); n != len(c.site.pages) {
		t.Errorf("%d pages are stored, the site has %d", n, len(c.site.pages))
	}
}
