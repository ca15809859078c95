package gateway

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/edition"
)

// maxRobots is how much of a site's own robots.txt is passed on: as much as
// crawlers read (RFC 9309, section 2.5).
const maxRobots = 512 << 10

// robots answers with the site's own robots.txt and the lines that the rooms
// want in it, or with those alone if the site has none. It reports false when
// there is nothing to add: then the site answers by itself.
func (g *Gateway) robots(w http.ResponseWriter, r *http.Request, ed *edition.Edition) bool {
	var lines []string
	for _, n := range ed.Notices {
		lines = append(lines, n.Robots...)
	}
	if len(lines) == 0 {
		return false
	}
	text := "User-agent: *\nDisallow:\n"
	if g.origin != nil {
		probe := r.Clone(r.Context())
		probe.Method, probe.Header = http.MethodGet, http.Header{}
		own := &captured{discard: discard{header: http.Header{}}}
		g.origin.ServeHTTP(own, probe)
		switch {
		case own.status == http.StatusOK && own.body.Len() < maxRobots:
			text = strings.TrimPrefix(own.body.String(), "\uFEFF")
		case own.status != http.StatusNotFound && own.status != http.StatusGone:
			return false // whatever is the matter, it is the site's to say
		}
	}
	have := strings.FieldsFunc(text, func(c rune) bool { return c == '\n' || c == '\r' })
	for i := range have {
		have[i] = strings.TrimSpace(have[i])
	}
	first := true
	for _, line := range lines {
		if slices.Contains(have, line) {
			continue
		}
		if text = strings.TrimRight(text, "\r\n") + "\n"; first {
			text += "\n"
		}
		first = false
		text += line + "\n"
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "max-age=3600")
	h.Set("Etag", `"`+canon.SHA256Hex([]byte(text))[:32]+`"`)
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
	return true
}

// captured takes an answer with the start of its body.
type captured struct {
	discard
	body bytes.Buffer
}

func (c *captured) Write(b []byte) (int, error) {
	c.WriteHeader(http.StatusOK)
	if room := maxRobots - c.body.Len(); room > 0 {
		c.body.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}
