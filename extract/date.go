package extract

import (
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

func (m *meta) dates() {
	var source string
	pick := func(key string, names ...string) time.Time {
		for i := range m.things {
			if rank(&m.things[i]) > 2 || rank(&m.things[i]) == 1 {
				continue
			}
			if t, ok := parseTime(m.things[i].text(key)); ok {
				source = "json-ld " + key
				return t
			}
		}
		for _, n := range names {
			for _, v := range m.named[n] {
				if t, ok := parseTime(v); ok {
					source = "meta " + n
					return t
				}
			}
		}
		for _, n := range m.c.props {
			if hasToken(attr(n, "itemprop"), key) {
				for _, v := range []string{attr(n, "datetime"), attr(n, "content"), plainText(n)} {
					if t, ok := parseTime(v); ok {
						source = "itemprop " + key
						return t
					}
				}
			}
		}
		return time.Time{}
	}
	m.page.Published = pick("datePublished", "article:published_time", "og:article:published_time", "datepublished", "dc.date.issued", "dcterms.created",
		"citation_publication_date", "parsely-pub-date", "sailthru.date", "pubdate", "publish-date", "publish_date", "date", "dc.date")
	if m.page.Published.IsZero() {
		if t, ok := m.nearTitle(); ok {
			m.page.Published, source = t, "time"
		}
	}
	if !m.page.Published.IsZero() {
		m.res.Sources["published"] = source
	}
	m.page.Modified = pick("dateModified", "article:modified_time", "og:updated_time", "og:article:modified_time", "datemodified", "dcterms.modified", "last-modified")
	if !m.page.Modified.IsZero() {
		m.page.Known |= millrace.FieldModified
		m.res.Sources["modified"] = source
	}
}

// titleBlock gives the element around the page's title in which a byline and a
// date are expected, nil if there is no title on the page.
func (m *meta) titleBlock() *html.Node {
	top := m.c.titleNode
	if top == nil {
		return nil
	}
	for steps := 0; steps < 4 && top.Parent != nil && top.Parent.DataAtom != atom.Body; steps++ {
		top = top.Parent
		if top.DataAtom == atom.Article || top.DataAtom == atom.Main {
			break
		}
	}
	return top
}

// nearTitle gives the time that stands with the page's title.
func (m *meta) nearTitle() (time.Time, bool) {
	top := m.titleBlock()
	if top == nil {
		return time.Time{}, false
	}
	for _, n := range m.c.times {
		if !isAncestor(top, n) {
			continue
		}
		v := attr(n, "datetime")
		if v == "" {
			v = plainText(n)
		}
		if t, ok := parseTime(v); ok {
			return t, true
		}
		break // the first one counts
	}
	return time.Time{}, false
}

var layouts = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 MST",
	"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", "2006/01/02", "January 2, 2006", "Jan 2, 2006", "Jan. 2, 2006", "2 January 2006", "2 Jan 2006",
	time.RFC1123, time.RFC1123Z, "January 2, 2006 3:04 pm", "January 2, 2006 15:04", "20060102",
}

// parseTime reads a date as pages write it. A year alone is none.
func parseTime(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if len(s) < 8 || len(s) > 60 {
		return time.Time{}, false
	}
	for _, l := range layouts {
		if t, err := time.Parse(l, s); err == nil && t.Year() >= 1980 && t.Year() < 2200 {
			return t.UTC().Truncate(time.Second), true
		}
	}
	return time.Time{}, false
}
