package web

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// maxRobotsSize is the size of a robots.txt in bytes that every crawler must parse (RFC 9309,
// section 2.5).
const maxRobotsSize = 500 << 10

// seenRobots is the site's robots.txt.
type seenRobots struct {
	resp  *check.Response
	lines []robotsLine
}

// robotsLine is a line of robots.txt that is neither empty nor a comment.
type robotsLine struct {
	n           int
	text        string // text without the comment
	name, value string // the name is in lower case; it is empty if the line has no colon
}

func robotsLines(body []byte) (out []robotsLine) {
	body = bytes.ReplaceAll(bytes.TrimPrefix(body, []byte("\uFEFF")), []byte("\r\n"), []byte("\n"))
	n := 0
	for line := range bytes.SplitSeq(bytes.ReplaceAll(body, []byte("\r"), []byte("\n")), []byte("\n")) {
		n++
		text, _, _ := strings.Cut(string(line), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		l := robotsLine{n: n, text: text}
		if name, value, ok := strings.Cut(text, ":"); ok {
			l.name, l.value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		}
		out = append(out, l)
	}
	return out
}

// fail reports a finding about a line.
func (r *seenRobots) fail(l robotsLine, want string, fail check.Fail) {
	fail(r.resp.URL, fmt.Sprintf("line %d: %s", l.n, kit.Short(l.text)), want)
}

func checkRobotsReachable(_ context.Context, s *siteContext, fail check.Fail) error {
	if s.noRobots != nil {
		fail(s.noRobots.URL, s.noRobots.StatusText(), "200 OK, or 404 Not Found for a site without robots.txt")
	}
	return nil
}

func checkRobotsType(r *seenRobots, fail check.Fail) {
	kit.MediaType(r.resp.URL, r.resp, "text/plain", fail)
}

func checkRobotsUTF8(r *seenRobots, fail check.Fail) {
	if !utf8.Valid(r.resp.Body) {
		fail(r.resp.URL, "bytes that are not UTF-8", "UTF-8")
	}
}

func checkRobotsLine(r *seenRobots, fail check.Fail) {
	for _, l := range r.lines {
		if l.name == "" {
			r.fail(l, "a name, a colon and a value", fail)
		}
	}
}

func isRule(l robotsLine) bool { return l.name == "allow" || l.name == "disallow" }

func checkRobotsGroup(r *seenRobots, fail check.Fail) {
	for _, l := range r.lines {
		if l.name == "user-agent" {
			return
		}
		if isRule(l) {
			r.fail(l, "a user-agent line before it", fail)
		}
	}
}

// productToken matches a product token of RFC 9309, section 2.2.1. It also allows digits, because
// some crawlers have digits in their names.
var productToken = regexp.MustCompile(`^([0-9A-Za-z_-]+|\*)$`)

func checkRobotsToken(r *seenRobots, fail check.Fail) {
	for _, l := range r.lines {
		if l.name == "user-agent" && !productToken.MatchString(l.value) {
			r.fail(l, "*, or a product of letters, digits, - and _", fail)
		}
	}
}

func checkRobotsPath(r *seenRobots, fail check.Fail) {
	for _, l := range r.lines {
		if isRule(l) && l.value != "" && l.value[0] != '/' && l.value[0] != '*' {
			r.fail(l, "a path that starts with /", fail)
		}
	}
}

func checkRobotsSize(r *seenRobots, fail check.Fail) {
	if n := len(r.resp.Body); n > maxRobotsSize {
		fail(r.resp.URL, fmt.Sprintf("%d bytes", n), "512,000 at most")
	}
}

func checkRobotsSitemap(r *seenRobots, fail check.Fail) {
	for _, l := range r.lines {
		if l.name != "sitemap" {
			continue
		}
		if u, err := url.Parse(l.value); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			r.fail(l, "an absolute URL", fail)
		}
	}
}
