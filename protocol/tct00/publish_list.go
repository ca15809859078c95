package tct00

import (
	"context"
	"errors"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/tct"
)

// list returns the one list of all pages (6.1). The first is the home page, the
// page that it redirects to, or an overview; the others are in the order of
// identities.
func (p *publisher) list(ctx context.Context, v millrace.View, over *tct.Overview) (*millrace.Document, error) {
	site := v.Site()
	h := draft.Header(site.Time)
	if p.policy != nil {
		h["Link"] = []string{millrace.Link{URL: rooted(site, policyName), Rel: "describedby"}.String()} // 7.3
	}
	var home *millrace.Tag
	t, err := draft.Home(ctx, v)
	if err == nil {
		home = &t
	} else if !errors.Is(err, millrace.ErrNotFound) {
		return nil, err
	}
	parts := draft.List(v, over, home, nil)
	return &millrace.Document{
		Path: listName, Header: h, OneTag: true, Large: true, PageCount: int64(site.Pages), Parts: parts, Write: parts.Write,
	}, nil
}
