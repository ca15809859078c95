package ingest

import (
	"context"
	"strings"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/store"
)

// maxTitle is the maximum length of a title in characters.
const maxTitle = 200

// saveTitle stores the title of the site. It keeps the stored title if the source has none.
func (o *Origin) saveTitle(ctx context.Context) error {
	title := o.SiteTitle
	if title == "" && o.siteTitle != nil {
		var err error
		if title, err = o.siteTitle(ctx); err != nil && ctx.Err() == nil {
			o.Logger.Warn("could not read title of site; keeping previous title", "site", o.Name, "err", err)
		}
	}
	title = strings.Join(strings.Fields(canon.ValidUTF8(title)), " ")
	if r := []rune(title); len(r) > maxTitle {
		title = string(r[:maxTitle])
	}
	if title == "" {
		return ctx.Err()
	}
	old, err := o.Store.State().Value(ctx, o.Name, store.TitleKey)
	if err != nil || string(old) == title {
		return err
	}
	return o.Store.State().Swap(ctx, o.Name, store.TitleKey, old, []byte(title))
}
