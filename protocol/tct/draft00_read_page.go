package tct

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// Page gets the document of a page: from have.Location, where a list said it
// is, else from where the page's own links lead.
func (r *reader00) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	if r.Options.Handshake && have.Location != "" {
		if err := r.shakes(ctx, have); err != nil {
			return nil, err
		}
	}
	return r.tctReader.Page(ctx, have)
}

// shakes asks the page whether it leads to the M-URL that the list names (3.1).
func (r *reader00) shakes(ctx context.Context, have millrace.Ref) error {
	links, _, err := r.Alternates(ctx, have.URL)
	if err != nil {
		return err
	}
	murl, err := canon.URL(have.Location)
	if err != nil {
		return fmt.Errorf("%s: page: %w: %w", name00, err, millrace.ErrInvalid)
	}
	if !slices.Contains(links, murl) {
		return r.Bad(have.URL, draft00.Rules.Alternate, "its HTML does not lead to "+murl, nil)
	}
	return nil
}
