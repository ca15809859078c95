package gateway

import (
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/fetch"
)

// maxRobots is how much of a site's own robots.txt is passed on: as much as
// crawlers read (RFC 9309, section 2.5).
const maxRobots = 512 << 10

// robotsLines gives the lines that the rooms want in a robots.txt with a text. A
// comment permits what rules refuse, so a room whose documents the text still
// refuses, by a rule about them, has none.
func (g *Gateway) robotsLines(ed *edition.Edition, text string) []string {
	var lines []string
	robots := fetch.ParseRobots([]byte(text), "")
	for _, n := range ed.Advertisements {
		refused := slices.ContainsFunc(n.Allow, func(p string) bool { return !robots.Allowed(g.docs + p) })
		lines = append(lines, slices.DeleteFunc(slices.Clone(n.Robots), func(line string) bool { return refused && strings.HasPrefix(line, "#") })...)
	}
	return lines
}

// robots answers with the site's own robots.txt, or with one that disallows
// nothing if it has none: with what the policy says in each of its groups, with
// what lets machines at the documents of the protocols (see allowing), and with
// the lines that the rooms want in it. It reports false when there is
// nothing to add: then the site answers by itself.
func (g *Gateway) robots(w *response, r *http.Request, ed *edition.Edition) bool {
	patterns := g.patterns(ed)
	if len(g.robotsLines(ed, ""))+len(patterns) == 0 && g.usage == nil {
		return false
	}
	text := ""
	own := g.ownAt(r, robotsPath, maxRobots)
	// Some sites answer with a page to whatever is asked for.
	page := own.status == http.StatusOK && strings.HasPrefix(http.DetectContentType(own.body.Bytes()), "text/html")
	switch {
	case own.missing() || page:
		if g.usage == nil {
			text = "User-agent: *\nDisallow:\n"
		}
	case own.status == http.StatusOK && !own.cut:
		text = strings.TrimPrefix(own.body.String(), "\uFEFF")
	default:
		return false // whatever is the matter, it is the site's to say
	}
	if g.usage != nil {
		text = g.usage.govern(text)
	}
	text = g.usage.allowing(text, patterns)
	lines := g.robotsLines(ed, text)
	if g.origin != nil && g.docs == g.base {
		lines = append(lines, g.mapOf(ed, r).lines(g, r)...)
	}
	small(w, r, "text/plain; charset=utf-8", "max-age=3600", []byte(withLines(text, lines)))
	return true
}

// withLines adds the lines that are not there yet. A License line that stands
// for the whole site stands before all groups (RSL 1.0, section 4.4.2).
func withLines(text string, lines []string) string {
	have := strings.FieldsFunc(text, func(c rune) bool { return c == '\n' || c == '\r' })
	for i := range have {
		have[i] = strings.TrimSpace(have[i])
	}
	var before, after []string
	for _, line := range lines {
		switch {
		case slices.Contains(have, line):
			continue
		case strings.HasPrefix(line, "License:"):
			before = append(before, line)
		default:
			after = append(after, line)
		}
		have = append(have, line)
	}
	if before != nil {
		text = strings.Join(before, "\n") + "\n\n" + text
	}
	if after != nil {
		text = strings.TrimRight(text, "\r\n") + "\n\n" + strings.Join(after, "\n") + "\n"
	}
	return text
}
