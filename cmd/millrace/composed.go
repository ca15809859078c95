package main

import (
	"context"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/static"
)

// speak gives the gateway what it says of the use of the content, and what it
// leaves out of the site's own sitemap.
func (c *publishing) speak(o *gateway.Options) { o.Policy, o.Visibility = c.policy, c.visibility() }

// composed adds to the files of a site what the gateway composes beside them.
func composed(ctx context.Context, gate *gateway.Gateway, b *static.Build, items []static.Item) []static.Item {
	for _, path := range gate.Composed(ctx) {
		it := static.Item{Path: path, Room: access.SiteProtocol, Name: strings.TrimPrefix(path, "/")}
		if !slices.ContainsFunc(items, func(have static.Item) bool { return have.Path == path }) && b.Reserve(it) {
			items = append(items, it)
		}
	}
	return items
}
