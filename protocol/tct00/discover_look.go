package tct00

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/tct"
	"github.com/millrace/millrace/internal/weblink"
	"github.com/millrace/millrace/protocol"
)

// appraise finds the list as a reader does, and looks at how it begins, and at a
// few documents.
func appraise(ctx context.Context, client *http.Client, endpoint string, o *protocol.ReaderOptions) (*protocol.Offer, error) {
	to := &ReaderOptions{}
	if o != nil {
		to.ReaderOptions = *o
	}
	r := NewReader(client, endpoint, to)
	if r.err != nil {
		return nil, r.err
	}
	seen, entry, tries := new(tct.Look), "", int64(0)
	err := r.find(list{}, func(l list) error {
		tries++
		entry = l.URL
		return r.lookAtList(ctx, l, seen)
	})
	if err != nil {
		return nil, err
	}
	err = seen.Sample(func(murl string) (*http.Response, error) {
		return r.get(ctx, murl, map[string]string{"Accept": tct.MediaType})
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
	offer := &protocol.Offer{
		Entry: entry, Pages: seen.Items, Detail: millrace.DetailText, Fields: seen.Known, Deletes: true, Basis: seen.Basis(),
		First: protocol.Cost{Requests: 1 + tries, Bytes: seen.Bytes}, // with the policy
		Still: protocol.Cost{Requests: 1},
		Moved: protocol.Cost{Requests: 1 + seen.Asked(int64(seen.Items)), Bytes: seen.Bytes},
		Each:  protocol.Cost{Requests: 1, Bytes: seen.Document},
	}
	if r.o.Handshake {
		offer.Each.Requests++
	}
	offer.First = offer.First.Add(offer.Each, int64(seen.Items))
	if seen.Free == 0 {
		offer.Still.Bytes = seen.Bytes
	}
	if offer.Around = seen.Guessed; seen.Unending {
		offer.Pages, offer.Around = -1, false
	}
	return offer, nil
}

func (r *Reader) lookAtList(ctx context.Context, l list, seen *tct.Look) error {
	resp, err := r.get(ctx, l.URL, map[string]string{"Accept": tct.MediaType})
	if err != nil {
		return fmt.Errorf("%s: list: %w", Name, err)
	}
	defer resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return fmt.Errorf("%s: list: %w", Name, err)
	}
	if weblink.IsHTML(resp.Header) {
		return fmt.Errorf("%s: list %s: %w", Name, l.URL, errNoList)
	}
	origins := []string{canon.Origin(l.URL)}
	if final, err := canon.URL(resp.Request.URL.String()); err == nil {
		origins = append(origins, canon.Origin(final))
	}
	err = seen.List(resp, origins, func(in io.Reader, visit func(int, *tct.Item, error) bool) error {
		return scanList(in, r.o.MaxList, visit)
	})
	switch {
	case errors.Is(err, errVersion):
		return fmt.Errorf("%s: list %s: TCT is unavailable: %w: %w", Name, l.URL, err, millrace.ErrInvalid)
	case errors.Is(err, errNoList):
		return fmt.Errorf("%s: list %s: %w", Name, l.URL, err)
	case err != nil:
		return draft.FormatError(err, l.URL, "6.1")
	}
	return nil
}
