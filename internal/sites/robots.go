package sites

import (
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/fetch"
)

// maxRobots is the maximum size in bytes of a site's own robots.txt: the part that crawlers
// read (RFC 9309, section 2.5).
const maxRobots = 512 << 10

// robotsLines returns the lines that the protocols add to a robots.txt. If the text disallows the
// documents of a protocol, robotsLines omits the comments of that protocol, because they must not
// permit what the site disallows.
func (d *Documents) robotsLines(ed *edition.Edition, text string) []string {
	var lines []string
	file := fetch.ParseRobots([]byte(text), "")
	for _, n := range ed.Advertisements {
		for _, l := range n.Root {
			if d.o.Lines.License && l.Rel == "license" {
				lines = append(lines, "License: "+l.URL)
			}
		}
		refused := slices.ContainsFunc(n.Allow, func(p string) bool { return !file.Allowed(d.endpoints + p) })
		lines = append(lines, slices.DeleteFunc(slices.Clone(n.Robots), func(line string) bool { return refused && strings.HasPrefix(line, "#") })...)
	}
	return lines
}

// robots serves the site's own robots.txt, or one that disallows nothing. It adds the policy to
// each group, allows the documents of the protocols (see [policy.Robots.Allow]), and adds the lines
// of the protocols. If there is nothing to add, it returns false, and the site serves its own file.
func (d *Documents) robots(w *response, r *http.Request, ed *edition.Edition) (bool, error) {
	patterns := d.patterns(ed)
	if len(d.robotsLines(ed, ""))+len(patterns) == 0 && d.o.Robots == nil {
		return false, nil
	}
	text := ""
	own := d.ownAt(r, RobotsPath, maxRobots)
	// Ignore HTML, because some sites send a page for every path.
	page := own.Status == http.StatusOK && strings.HasPrefix(http.DetectContentType(own.Body.Bytes()), "text/html")
	switch {
	case own.Missing() || page:
		if d.o.Robots == nil {
			text = "User-agent: *\nDisallow:\n"
		}
	case own.Status == http.StatusOK && !own.Cut:
		text = strings.TrimPrefix(own.Body.String(), "\uFEFF")
	default:
		return false, nil // the site serves its own file
	}
	text = d.o.Robots.Allow(d.o.Robots.Write(text), patterns)
	lines := d.robotsLines(ed, text)
	if d.o.Origin != nil && d.endpoints == d.o.Base {
		lines = append(lines, d.mapOf(ed, r).lines(d, r)...)
	}
	return w.small(r, "text/plain; charset=utf-8", "max-age=3600", []byte(withLines(text, lines)))
}

// withLines adds missing lines. A License line for the whole site precedes all groups (RSL
// 1.0, section 4.4.2).
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

// patterns returns the patterns of the paths that clients of the protocols fetch. If the policy
// refuses both training and AI answers, it returns nil.
func (d *Documents) patterns(ed *edition.Edition) (patterns []string) {
	if d.o.Policy.Refuses(millrace.AIInput) && d.o.Policy.Refuses(millrace.AITrain) {
		return nil
	}
	for _, n := range ed.Advertisements {
		for _, p := range n.Allow {
			patterns = append(patterns, d.endpoints+p)
		}
	}
	if patterns != nil {
		patterns = append(patterns, catalogPath)
		if d.o.MCP.Path != "" {
			patterns = append(patterns, cardWellKnown, aiCatalogPath, d.endpoints+d.o.MCP.Path)
		}
	}
	slices.Sort(patterns)
	return slices.Compact(patterns)
}
