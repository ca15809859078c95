package tct00

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/spool"
	"github.com/millrace/millrace/internal/tct"
	"github.com/millrace/millrace/internal/weblink"
)

// listFile is a list as it was answered.
type listFile struct {
	list
	max     int64        // bytes that it may have
	spool   *spool.Spool // nil: it has not changed
	origins []string     // that its M-URLs may have: of its URL, and of what that redirects to
	twice   []uint64     // hashes of the C-URLs that it names more than once, ascending
	seed    maphash.Seed
}

func (f *listFile) close() {
	if f.spool != nil {
		f.spool.Close()
	}
}

// isOther reports whether the error says that there is something else than a
// list, or nothing, rather than one that is broken or out of reach.
func isOther(err error) bool {
	if _, no := errors.AsType[refused](err); no {
		return false
	}
	_, draft := errors.AsType[*tct.DraftError](err)
	return draft || errors.Is(err, errNoList) || errors.Is(err, millrace.ErrNotFound) || errors.Is(err, millrace.ErrForbidden)
}

// downloadTime is how long a list may take.
const downloadTime = 15 * time.Minute

// loadOne gets a list, conditionally if it has validators (6.2), and gives only
// what is whole and valid.
func (r *Reader) loadOne(ctx context.Context, l list) (*listFile, error) {
	resp, err := r.get(fetch.Download(ctx, r.o.MaxList, downloadTime), l.URL, map[string]string{
		"Accept": tct.MediaType, "If-None-Match": l.ETag, "If-Modified-Since": l.Modified,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: list: %w", Name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified && l != (list{URL: l.URL}) {
		return &listFile{list: l}, nil
	}
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, fmt.Errorf("%s: list: %w", Name, err)
	}
	if weblink.IsHTML(resp.Header) {
		return nil, fmt.Errorf("%s: list %s: %w", Name, l.URL, errNoList)
	}
	f := &listFile{
		list: list{URL: l.URL, ETag: resp.Header.Get("ETag"), Modified: resp.Header.Get("Last-Modified")},
		max:  r.o.MaxList, seed: maphash.MakeSeed(),
	}
	f.origins = []string{canon.Origin(l.URL)}
	if final, err := canon.URL(resp.Request.URL.String()); err == nil {
		f.origins = append(f.origins, canon.Origin(final))
	}
	body, err := fetch.Decode(resp)
	if err != nil {
		return nil, fmt.Errorf("%s: list: %w", Name, err)
	}
	defer body.Close()
	if f.spool, err = spool.New(body, f.max); err != nil {
		return nil, fmt.Errorf("%s: list %s: %w", Name, l.URL, err)
	}
	if err := f.verify(); err != nil {
		f.close()
		switch {
		case errors.Is(err, errVersion):
			err = fmt.Errorf("%s: list %s: TCT is unavailable: %w: %w", Name, l.URL, err, millrace.ErrInvalid)
		case errors.Is(err, errNoList):
			err = fmt.Errorf("%s: list %s: %w", Name, l.URL, err)
		default:
			err = draft.FormatError(err, l.URL, "6.1")
		}
		return nil, err
	}
	_ = resp.Body.Close() // one answer at a time
	if err := r.described(ctx, resp); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// verify walks the list once before anything of it is believed, and finds the
// pages that it names twice: 8 bytes of memory for each item.
func (f *listFile) verify() error {
	var seen []uint64
	r, err := f.spool.Reader()
	if err != nil {
		return err
	}
	err = scanList(r, f.max, func(_ int, it *tct.Item, err error) bool {
		if u, bad := canon.URL(it.CURL); err == nil && bad == nil {
			seen = append(seen, maphash.String(f.seed, u))
		}
		return true
	})
	if err != nil {
		return err
	}
	slices.Sort(seen)
	for i := 1; i < len(seen); i++ {
		if seen[i] == seen[i-1] && (len(f.twice) == 0 || f.twice[len(f.twice)-1] != seen[i]) {
			f.twice = append(f.twice, seen[i])
		}
	}
	return nil
}

// items yields the items of a verified list.
func (r *Reader) items(ctx context.Context, f *listFile, yield func(millrace.Change, error) bool) error {
	body, err := f.spool.Reader()
	if err != nil {
		return err
	}
	named := map[string]bool{} // of those in f.twice
	var stop error
	err = scanList(body, f.max, func(i int, it *tct.Item, err error) bool {
		if stop = ctx.Err(); stop != nil {
			return false
		}
		if err == nil {
			*it, err = it.Check(f.origins)
			err = draft.FormatError(err, "", "6.1")
		}
		if err == nil {
			if _, twice := slices.BinarySearch(f.twice, maphash.String(f.seed, it.CURL)); twice {
				if named[it.CURL] {
					err = &millrace.FormatError{Protocol: Name, Reason: "the list names the page twice: the first item counts", Section: "6.1"}
				}
				named[it.CURL] = true
			}
		}
		var ok bool
		if err != nil {
			ok = yield(millrace.Change{}, tct.Skip(f.URL, i, it, err))
		} else {
			r.listed.Add(it.MURL, it.Version())
			ok = yield(millrace.Change{Kind: millrace.Put, Time: tct.ParseTime(string(it.Modified)), Ref: millrace.Ref{
				URL: it.CURL, Version: it.Version(), Location: it.MURL,
			}}, nil)
		}
		if !ok {
			stop = errStop
		}
		return ok
	})
	if stop != nil {
		return stop
	}
	return draft.FormatError(err, f.URL, "6.1")
}
