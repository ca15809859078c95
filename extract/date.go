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
	// unclearNames do not specify what their date means.
	unclearNames = []string{"date", "dc.date", "dcterms.date"}
)

// maxTries is the maximum number of candidate elements that are examined.
const maxTries = 100

// claim is a date with its source.
type claim struct {
	time.Time
	source string
}

// dates sets when the page was published and last changed. Declared dates take precedence over
// dates shown near the title. If the declared date equals that of the last change and the page
// shows a clearly earlier one, dates uses the shown date. It never uses a date of change as
// the date of publication.
func (m *meta) dates() {
	declared, weak := m.declaredDate("datePublished", publishedNames)
	modified, weakModified := m.declaredDate("dateModified", modifiedNames)
	if modified.IsZero() {
		modified = weakModified
	}
	published, changed := m.visibleDates()
	if m.isHome() {
		published = claim{}
	}
	var lone claim
	if published.IsZero() && m.mayBeDated() && (declared.IsZero() || sameDay(declared.Time, modified.Time)) {
		published, lone = m.loneDates()
	}
	if weak.IsZero() {
		for _, n := range unclearNames {
			if t := m.namedTime(n); weak.IsZero() && !t.IsZero() {
				weak = claim{t, "meta " + n}
			}
		}
	}
	switch {
	case !declared.IsZero() && sameDay(declared.Time, modified.Time) && isBefore(published, declared):
		// If the publication date equals the last change and the page shows an earlier day, it
		// is the time when the site was built.
		declared = published
	case declared.IsZero() && !published.IsZero():
		declared = published
		if sameDay(weak.Time, published.Time) {
			declared = weak // weak includes the time of day
		}
	case declared.IsZero() && m.guess != millrace.Documentation && !m.publishedMeta().IsZero():
		declared = m.publishedMeta()
	case declared.IsZero() && sameDay(weak.Time, changed.Time):
		if declared = weak; modified.IsZero() || sameDay(modified.Time, changed.Time) {
			declared, weak = claim{}, claim{}
		} // otherwise the last change was on another day: some themes label every date "updated"
	default:
		declared = m.agreed(declared, published)
	}
	if declared.IsZero() && m.datesCount() {
		declared = weak
	}
	if declared.IsZero() && (m.guess == millrace.Article || m.guess == "") {
		if declared = m.urlDate(); declared.IsZero() && changed.IsZero() {
			declared = lone
		}
	}
	if m.page.Published = declared.Time; !declared.IsZero() {
		m.res.Sources["published"] = declared.source
	}
	if modified.IsZero() {
		modified = changed
	}
	if m.page.Modified = modified.Time; !modified.IsZero() {
		m.page.Known |= millrace.FieldModified
		m.res.Sources["modified"] = modified.source
	}
}

// sameDay reports whether two times can be the same day in some time zone.
func sameDay(a, b time.Time) bool {
	return !a.IsZero() && !b.IsZero() && a.Sub(b).Abs() < 36*time.Hour
}

// isBefore reports whether a is set and b is at least 36 hours later.
func isBefore(a, b claim) bool { return !a.IsZero() && b.Sub(a.Time) >= 36*time.Hour }

// agreed returns the declared date of publication. If the page shows a date less than 36 hours
// away but on another day, agreed returns another declared date that is on the shown day, if
// there is one.
func (m *meta) agreed(declared, visible claim) claim {
	if !sameDay(declared.Time, visible.Time) || onDay(declared, visible) {
		return declared
	}
	for _, n := range publishedNames {
		if c := (claim{m.namedTime(n), "meta " + n}); onDay(c, visible) {
			return c
		}
	}
	return declared
}

// onDay reports whether two times are of one day in UTC.
func onDay(a, b claim) bool {
	const day = 24 * time.Hour
	return a.Truncate(day).Equal(b.Truncate(day))
}

// mayBeDated reports whether a date far from the title may be the page's own. It is false for
// manuals, threads, products and lists.
func (m *meta) mayBeDated() bool {
	return (m.guess == millrace.Article || m.guess == millrace.Collection || m.guess == "") && !m.isHome()
}

// datesCount reports whether a declared date that the page does not show may be its
// publication date: true for a text that is published once. On other pages, such a date is the
// time when the page was created in a CMS.
func (m *meta) datesCount() bool {
	if m.guess != millrace.Article && m.guess != millrace.Forum && m.guess != "" {
		return false
	}
	for i := range m.things {
		if m.things[i].isArticle() {
			return true
		}
	}
	return false
}

// declaredDate returns the dates that the page's metadata declares: a sure one and a weak one.
// A date is weak if it does not belong to an article, or if it is of a home page or of
// documentation, which generators date by build time.
func (m *meta) declaredDate(key string, names []string) (sure, weak claim) {
	for i := range m.things {
		t := &m.things[i]
		if rank(t) == 1 || rank(t) > 2 || rank(t) == 0 && m.foreign {
			continue
		}
		v, ok := parseTime(t.text(key))
		if !ok {
			continue
		}
		c := claim{v, "json-ld " + key}
		if rank(t) == 0 {
			return c, weak
		}
		if weak.IsZero() {
			weak = c
		}
	}
	for _, n := range names {
		if t := m.namedTime(n); !t.IsZero() {
			c := claim{t, "meta " + n}
			if m.guess != millrace.Documentation && m.url.Path != "/" && (m.guess == millrace.Article || m.guess == millrace.Forum || m.guess == "" || m.page.Author != "") {
				return c, weak
			}
			if weak.IsZero() {
				weak = c
			}
		}
	}
	tries := 0
	for _, n := range m.c.props {
		if !hasToken(attr(n, "itemprop"), key) {
			continue
		}
		if tries++; tries > maxTries {
			break
		}
		if inComments(n, 8) || m.inCard(n, plainText(n)) {
			continue
		}
		for _, v := range []string{attr(n, "datetime"), attr(n, "content"), plainText(n)} {
			if t, ok := parseTime(v); ok {
				return claim{t, "itemprop " + key}, weak
			}
		}
	}
	return claim{}, weak
}

// publishedMeta returns the first date of a meta element with a nonstandard name that means
// publication.
func (m *meta) publishedMeta() claim {
	for _, e := range m.c.heads {
		name := strings.ToLower(attr(e, "name"))
		if !strings.Contains(name, "publish") || !strings.Contains(name, "date") && !strings.Contains(name, "time") {
			continue
		}
		if t, ok := parseTime(attr(e, "content")); ok {
			return claim{t, "meta " + name}
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

// urlDate returns the day in the address, in the form that blogs and newspapers use:
// /2006/01/02/name or /2006/jan/02/name.
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

// isHome reports whether the page is the front page of a site. The dates that it shows belong
// to the pages that it links to.
func (m *meta) isHome() bool { return m.url.Path == "/" && m.guess != millrace.Article }
