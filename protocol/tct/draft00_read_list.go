package tct

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/millrace/millrace/internal/kit"

	"github.com/millrace/millrace/internal/weblink"
)

// isOther reports whether an error says that there is another document than a list,
// or none, rather than a list that is broken or out of reach.
func isOther(err error) bool {
	_, no := errors.AsType[kit.RefusedError](err)
	return !no && isOtherDocument(err)
}

// getList requests a list, conditionally if it has validators (6.2). The response is
// nil if the list has not changed. HTML is what sites have at all names.
func (r *reader00) getList(ctx context.Context, l listState) (*http.Response, error) {
	resp, err := r.GetList(ctx, l)
	if resp != nil && weblink.IsHTML(resp.Header) {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s: list %s: %w", name00, l.URL, errNoList)
	}
	return resp, err
}

// loadOne gets a list, and the policy that it links to.
func (r *reader00) loadOne(ctx context.Context, l listState) (*listFile, error) {
	resp, err := r.getList(r.Download(ctx), l)
	if err != nil {
		return nil, err
	}
	if resp == nil {
		return &listFile{listState: l}, nil
	}
	defer resp.Body.Close()
	f, err := r.ReadList(resp, l.URL)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close() // one answer at a time
	if err := r.described(ctx, resp); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
