package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// manualSite is the PostgreSQL manual as a changing site. Every day some of its pages are
// edited, and a few are added and removed. From time to time the template changes. A day
// depends only on the seed.
type manualSite struct {
	folder   string
	rng      *rand.Rand
	pages    map[string]string // by file name: HTML without the template
	shown    map[string]string // as in the folder
	dead     map[string]bool   // names of deleted pages
	template int               // number of the template
	made     int               // pages that were added, and sentences
	owed     [2]float64        // fractions of a page to add, to remove
}

// monthDay is the changes of a day.
type monthDay struct {
	edited, added, removed []string // file names
	look                   bool     // another template
}

// changed returns the pages with new content.
func (d *monthDay) changed() []string { return slices.Concat(d.edited, d.added) }

func newManualSite(manual, folder string) (*manualSite, error) {
	s := &manualSite{
		folder: folder, rng: rand.New(rand.NewPCG(15, 30)),
		pages: map[string]string{}, shown: map[string]string{}, dead: map[string]bool{},
	}
	files, err := filepath.Glob(filepath.Join(manual, "*.html"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s has no pages: install Debian's postgresql-doc-15, or name its folder with -manual", manual)
	}
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		html, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		s.pages[filepath.Base(f)] = string(html)
	}
	return s, os.MkdirAll(folder, 0o700)
}

