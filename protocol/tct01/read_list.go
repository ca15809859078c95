package tct01

import (
	"cmp"
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
)

// maxLists is the most lists that one root may announce.
const maxLists = 1000

// maxList is how many bytes one list may have, unless the options say another
// limit, and downloadTime how long one may take.
const (
	maxList      = 100 << 20
	downloadTime = 15 * time.Minute
)

// listFile is one list as it was answered.
type listFile struct {
	list
	spool   *spool.Spool // nil: it has not changed
	origins []string     // that its M-URLs may have: of its URL, and of what that redirects to
	twice   []uint64     // hashes of the C-URLs that it names more than once, ascending
	seed    maphash.Seed
}

func closeAll(files []*listFile) {
	for _, f := range files {
		if f.spool != nil {
			f.spool.Close()
			f.spool = nil
		}
	}
}

// load gets the lists that have changed since a cursor, and gives only what
// is whole and valid. Of several, one that is no M-Sitemap is passed over,
// unless the cursor knows that it was one. whole is false when one of them may
// not be read, or is missing that was not missing the last time, as on a
// replica that lags behind: then what no list names may be named there.
func (r *reader) load(ctx context.Context, lists []list, was cursor) (files []*listFile, missing []string, whole bool, err error) {
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
		case known || !isOther(err):
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

// isOther reports whether the error says that a target is something else than
// an M-Sitemap, rather than one that is broken or out of reach.
func isOther(err error) bool {
	_, draft := errors.AsType[*tct.DraftError](err)
	return draft || errors.Is(err, errNoList) || errors.Is(err, millrace.ErrNotFound) || errors.Is(err, millrace.ErrForbidden)
}

// loadOne gets one list, conditionally if it has validators (1.8.1).
func (r *reader) loadOne(ctx context.Context, l list) (*listFile, error) {
	limit := cmp.Or(r.o.MaxList, maxList)
	resp, err := r.get(fetch.Download(ctx, limit, downloadTime), http.MethodGet, l.URL, map[string]string{
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
	f := &listFile{
		list: list{URL: l.URL, ETag: resp.Header.Get("ETag"), Modified: resp.Header.Get("Last-Modified")},
		seed: maphash.MakeSeed(),
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
	if f.spool, err = spool.New(body, limit); err != nil {
		return nil, fmt.Errorf("%s: list %s: %w", Name, l.URL, err)
	}
	if err := f.verify(); err != nil {
		f.spool.Close()
		switch {
		case errors.Is(err, errVersion):
			err = fmt.Errorf("%s: list %s: TCT is unavailable: %w: %w", Name, l.URL, err, millrace.ErrInvalid)
		case errors.Is(err, errNoList):
			err = fmt.Errorf("%s: list %s: %w: %w", Name, l.URL, err, millrace.ErrInvalid)
		default:
			err = draft.FormatError(err, l.URL, "1.7.1")
		}
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
	err = scanList(r, func(_ int, it *tct.Item, err error) bool {
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
func (r *reader) items(
	ctx context.Context, f *listFile, several bool, yield func(millrace.Change, error) bool,
) error {
	body, err := f.spool.Reader()
	if err != nil {
		return err
	}
	section := ""
	if several {
		section = f.URL
	}
	named := map[string]bool{} // of those in f.twice
	var stop error
	err = scanList(body, func(i int, it *tct.Item, err error) bool {
		if stop = ctx.Err(); stop != nil {
			return false
		}
		if err == nil {
			*it, err = it.Check(f.origins)
			err = draft.FormatError(err, "", "1.7.1")
		}
		if err == nil {
			if _, twice := slices.BinarySearch(f.twice, maphash.String(f.seed, it.CURL)); twice {
				if named[it.CURL] {
					err = &millrace.FormatError{Protocol: Name, Reason: "the list names the page twice: the first item counts", Section: "1.7.1"}
				}
				named[it.CURL] = true
			}
		}
		var ok bool
		if err != nil {
			ok = yield(millrace.Change{}, tct.Skip(f.URL, i, it, err))
		} else {
			r.listed.Add(it.MURL, it.Version())
			ok = yield(millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{
				URL: it.CURL, Version: it.Version(), Location: it.MURL, Section: section,
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
	return draft.FormatError(err, f.URL, "1.7.1")
}
