package agent

import (
	"context"
	"net/url"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/protocol"
)

// Page reads one page of any site, and returns it with the terms of the site. Like [Agent.Pull], it
// obeys the policy and the robots.txt of the site. It stores no page. A redirect to another site is
// an error.
func (a *Agent) Page(ctx context.Context, pageURL string) (*millrace.Page, []protocol.Terms, error) {
	root, err := ingest.Root(pageURL)
	if err != nil {
		return nil, nil, err
	}
	base, err := url.Parse(root)
	if err != nil {
		return nil, nil, err
	}
	client := a.siteClient(nil)
	defer client.CloseIdleConnections()
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	report := new(Report)
	g := a.enforcer(client, base, report, stop)
	defer func() { g.close(context.WithoutCancel(ctx), report) }()
	if !a.o.IgnorePolicy {
		if err := g.open(inner, ""); err != nil {
			return nil, nil, err
		}
	}
	p, err := ingest.Page(inner, a.withKeys(client), root, pageURL)
	if no := g.ended(); no != nil {
		err = no
	}
	if err != nil {
		return nil, nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return p, slices.Clone(g.terms), nil
}
