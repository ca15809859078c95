package extract

import (
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// Names of meta elements with dates, the most reliable first.
var (
	publishedNames = []string{
		"article:published_time", "og:article:published_time", "og:published_time", "article:published", "datepublished", "published-date", "published_date", "published",
		"publish-date", "publish_date", "publishdate", "pubdate", "pub_date", "publication_date", "dc.date.issued", "dcterms.issued", "dcterms.created", "dc.date.created",
		"citation_publication_date", "citation_online_date", "citation_date", "parsely-pub-date", "sailthru.date", "release_date",
	}
	modifiedNames = []string{
		"article:modified_time", "og:updated_time", "og:article:modified_time", "article:modified", "datemodified", "dcterms.modified", "dc.date.modified",
		"modified-time", "modified_time", "last-modified", "lastmod", "updated", "last-updated", "revised",
	}
)

// maxTries is the maximum number of candidate elements that are examined.
const maxTries = 100

// claim is a date with its source.
type claim struct {
	time.Time
	source string
}

// dates sets the publication date and the modification date. Declared dates take precedence over
// dates shown near the title. If the declared publication date equals the modification date, and
// the page shows a clearly earlier date, dates uses the shown date. It never uses a modification
// date as the publication date.
func (m *meta) dates() {
	declared, modified := m.declaredDate("datePublished", publishedNames, true), m.declaredDate("dateModified", modifiedNames, false)
	published, changed := m.visibleDates()
	if m.isHome() {
		published = claim{} // the dates belong to pages that the home page links to
	}
	var lone claim
	if published.IsZero() && !m.isHome() && (m.guess == millrace.Article || m.guess == millrace.Collection || m.guess == "") {
		published, lone = m.loneDates()
	}
	switch {
	case declared.IsZero(),
		// If the declared date equals the modification date, and the page shows an earlier day, the
		// declared date is the time at which the site was built.
		sameDay(declared.Time, modified.Time) && isBefore(published, declared),
		// In the site's time zone, the declared time is on a different day than in UTC.
		!onDay(declared, published) && inUTC(declared.Date()).Equal(inUTC(published.Date())):
		declared = published
	}
	if declared.IsZero() && (m.guess == millrace.Article || m.guess == "") {
		if declared = m.urlDate(); declared.IsZero() && changed.IsZero() {
			declared = lone
		}
	}
	if m.page.Published = declared.UTC(); !declared.IsZero() {
		m.res.Sources["published"] = declared.source
	}
	if modified.IsZero() {
		modified = changed
	}
	if m.page.Modified = modified.UTC(); !modified.IsZero() {
		m.page.Known |= millrace.FieldModified
		m.res.Sources["modified"] = modified.source
	}
}

// sameDay reports whether two times are less than 36 hours apart, so they may denote the same day in
// different time zones.
func sameDay(a, b time.Time) bool {
	return !a.IsZero() && !b.IsZero() && a.Sub(b).Abs() < 36*time.Hour
}

// isBefore reports whether a is set and b is at least 36 hours later.
func isBefore(a, b claim) bool { return !a.IsZero() && b.Sub(a.Time) >= 36*time.Hour }

// onDay reports whether two times are on the same day in UTC.
func onDay(a, b claim) bool {
	const day = 24 * time.Hour
	return a.Truncate(day).Equal(b.Truncate(day))
}

func inUTC(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }

// declaredDate returns the date that the page's metadata declares. If sure is set, it returns only
// a date of an article, because generators date home pages and documentation by their build time.
func (m *meta) declaredDate(key string, names []string, sure bool) claim {
	for i := range m.ldObjects {
		t := &m.ldObjects[i]
		if r := rank(t); r == 1 || r > 2 || r == 0 && m.foreign || r > 0 && sure {
			continue
		}
		if v, ok := parseTime(t.text(key)); ok {
			return claim{v, "json-ld " + key}
		}
	}
	if !sure || m.url.Path != "/" && (m.guess == millrace.Article || m.guess == millrace.Forum || m.guess == "") {
		for _, n := range names {
			if t := m.namedTime(n); !t.IsZero() {
				return claim{t, "meta " + n}
			}
		}
	}
	tries := 0
	for _, n := range m.c.props {
		if tries > maxTries || !hasToken(attr(n, "itemprop"), key) {
			continue
		}
		if tries++; inComments(n, 8) || m.inCard(n, plainText(n)) {
			continue
		}
		for _, v := range []string{attr(n, "datetime"), attr(n, "content"), plainText(n)} {
			if t, ok := parseTime(v); ok {
				return claim{t, "itemprop " + key}
			}
		}
	}
	return claim{}
}

func (m *meta) namedTime(name string) time.Time {
	for _, v := range m.named[name] {
		if t, ok := parseTime(v); ok {
			return t
		}
	}
	return time.Time{}
}

// urlDate returns the day in the page's URL, in the forms that blogs and newspapers use:
// /2006/01/02/name and /2006/jan/02/name.
func (m *meta) urlDate() claim {
	parts := strings.Split(strings.Trim(m.url.Path, "/"), "/")
	for i := 0; i+3 < len(parts); i++ {
		y, mo, d := parts[i], parts[i+1], parts[i+2]
		if len(y) != 4 || len(d) != 2 {
			continue
		}
		text := y + "-" + mo + "-" + d
		if len(mo) > 2 {
			text = d + " " + mo + " " + y
		}
		if f, ok := findDate(text, 0, ""); ok && f.start == 0 && f.end == len(text) {
			return claim{f.day, "url"}
		}
	}
	return claim{}
}

// isHome reports whether the page is the front page of a site.
func (m *meta) isHome() bool { return m.url.Path == "/" && m.guess != millrace.Article }
