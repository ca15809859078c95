package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// month measures mirrors of PostgreSQL's manual.
func (b *bench) month(ctx context.Context, short bool) error {
	manual, err := filepath.EvalSymlinks(b.manual)
	if err != nil {
		return fmt.Errorf("%w; install Debian's postgresql-doc-15, or give its folder with -manual", err)
	}
	m := &month{bench: b, name: "the manual", as: "folder", days: monthDays}
	redesigns := []int{10, 20}
	if short {
		m.days, redesigns = 4, []int{2, 3}
	}
	if m.site, err = newManualSite(manual, redesigns); err != nil {
		return err
	}
	return m.run(ctx)
}

// manualSite is the PostgreSQL manual as a changing site. Every day some of its pages are
// edited, and a few are added and removed. From time to time the template changes. The changes
// depend only on the seed of rng.
type manualSite struct {
	rng       *rand.Rand
	pages     map[string]string // HTML without the template, by file name
	redesigns []int             // days on which the template changes
	template  int               // number of the current template
	made      int               // number of pages and sentences created so far
	owed      [2]float64        // numbers of pages still to add and to remove, including fractions
}

func newManualSite(manual string, redesigns []int) (*manualSite, error) {
	s := &manualSite{rng: rand.New(rand.NewPCG(15, 30)), pages: map[string]string{}, redesigns: redesigns}
	files, err := filepath.Glob(filepath.Join(manual, "*.html"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s has no pages; install Debian's postgresql-doc-15, or give its folder with -manual", manual)
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
	return s, nil
}

func (s *manualSite) state() (siteState, error) {
	shown := make(map[string]string, len(s.pages))
	for name, html := range s.pages {
		shown[name] = s.applyTemplate(html)
	}
	return siteState{files: shown, html: shown, words: maps.Clone(s.pages)}, nil
}

// Shares of the pages that change in one day.
const (
	editedADay  = 0.01
	addedADay   = 0.002
	removedADay = 0.001
)

// next makes the changes of one day. On the days in redesigns, the template also changes.
func (s *manualSite) next(day int) (d monthDay, err error) {
	n := len(s.pages)
	names := slices.Sorted(maps.Keys(s.pages))
	s.rng.Shuffle(n, func(i, k int) { names[i], names[k] = names[k], names[i] })
	s.owed[0] += float64(n) * addedADay
	s.owed[1] += float64(n) * removedADay
	for ; s.owed[1] >= 1; s.owed[1]-- {
		// Do not remove pages with links to added pages, so that a crawler finds all pages.
		i := slices.IndexFunc(names, func(name string) bool {
			return name != "index.html" && name != "bookindex.html" && !strings.Contains(s.pages[name], `class="toc"`) && !strings.HasPrefix(name, "added-")
		})
		d.removed = append(d.removed, names[i])
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
		return d, fmt.Errorf("cannot make the changes of the day: %d pages edited, %d added", len(d.edited), len(d.added))
	}
	if slices.Contains(s.redesigns, day) {
		s.template++
		d.look = true
	}
	return d, nil
}

// content returns the offsets at which a page's own words begin and end.
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

// edit adds a sentence and a link to a long paragraph of a page. It reports whether the page has one.
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

// add returns a new page with the layout of an existing page, and paragraphs of at least three pages.
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

// applyTemplate applies the template of the day: the manual's own, then one with a navigation
// bar and other classes, then one with other navigation and a footer.
func (s *manualSite) applyTemplate(html string) string {
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
			`</body>`, `<div id="footer" class="footer" role="contentinfo"><p>All content is under the license of the manual. `+
				`<a href="legalnotice.html">Legal notice</a> | <a href="bookindex.html">Index</a> | <a href="bug-reporting.html">Report a mistake</a></p></div></body>`,
		).Replace(html)
	}
	return html
}

var bodyTag = regexp.MustCompile(`<body[^>]*>`)
