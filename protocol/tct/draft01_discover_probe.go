package tct

import (
	"cmp"
	"context"
	"net/http"

	"github.com/millrace/millrace/protocol"
)

// maxProbed is how many of a site's lists are probed; the others are taken to be
// like them.
const maxProbed = 4

// probe01 finds the lists as a reader does, and probes them and a few documents.
// What is announced as a list and is no list is skipped.
func probe01(ctx context.Context, client *http.Client, endpoint string, o *protocol.ReaderOptions) (*protocol.Offer, error) {
	r := newReader01(client, endpoint, o)
	if r.Err != nil {
		return nil, r.Err
	}
	lists, size, err := r.discover(ctx)
	if err != nil {
		return nil, err
	}
	p := r.NewProbe()
	var other error
	for len(lists) > 0 && p.Lists < maxProbed {
		resp, err := r.GetList(ctx, lists[0]) //nolint:bodyclose // List closes it
		if err == nil {
			err = invalid(p.List(resp, lists[0].URL))
		}
		if err != nil && !isOtherDocument(err) {
			return nil, err
		}
		other = cmp.Or(other, err)
		lists = lists[1:]
	}
	if p.Lists == 0 {
		return nil, other
	}
	return p.Offer(ctx, len(lists), protocol.Cost{Requests: 1, Bytes: size})
}
