package sites

import (
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/fetch"
)

// maxRobots is how much of a site's own robots.txt is passed on: as much as
// crawlers read (RFC 9309, section 2.5).
const maxRobots = 512 << 10

// robotsLines returns the lines that the protocols want in a robots.txt with a
// text. A comment permits what rules refuse, so a protocol whose documents the text
// still refuses, by a rule about them, has none.
func (d *Documents) robotsLines(ed *edition.Edition, text string) []string {
	var lines []string
	file := fetch.ParseRobots([]byte(text), "")
	for _, n := range ed.Advertisements {
		refused := slices.ContainsFunc(n.Allow, func(p string) bool { return !file.Allowed(d.docs + p) })
		lines = append(lines, slices.DeleteFunc(slices.Clone(n.Robots), func(line string) bool { return refused && strings.HasPrefix(line, "#") })...)
	}
	return lines
}

// robots answers with the site's own robots.txt, or with one that disallows
// nothing if it has none: with what the policy says in each of its groups, with
// what lets machines at the documents of the protocols (see allowing), and with
// the lines that the protocols want in it. It reports false when there is
// nothing to add: then the site answers by itself.
func (d *Documents) robots(w *response, r *http.Request, ed *edition.Edition) (bool, error) {
	patterns := d.patterns(ed)
	if len(d.robotsLines(ed, ""))+len(patterns) == 0 && d.o.Robots == nil {
		return false, nil
	}
	text := ""
	own := d.ownAt(r, RobotsPath, maxRobots)
	// Some sites answer with a page to whatever is asked for.
	page := own.Status == http.StatusOK && strings.HasPrefix(http.DetectContentType(own.Body.Bytes()), "text/html")
	switch {
	case own.Missing() || page:
		if d.o.Robots == nil {
			text = "User-agent: *\nDisallow:\n"
		}
	case own.Status == http.StatusOK && !own.Cut:
		text = strings.TrimPrefix(own.Body.String(), "\uFEFF")
	default:
		return false, nil // the site answers by itself
	}
	text = d.o.Robots.Allow(d.o.Robots.Write(text), patterns)
	lines := d.robotsLines(ed, text)
	if d.o.Origin != nil && d.docs == d.o.Base {
		lines = append(lines, d.mapOf(ed, r).lines(d, r)...)
	}
	return w.small(r, "text/plain; charset=utf-8", "max-age=3600", []byte(withLines(text, lines)))
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

// patterns returns the patterns of what the protocols' clients fetch, as paths of
// the host.
func (d *Documents) patterns(ed *edition.Edition) (patterns []string) {
	if d.o.Policy.Refuses(millrace.AIInput) && d.o.Policy.Refuses(millrace.AITrain) {
		return nil
	}
	for _, n := range ed.Advertisements {
		for _, p := range n.Allow {
			patterns = append(patterns, d.docs+p)
		}
	}
	if patterns != nil {
		patterns = append(patterns, catalogPath)
	}
	slices.Sort(patterns)
	return slices.Compact(patterns)
}
