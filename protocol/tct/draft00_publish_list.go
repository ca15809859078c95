package tct

import (
	"context"
	"errors"

	"github.com/millrace/millrace"
)

// list returns the one list of all pages (6.1). The first is the home page, the
// page that it redirects to, or an overview; the others are in the order of
// identities.
func (p *publisher00) list(ctx context.Context, v millrace.View, over *overview) (*millrace.Document, error) {
	site := v.Site()
	h := draft00.Header(site.Time)
	if p.policy != nil {
		h["Link"] = []string{millrace.Link{URL: rooted(site, policyName), Rel: "describedby"}.String()} // 7.3
	}
	var home *millrace.Tag
	t, err := draft00.Home(ctx, v)
	if err == nil {
		home = &t
	} else if !errors.Is(err, millrace.ErrNotFound) {
		return nil, err
	}
	parts := draft00.List(v, over, home, nil)
	return &millrace.Document{
		Path: listName00, Header: h, OneTag: true, Large: true, PageCount: int64(site.Pages), Parts: parts, Write: parts.Write,
	}, nil
}
