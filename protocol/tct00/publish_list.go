package tct00

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/tct"
)

// list gives the one list of all pages (6.1). The first is the home page, the
// page that it redirects to, or an overview; the others are in the order of
// identities.
func (p *publisher) list(v millrace.View, over *tct.Overview) *millrace.Document {
	site := v.Site()
	h := draft.Header(site.Time)
	if p.policy != nil {
		h["Link"] = []string{millrace.Link{URL: rooted(site, policyName), Rel: "describedby"}.String()} // 7.3
	}
	return &millrace.Document{
		Path:   listName,
		Header: h,
		OneTag: true,
		Alike:  true,
		Large:  true,
		Names:  int64(site.Pages),
		Write: func(ctx context.Context, w io.Writer) error {
			if err := writeList(ctx, v, over, w); err != nil {
				return fmt.Errorf("%s: list: %w", Name, err)
			}
			return nil
		},
	}
}

// writeList writes the list in one pass over the tags.
func writeList(ctx context.Context, v millrace.View, over *tct.Overview, w io.Writer) error {
	out := draft.NewListWriter(w, v.Site())
	if over != nil {
		if err := out.Overview(over); err != nil {
			return err
		}
	}
	home, err := draft.Home(ctx, v)
	if err == nil {
		err = out.Page(home)
	}
	if err != nil && !errors.Is(err, millrace.ErrNotFound) {
		return err
	}
	for t, err := range v.Tags(ctx, Name, "") {
		if err != nil {
			return err
		}
		if t.URL == home.URL {
			continue
		}
		if err := out.Page(t); err != nil {
			return err
		}
	}
	return out.Close()
}
