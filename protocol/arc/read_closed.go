package arc

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
)

// closed returns why agents must not read a page, or nil if they may. The most restrictive
// statement applies (E.6, E.11).
func (r *run) closed(ctx context.Context, f *listFile, e *entry) (why, err error) {
	no := func(code, text string) (error, error) {
		return millrace.Coded(code, fmt.Errorf("%s: %s: %w", Name, text, millrace.ErrForbidden)), nil
	}
	switch d := restriction(e.Robots); {
	case !e.Indexable:
		return no(Name+"/e.11", "ai_indexable is false (E.11)")
	case d != "":
		return no(Name+"/e.4", "robots_directive is "+d+" (E.4)")
	case e.auth() && e.Snapshot == nil:
		return no(Name+"/e.11", "auth_required is true, and the list has no snapshot (E.11)")
	case e.auth() && !r.hasKey(e.URL):
		r.Note("E.6/auth-snapshot", f.URL, e.URL+" needs authentication, but its snapshot is public")
		return no(Name+"/e.11", "auth_required is true, and no key is configured for the site (E.11)")
	}
	if fetch.IgnoresRobots(r.plain) {
		return nil, nil
	}
	robots, err := r.robotsOf(ctx, e.URL)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(e.URL)
	if err != nil {
		return no(Name+"/e.4", "not a URL")
	}
	line, rule := robots.Rule(u.RequestURI())
	if list := strings.TrimPrefix(f.URL, canon.Origin(e.URL)); line > 0 && !robots.Overruled(u.RequestURI(), list) {
		return no("robots-disallow", fmt.Sprintf("robots.txt disallows it, line %d: %s (E.7)", line, rule))
	}
	return nil, nil
}

// restriction returns the word of a robots directive that forbids indexing, or "".
func restriction(directive string) string {
	for _, word := range strings.FieldsFunc(strings.ToLower(directive), func(c rune) bool { return c == ',' || c == ';' || c == ' ' }) {
		switch word {
		case "noindex", "none", "noai":
			return word
		}
	}
	return ""
}

func (r *run) hasKey(u string) bool { return r.o.Key != nil && r.o.Key(canon.Origin(u)) != "" }

// robotsOf returns the robots.txt of a page's origin.
func (r *run) robotsOf(ctx context.Context, page string) (*fetch.Robots, error) {
	origin := canon.Origin(page)
	if robots, ok := r.robots[origin]; ok {
		return robots, nil
	}
	u, err := url.Parse(origin + "/")
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", Name, err, millrace.ErrInvalid)
	}
	robots, err := fetch.RobotsOf(ctx, r.plain, u)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	if r.robots == nil {
		r.robots = map[string]*fetch.Robots{}
	}
	r.robots[origin] = robots
	return robots, nil
}
