package tct01

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/tct"
	"github.com/millrace/millrace/protocol"
)

// maxLooked is how many of a site's lists are looked at; the others are taken to
// be like them.
const maxLooked = 4

// appraise finds the lists as a reader does, and looks at how they begin, and at a
// few documents.
func appraise(ctx context.Context, client *http.Client, endpoint string, o *protocol.ReaderOptions) (*protocol.Offer, error) {
	to := &ReaderOptions{}
	if o != nil {
		to.ReaderOptions = *o
	}
	r := newReader(client, endpoint, to)
	if r.err != nil {
		return nil, r.err
	}
	lists, root, err := r.discover(ctx)
	if err != nil {
		return nil, err
	}
	seen, entry, rest, err := r.lookAtLists(ctx, lists)
	if err != nil {
		return nil, err
	}
	err = seen.Sample(func(murl string) (*http.Response, error) {
		return r.get(ctx, http.MethodGet, murl, map[string]string{"Accept": tct.MediaType})
	}, func(body []byte) (*millrace.Page, error) {
		d, _, err := decodeDocument(body)
		if err != nil {
			return nil, err
		}
		return draft.Page(d), nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: document: %w", Name, err)
	}
	all := seen.Lists + rest
	pages, size := int64(seen.Items*all/seen.Lists), seen.Bytes*int64(all)/int64(seen.Lists)
	offer := &protocol.Offer{
		Entry: entry, Pages: int(pages), Detail: millrace.DetailText, Fields: seen.Known, Deletes: true, Basis: seen.Basis(),
		First: protocol.Cost{Requests: 1 + int64(all), Bytes: root + size},
		Still: protocol.Cost{Requests: int64(all)},
		Moved: protocol.Cost{Requests: int64(all) + seen.Asked(pages), Bytes: size},
		Each:  protocol.Cost{Requests: 1, Bytes: seen.Document},
	}
	offer.First = offer.First.Add(offer.Each, pages)
	if seen.Free < seen.Lists {
		offer.Still.Bytes = size
	}
	if offer.Around = seen.Guessed; seen.Unending {
		offer.Pages, offer.Around = -1, false
	}
	return offer, nil
}

// lookAtLists looks at some of the lists, and gives the first of them, and how
// many there are beside those. What is no list is passed over.
func (r *reader) lookAtLists(ctx context.Context, lists []list) (seen *tct.Look, entry string, rest int, err error) {
	seen = new(tct.Look)
	var other error
	for i, l := range lists {
		if seen.Lists == maxLooked {
			return seen, entry, len(lists) - i, nil
		}
		err := r.lookAtList(ctx, l, seen)
		switch {
		case err == nil && entry == "":
			entry = l.URL
		case err == nil:
		case !isOther(err):
			return nil, "", 0, err
		case other == nil:
			other = err
		}
	}
	if seen.Lists == 0 {
		return nil, "", 0, other
	}
	return seen, entry, 0, nil
}

func (r *reader) lookAtList(ctx context.Context, l list, seen *tct.Look) error {
	resp, err := r.get(ctx, http.MethodGet, l.URL, map[string]string{"Accept": tct.MediaType})
	if err != nil {
		return fmt.Errorf("%s: list: %w", Name, err)
	}
	defer resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return fmt.Errorf("%s: list: %w", Name, err)
	}
	origins := []string{canon.Origin(l.URL)}
	if final, err := canon.URL(resp.Request.URL.String()); err == nil {
		origins = append(origins, canon.Origin(final))
	}
	err = seen.List(resp, origins, scanList)
	switch {
	case errors.Is(err, errVersion), errors.Is(err, errNoList):
		return fmt.Errorf("%s: list %s: %w: %w", Name, l.URL, err, millrace.ErrInvalid)
	case err != nil:
		return draft.FormatError(err, l.URL, "1.7.1")
	}
	return nil
}
