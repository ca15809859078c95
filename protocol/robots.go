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

// Suite returns the rules of the protocol, and one of its Entry.
func (p Protocol) Suite() check.Suite {
	rules := p.Rules()
	if len(p.Entry) > 0 {
		rules = append(slices.Clone(rules), check.Rule{
			ID: p.Name + "/rfc9309-2.2.2/entry", Level: check.Should, Section: "2.2.2 of RFC 9309",
			Sentence: "robots.txt lets machines at what clients of the protocol begin with.",
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

// CheckRobots checks that robots.txt of the site lets machines fetch some URLs of
// a protocol, which readers do not fetch otherwise. Those of other hosts are not
// checked. permitted says of a URL that the site permits it in another way; nil =
// of none. It returns [check.ErrNotApplicable] for a site without a robots.txt.
func CheckRobots(ctx context.Context, t *check.Target, fail check.Fail, urls []string, permitted func(*fetch.Robots, *url.URL) bool) error {
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
	seen := make(map[string]bool) // one finding for each rule
	for _, target := range urls {
		u, err := url.Parse(target)
		if err != nil || u.Host != root.Host {
			continue
		}
		line, rule := robots.Rule(u.RequestURI())
		if line == 0 || seen[rule] || permitted != nil && permitted(robots, u) {
			continue
		}
		seen[rule] = true
		fail(file, fmt.Sprintf("line %d, %s, refuses %s", line, rule, target), "Allow: "+u.EscapedPath())
	}
	return nil
}
