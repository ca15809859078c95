package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
)

// Limits of a sitemap, and the namespace of sitemaps.
const (
	maxSitemapURLs  = 50_000
	maxSitemapBytes = 52_428_800
	maxLoc          = 2048
	sitemapSpace    = "http://www.sitemaps.org/schemas/sitemap/0.9"
)

// seenSitemap is a sitemap or an index.
type seenSitemap struct {
	resp    *check.Response
	size    int
	root    *node  // nil if the document could not be parsed
	why     string // why the document could not be parsed
	text    bool   // whether the sitemap is a list of URLs, one per line
	index   bool
	entries []*node // elements url or sitemap
}

// namedSitemap is a sitemap to which a document refers, and the response to its request.
type namedSitemap struct {
	by, url string // by is the document that names url. If empty, url is the usual path.
	resp    *check.Response
	err     error
}

func seeSitemap(resp *check.Response) *seenSitemap {
	m := &seenSitemap{resp: resp}
	body := resp.Body
	if bytes.HasPrefix(body, []byte("\x1f\x8b")) { // the file itself is compressed
		if z, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
			if plain, err := io.ReadAll(io.LimitReader(z, maxSitemapBytes+1)); err == nil {
				body = plain
			}
		}
	}
	m.size = len(body)
	trimmed := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\uFEFF")), " \t\r\n")
	if bytes.HasPrefix(trimmed, []byte("http")) {
		m.text = true
		return m
	}
	root, err := parseXML(body, maxNodes)
	switch {
	case err != nil:
		m.why = err.Error()
	case root.is(sitemapSpace, "urlset"):
		m.root, m.entries = root, root.all(sitemapSpace, "url")
	case root.is(sitemapSpace, "sitemapindex"):
		m.root, m.entries, m.index = root, root.all(sitemapSpace, "sitemap"), true
	default:
		m.why = fmt.Sprintf("root element <%s> in namespace %q", root.name.Local, root.name.Space)
	}
	return m
}

// locs returns the URLs of the entries.
func (m *seenSitemap) locs() (out []string) {
	for _, e := range m.entries {
		if loc := e.all(sitemapSpace, "loc"); len(loc) == 1 {
			out = append(out, loc[0].text)
		}
	}
	return out
}

func (m *seenSitemap) children() []string {
	if !m.index {
		return nil
	}
	return m.locs()
}

func (m *seenSitemap) pages() []string {
	if m.index {
		return nil
	}
	return m.locs()
}

func checkSitemapXML(m *seenSitemap, fail check.Fail) {
	if m.root == nil && !m.text {
		fail(m.resp.URL, m.why, "urlset or sitemapindex of "+sitemapSpace)
	}
}

func checkLoc(m *seenSitemap, fail check.Fail) {
	for _, e := range m.entries {
		loc := e.all(sitemapSpace, "loc")
		if len(loc) != 1 {
			fail(m.resp.URL, fmt.Sprintf("line %d: %d loc elements", e.line, len(loc)), "one")
			continue
		}
		u, err := url.Parse(loc[0].text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(loc[0].text) >= maxLoc {
			fail(m.resp.URL, fmt.Sprintf("line %d: loc %q", loc[0].line, kit.Short(loc[0].text)), "an absolute URL of fewer than 2,048 characters")
		}
	}
}

// each calls f for every child of the entries with the given name.
func (m *seenSitemap) each(name string, f func(n *node)) {
	for _, e := range m.entries {
		for _, n := range e.all(sitemapSpace, name) {
			f(n)
		}
	}
}

// w3cDate matches the format of the W3C's note on date and time, with at least a year.
var w3cDate = regexp.MustCompile(`^\d{4}(-\d\d(-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?)?)?$`)

func isW3CDate(s string) bool {
	if !w3cDate.MatchString(s) {
		return false
	}
	for _, layout := range []string{"2006", "2006-01", time.DateOnly, "2006-01-02T15:04Z07:00", time.RFC3339} {
		if _, err := time.Parse(layout, s); err == nil {
			return true
		}
	}
	return false
}

func checkLastmod(m *seenSitemap, fail check.Fail) {
	m.each("lastmod", func(n *node) {
		if !isW3CDate(n.text) {
			fail(m.resp.URL, fmt.Sprintf("line %d: lastmod %q", n.line, kit.Short(n.text)), "a date such as 2026-01-02, or a time such as 2026-01-02T03:04:05Z")
		}
	})
}

func checkChangeFreq(m *seenSitemap, fail check.Fail) {
	m.each("changefreq", func(n *node) {
		switch n.text {
		case "always", "hourly", "daily", "weekly", "monthly", "yearly", "never":
		default:
			fail(m.resp.URL, fmt.Sprintf("line %d: changefreq %q", n.line, kit.Short(n.text)), "always, hourly, daily, weekly, monthly, yearly or never")
		}
	})
}

func checkPriority(m *seenSitemap, fail check.Fail) {
	m.each("priority", func(n *node) {
		if p, err := strconv.ParseFloat(n.text, 64); err != nil || !(p >= 0 && p <= 1) {
			fail(m.resp.URL, fmt.Sprintf("line %d: priority %q", n.line, kit.Short(n.text)), "a number from 0.0 to 1.0")
		}
	})
}

func checkSitemapLimits(m *seenSitemap, fail check.Fail) {
	if len(m.entries) > maxSitemapURLs || m.size > maxSitemapBytes {
		fail(m.resp.URL, fmt.Sprintf("%d entries, %d bytes", len(m.entries), m.size), "50,000 entries and 52,428,800 bytes at most")
	}
}

// checkSitemapHost checks that the pages of a sitemap are on its host and below its folder.
func checkSitemapHost(m *seenSitemap, fail check.Fail) {
	at, err := canon.URL(m.resp.URL)
	if err != nil || m.index {
		return
	}
	folder := at[:strings.LastIndexByte(at, '/')+1]
	for _, loc := range m.locs() {
		if u, err := canon.URL(loc); err == nil && !strings.HasPrefix(u, folder) {
			fail(m.resp.URL, u, "a page below "+folder)
		}
	}
}

func checkPagesThere(_ context.Context, s *siteContext, fail check.Fail) error {
	for _, r := range s.failed {
		fail(r.URL, r.StatusText(), "200 OK, or no entry in a sitemap")
	}
	return check.Applied(len(s.sitemaps) > 0)
}

func checkSitemapsThere(_ context.Context, s *siteContext, fail check.Fail) error {
	applies := false
	var closed error
	for _, n := range s.named {
		if n.by == "" {
			continue
		}
		applies = true
		switch {
		case n.err != nil:
			fail(n.by, n.url+": "+n.err.Error(), "a sitemap")
		case needsKey(n.resp) != nil:
			closed = needsKey(n.resp)
		case n.resp.Status != http.StatusOK:
			fail(n.by, n.url+" returns "+n.resp.StatusText(), "a sitemap")
		}
	}
	if !applies {
		return check.ErrNotApplicable
	}
	return closed
}
