package protocol

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
)

// Suite returns the rules of the protocol, and a rule for its Entry paths.
func (p Protocol) Suite() check.Suite {
	rules := p.Rules()
	if len(p.Entry) > 0 {
		rules = append(slices.Clone(rules), check.Rule{
			ID: p.Name + "/rfc9309-2.2.2/entry", Level: check.Should, Section: "2.2.2 of RFC 9309",
			Sentence: "robots.txt allows the paths that clients of the protocol fetch first.",
			Check: func(ctx context.Context, t *check.Target, fail check.Fail) error {
				var urls []string
				for _, path := range p.Entry {
					urls = append(urls, t.Root()+path[1:])
				}
				return CheckRobots(ctx, t, fail, urls, nil)
			},
		})
	}
	return check.Suite{Name: p.Name, Label: p.Label, Rules: rules}
}

// CheckRobots checks that the site's robots.txt allows the user agent millrace to fetch urls. It
// skips URLs of other hosts. permitted reports whether the site permits a URL in another way; it
// may be nil. If the site has no readable robots.txt, CheckRobots returns [check.ErrNotApplicable].
func CheckRobots(ctx context.Context, t *check.Target, fail check.Fail, urls []string, permitted func(*url.URL) bool) error {
	file := t.Root() + "robots.txt"
	resp, err := t.Get(ctx, file)
	if err != nil {
		return err
	}
	if resp.Status != http.StatusOK || resp.BodyErr != nil {
		return check.ErrNotApplicable
	}
	robots := fetch.ParseRobots(resp.Body, "millrace")
	root, err := url.Parse(t.Root())
	if err != nil {
		return err
	}
	seen := make(map[string]bool) // report one finding per rule of robots.txt
	for _, target := range urls {
		u, err := url.Parse(target)
		if err != nil || u.Host != root.Host {
			continue
		}
		line, rule := robots.Rule(u.RequestURI())
		if line == 0 || seen[rule] || permitted != nil && permitted(u) {
			continue
		}
		seen[rule] = true
		fail(file, fmt.Sprintf("line %d (%s) disallows %s", line, rule, target), "Allow: "+u.EscapedPath())
	}
	return nil
}
