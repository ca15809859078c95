package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace/internal/canon"
)

// Link is the target of a link in a document.
type Link struct {
	URL string // absolute and canonical, http or https, without a fragment
	// NoFollow is set if every link to URL has rel=nofollow, ugc or sponsored.
	NoFollow bool
}

const (
	maxLinks = 10_000 // maximum number of links per document
	maxFeeds = 100    // maximum number of feeds per document
)

// product is the name of this program in robots directives.
const product = "millrace"

// reference is one distinct link target before it is resolved.
type reference struct {
	url      string
	noFollow bool
}

// refer records the link target of an element.
func (c *collected) refer(n *html.Node, key string) {
	target, noFollow := "", false
	for i := range n.Attr {
		switch a := &n.Attr[i]; {
		case a.Key == key && a.Namespace == "":
			target, _, _ = strings.Cut(strings.TrimSpace(a.Val), "#")
		case a.Key == "rel":
			noFollow = hasToken(a.Val, "nofollow") || hasToken(a.Val, "ugc") || hasToken(a.Val, "sponsored")
		case a.Key == "download":
			return
		}
	}
	c.addReference(target, noFollow)
}

// addReference records a target, unless it is empty: the document itself.
func (c *collected) addReference(target string, noFollow bool) {
	if target == "" {
		return
	}
	if at, ok := c.referred[target]; ok {
		c.references[at].noFollow = c.references[at].noFollow && noFollow
		return
	}
	if len(c.references) >= 2*maxLinks { // not all of them are valid page URLs
		return
	}
	if c.referred == nil {
		c.referred = map[string]int{}
	}
	c.referred[target] = len(c.references)
	c.references = append(c.references, reference{target, noFollow})
}

// recordHidden records the links and the password fields of a subtree whose text is not part of the
// page.
func (c *collected) recordHidden(n *html.Node) {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Noframes, atom.Noembed, atom.Iframe, atom.Title, atom.Textarea:
		return
	case atom.A, atom.Area:
		c.refer(n, "href")
	case atom.Frame:
		c.refer(n, "src")
	case atom.Input:
		if len(c.passwords) < 8 && strings.EqualFold(attr(n, "type"), "password") && attr(n, "autocomplete") != "new-password" {
			c.passwords = append(c.passwords, n)
		}
	}
	for e := range children(n) {
		c.recordHidden(e)
	}
}

// links resolves the recorded references.
func (m *meta) links() {
	seen := make(map[string]int, len(m.c.references))
	for _, r := range m.c.references {
		abs, err := canon.Resolve(m.base, r.url)
		if err != nil {
			continue // another scheme, or not a URL
		}
		if at, ok := seen[abs]; ok {
			m.res.Links[at].NoFollow = m.res.Links[at].NoFollow && r.noFollow
			continue
		}
		if len(m.res.Links) == maxLinks {
			continue
		}
		seen[abs] = len(m.res.Links)
		m.res.Links = append(m.res.Links, Link{URL: abs, NoFollow: r.noFollow})
	}
}

// feed records a link element that declares a feed.
func (m *meta) feed(e *html.Node) {
	mediaType, _, _ := strings.Cut(attr(e, "type"), ";")
	switch strings.ToLower(strings.TrimSpace(mediaType)) {
	case "application/rss+xml", "application/atom+xml", "application/feed+json":
	default:
		return
	}
	abs, err := canon.Resolve(m.base, attr(e, "href"))
	if err != nil || strings.TrimSpace(attr(e, "href")) == "" || len(m.res.Feeds) == maxFeeds {
		return
	}
	for _, f := range m.res.Feeds {
		if f == abs {
			return
		}
	}
	m.res.Feeds = append(m.res.Feeds, abs)
}

// robots reads the robots directives of the document and of its HTTP header. They are cumulative: a
// directive cannot allow what another one forbids.
func (m *meta) robots(header []string) {
	for _, from := range []struct {
		source string
		values []string
	}{
		{"meta robots", m.named["robots"]},
		{"meta " + product, m.named[product]},
		{"X-Robots-Tag", header},
	} {
		for _, v := range from.values {
			noIndex, noFollow := directives(v)
			m.res.NoFollow = m.res.NoFollow || noFollow
			if noIndex && !m.page.Access.NoIndex {
				m.page.Access.NoIndex = true
				m.res.Sources["access"] = from.source
			}
		}
	}
}

// directives parses the value of a robots meta element or X-Robots-Tag header: words separated by
// commas, some with a value after a colon. The name of the robot for which they are meant may
// precede them.
func directives(value string) (noIndex, noFollow bool) {
	ours := true
	for part := range strings.SplitSeq(strings.ToLower(value), ",") {
		if name, rest, ok := strings.Cut(part, ":"); ok {
			switch name = strings.TrimSpace(name); name {
			case "max-snippet", "max-image-preview", "max-video-preview", "unavailable_after":
				continue
			}
			ours, part = name == product || name == "robots" || name == "*", rest
		}
		if !ours {
			continue
		}
		for word := range strings.FieldsFuncSeq(part, func(r rune) bool { return r <= ' ' || r == ';' }) {
			noIndex = noIndex || word == "noindex" || word == "none"
			noFollow = noFollow || word == "nofollow" || word == "none"
		}
	}
	return noIndex, noFollow
}

// refresh records the target of a meta refresh within ten seconds, unless it is the page itself. A
// refresh inside noscript is ignored.
func (m *meta) refresh(e *html.Node) {
	if m.res.Refresh != "" || e.Parent != nil && e.Parent.DataAtom == atom.Noscript {
		return
	}
	content := attr(e, "content")
	i := strings.IndexAny(content, ";,")
	if i < 0 {
		return
	}
	delay, _, _ := strings.Cut(strings.TrimSpace(content[:i]), ".")
	target := strings.TrimSpace(content[i+1:])
	if len(target) > 3 && strings.EqualFold(target[:3], "url") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(target[3:]), "="); ok {
			target = rest
		}
	}
	if target = strings.Trim(target, " \t\n\r'\""); target == "" || len(delay) != 1 || !isDigits(delay) {
		return
	}
	if abs, err := canon.Resolve(m.base, target); err == nil && abs != m.url.String() {
		m.res.Refresh = abs
		m.c.addReference(abs, false)
	}
}
