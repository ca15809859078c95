package tct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace"
)

// maxLists is the most lists that one root may announce.
const maxLists = 1000

func closeAll(files []*listFile) {
	for _, f := range files {
		f.Close()
	}
}

// load gets the lists that have changed since a cursor, and gives only what
// is whole and valid. Of several, one that is no M-Sitemap is passed over,
// unless the cursor knows that it was one. whole is false when one of them may
// not be read, or is missing that was not missing the last time, as on a
// replica that lags behind: then what no list names may be named there.
func (r *reader01) load(ctx context.Context, lists []listState, was cursor01) (files []*listFile, missing []string, whole bool, err error) {
	whole = true
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	var other error
	for _, l := range lists {
		known := false
		for _, w := range was.Lists {
			if w.URL == l.URL {
				l, known = w, true
			}
		}
		f, err := r.loadOne(ctx, l)
		switch {
		case err == nil:
			files = append(files, f)
		case known || !isOtherDocument(err):
			return files, nil, false, err
		default:
			if errors.Is(err, millrace.ErrNotFound) {
				missing = append(missing, l.URL)
				whole = whole && slices.Contains(was.Missing, l.URL)
			}
			whole = whole && !errors.Is(err, millrace.ErrForbidden)
			other = cmp.Or(other, err)
		}
	}
	if len(files) == 0 {
		return nil, nil, false, other
	}
	return files, missing, whole, nil
}

// loadOne gets one list, conditionally if it has validators (1.8.1).
func (r *reader01) loadOne(ctx context.Context, l listState) (*listFile, error) {
	resp, err := r.GetList(r.Download(ctx), l)
	if err != nil {
		return nil, err
	}
	if resp == nil {
		return &listFile{listState: l}, nil
	}
	defer resp.Body.Close()
	f, err := r.ReadList(resp, l.URL)
	return f, invalid(err)
}

// invalid returns the error of what is announced as a list and is no list.
func invalid(err error) error {
	if errors.Is(err, errNoList) {
		return fmt.Errorf("%w: %w", err, millrace.ErrInvalid)
	}
	return err
}