// write updates the folder, with the given file times.
func (s *manualSite) write(at time.Time) error {
	for name, html := range s.pages {
		html = s.dress(html)
		if s.shown[name] == html {
			continue
		}
		s.shown[name] = html
		file := filepath.Join(s.folder, name)
		if err := os.WriteFile(file, []byte(html), 0o600); err != nil {
			return err
		}
		if err := os.Chtimes(file, at, at); err != nil {
			return err
		}
	}
	for name := range s.shown {
		if _, there := s.pages[name]; there {
			continue
		}
		delete(s.shown, name)
		if err := os.Remove(filepath.Join(s.folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// The shares of the pages that change in a day.
const (
	editedADay  = 0.01
	addedADay   = 0.002
	removedADay = 0.001
)

// next runs one day. If redesign is set, the template changes at its end.
func (s *manualSite) next(redesign bool) (d monthDay, err error) {
	n := len(s.pages)
	names := slices.Sorted(maps.Keys(s.pages))
	s.rng.Shuffle(n, func(i, k int) { names[i], names[k] = names[k], names[i] })
	s.owed[0] += float64(n) * addedADay
	s.owed[1] += float64(n) * removedADay
	for ; s.owed[1] >= 1; s.owed[1]-- {
		// Keep pages with links to added pages, so that a crawler finds all pages.
		i := slices.IndexFunc(names, func(name string) bool {
			return name != "index.html" && name != "bookindex.html" && !strings.Contains(s.pages[name], `class="toc"`) && !strings.HasPrefix(name, "added-")
		})
		d.removed = append(d.removed, names[i])
		s.dead[names[i]] = true
		delete(s.pages, names[i])
		names = slices.Delete(names, i, i+1)
	}
	var links []string
	for ; s.owed[0] >= 1; s.owed[0]-- {
		name, title, html := s.add(names)
		s.pages[name] = html
		d.added = append(d.added, name)
		links = append(links, fmt.Sprintf(` See <a class="xref" href="%s" title="%s">%s</a>.`, name, title, title))
	}
	for _, name := range names {
		if len(d.edited) == int(float64(n)*editedADay+.5) {
			break
		}
		link := ""
		if len(d.edited) < len(links) {
			link = links[len(d.edited)]
		}
		if s.edit(name, link) {
			d.edited = append(d.edited, name)
		}
	}
	if len(d.edited) < len(d.added) {
		return d, fmt.Errorf("cannot make the day's changes: %d pages edited, %d added", len(d.edited), len(d.added))
	}
	if redesign {
		s.template++
		d.look = true
	}
	return d, nil
}

// content returns where a page's own words begin and end.
func content(html string) (from, to int) {
	if _, rest, ok := strings.Cut(html, `<div class="titlepage">`); ok {
		from = len(html) - len(rest)
	}
	if to = strings.LastIndex(html, `<div class="navfooter">`); to < 0 {
		to = strings.LastIndex(html, "</body>")
	}
	return from, max(from, to)
}

var (
	paragraph = regexp.MustCompile(`(?s)<p>[^<]{80,}(?:<(code|em|a|strong|span)\b[^>]*>[^<]*</(code|em|a|strong|span)>[^<]*)*</p>`)
	titled    = regexp.MustCompile(`(?s)<h[12] class="title"[^>]*>(.*?)</h[12]>`)
)

// sentence returns a new, unique sentence.
func (s *manualSite) sentence() string {
	s.made++
	var b strings.Builder
	fmt.Fprintf(&b, " Since revision %d", s.made)
	for range 8 + s.rng.IntN(12) {
		b.WriteString(" " + words[s.rng.IntN(len(words))])
	}
	return b.String() + "."
}

// edit adds a sentence to a paragraph of a page, if it has one.
func (s *manualSite) edit(name, link string) bool {
	html := s.pages[name]
	from, to := content(html)
	places := paragraph.FindAllStringIndex(html[from:to], -1)
	if len(places) == 0 {
		return false
	}
	end := from + places[s.rng.IntN(len(places))][1] - len("</p>")
	s.pages[name] = html[:end] + s.sentence() + link + html[end:]
	return true
}

// add adds a page that looks like the previous page, with paragraphs of three pages.
func (s *manualSite) add(names []string) (name, title, html string) {
	var prose []string
	like := ""
	for _, k := range s.rng.Perm(len(names)) {
		html := s.pages[names[k]]
		from, to := content(html)
		found := paragraph.FindAllString(html[from:to], -1)
		if len(found) < 4 {
			continue
		}
		if like == "" && titled.MatchString(html) {
			like = html
		}
		for range 8 {
			prose = append(prose, found[s.rng.IntN(len(found))])
		}
		if len(prose) >= 24 && like != "" {
			break
		}
	}
	s.made++
	name, title = fmt.Sprintf("added-%d.html", s.made), fmt.Sprintf("Supplement %d: %s", s.made, words[s.rng.IntN(len(words))])
	at := titled.FindStringSubmatchIndex(like)
	_, to := content(like)
	html = like[:at[2]] + title + like[at[3]:at[1]] + "</div></div></div>\n<p>" + s.sentence() + "</p>" + strings.Join(prose, "\n") + "</div>" + like[to:]
	from, rest, _ := strings.Cut(html, "<title>")
	_, rest, _ = strings.Cut(rest, "</title>")
	return name, title, from + "<title>" + title + "</title>" + rest
}

// dress applies the template of the day: the manual's own, then one with a navigation
// bar and other classes, then one with other navigation and a footer.
func (s *manualSite) dress(html string) string {
	if s.template >= 1 {
		html = bodyTag.ReplaceAllString(html, `<body id="docContent" class="site layout-2"><div id="sitebar" class="navbar" role="navigation"><ul>`+
			`<li><a href="index.html">Home</a></li><li><a href="bookindex.html">Index</a></li><li><a href="release.html">Releases</a></li>`+
			`<li><a href="legalnotice.html">Legal notice</a></li></ul></div>`)
	}
	if s.template >= 2 {
		html = strings.NewReplacer(
			`<table width="100%" summary="Navigation header">`, `<table class="pager pager-top" summary="Navigation header">`,
			`<table width="100%" summary="Navigation footer">`, `<table class="pager pager-bottom" summary="Navigation footer">`,
			`>Prev</a>`, ` class="pager-prev">&larr; Previous page</a>`, `>Next</a>`, ` class="pager-next">Next page &rarr;</a>`,
			`</body>`, `<div id="footer" class="footer" role="contentinfo"><p>All content is under the licence of the manual. `+
				`<a href="legalnotice.html">Legal notice</a> | <a href="bookindex.html">Index</a> | <a href="bug-reporting.html">Report a mistake</a></p></div></body>`,
		).Replace(html)
	}
	return html
}

var bodyTag = regexp.MustCompile(`<body[^>]*>`)
