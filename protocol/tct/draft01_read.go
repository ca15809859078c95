package tct

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/weblink"
	"github.com/millrace/millrace/protocol"
)

// maxLists is the most lists that one root may announce.
const maxLists = 1000

// announcedLists asks the origin's root for its lists (1.4.1).
func announcedLists(ctx context.Context, r *tctReader) (found []listState, cost protocol.Cost, err error) {
	resp, err := r.Get(ctx, r.Root, "text/html, */*;q=0.1", fetch.Validators{})
	if err != nil {
		return nil, cost, fmt.Errorf("%s: discovery: %w", name01, err)
	}
	defer resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, cost, fmt.Errorf("%s: discovery: %w", name01, err)
	}
	cost.Requests = 1
	cost.Bytes, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection lives
	for _, l := range weblink.Header(resp.Header, resp.Request.URL) {
		switch {
		case !l.Is("index", mediaType), slices.Contains(found, listState{URL: l.URL}):
		case resp.Request.URL.Scheme == "https" && strings.HasPrefix(l.URL, "http:"):
			r.Note("1.10/https", l.URL, "an http list of an https site is not read")
		default:
			found = append(found, listState{URL: l.URL})
		}
	}
	switch {
	case len(found) == 0:
		return nil, cost, fmt.Errorf("%s: TCT is not deployed at %s: its root has no Link with rel=index and type=%s: %w",
			name01, r.Root, mediaType, millrace.ErrNotFound)
	case len(found) > maxLists:
		return nil, cost, fmt.Errorf("%s: %s announces %d lists: %w", name01, r.Root, len(found), millrace.ErrTooLarge)
	}
	return found, cost, nil
}
