package tct

import (
	"context"
	"net/http"

	"github.com/millrace/millrace/protocol"
)

// probe00 finds the list as a reader does, and probes it and a few documents.
func probe00(ctx context.Context, client *http.Client, endpoint string, o *protocol.ReaderOptions) (*protocol.Offer, error) {
	r := newReader00(client, endpoint, o)
	if r.Err != nil {
		return nil, r.Err
	}
	p, tries := r.NewProbe(), int64(0)
	err := r.find(listState{}, func(l listState) error {
		tries++
		resp, err := r.getList(ctx, l) //nolint:bodyclose // List closes it
		if err != nil {
			return err
		}
		return p.List(resp, l.URL)
	})
	if err != nil {
		return nil, err
	}
	offer, err := p.Offer(ctx, 0, protocol.Cost{Requests: tries}) // the policy, and places without a list
	if err == nil && r.Options.Handshake {
		offer.Each.Requests++
		offer.First.Requests += int64(p.Items)
	}
	return offer, err
}
