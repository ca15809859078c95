package tct

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
)

// ErrStop is the error of [Reader.Items] when the consumer wants no more.
var ErrStop = errors.New("stopped")

// downloadTime is how long a list may take.
const downloadTime = 15 * time.Minute

// List is a list with its validators, verbatim. It is part of cursors.
type List struct {
	URL      string `json:"url"`
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
}

// ListFile is a list as it was answered. Close it in the end.
type ListFile struct {
	List
	spool   *spool.Spool // nil: it has not changed
	origins []string     // that its M-URLs may have
	twice   []uint64     // hashes of the C-URLs that it names more than once, ascending
	seed    maphash.Seed
}

// Changed reports whether the list has changed since its validators.
func (f *ListFile) Changed() bool { return f.spool != nil }

// Close frees the list.
func (f *ListFile) Close() {
	if f.spool != nil {
		f.spool.Close()
		f.spool = nil
	}
}

// Download returns a context for a whole list, which may be longer and take more time
// than other documents.
func (r *Reader) Download(ctx context.Context) context.Context {
	return fetch.Download(ctx, r.Options.MaxList, downloadTime)
}

// GetList requests a list, conditionally if it has validators. The response is nil
// if the list has not changed.
func (r *Reader) GetList(ctx context.Context, l List) (*http.Response, error) {
	resp, err := r.Get(ctx, l.URL, map[string]string{
		"Accept": MediaType, "If-None-Match": l.ETag, "If-Modified-Since": l.Modified,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: list: %w", r.d.Name, err)
	}
	if resp.StatusCode == http.StatusNotModified && l != (List{URL: l.URL}) {
		_ = resp.Body.Close()
		return nil, nil //nolint:nilnil // the list that the caller has
	}
	if err := fetch.CheckStatus(resp); err != nil {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s: list: %w", r.d.Name, err)
	}
	return resp, nil
}

// ReadList reads the response to a request of a list. It returns only a list that
// is complete and valid, and the error is [ErrNoList] for another document.
func (r *Reader) ReadList(resp *http.Response, at string) (*ListFile, error) {
	f := &ListFile{
		List:    List{URL: at, ETag: resp.Header.Get("ETag"), Modified: resp.Header.Get("Last-Modified")},
		origins: originsOf(resp, at), seed: maphash.MakeSeed(),
	}
	body, err := fetch.Decode(resp)
	if err != nil {
		return nil, fmt.Errorf("%s: list: %w", r.d.Name, err)
	}
	defer body.Close()
	if f.spool, err = spool.New(body, r.Options.MaxList); err != nil {
		return nil, fmt.Errorf("%s: list %s: %w", r.d.Name, at, err)
	}
	if err := r.verify(f); err != nil {
		f.Close()
		return nil, r.listError(at, err)
	}
	return f, nil
}

// originsOf returns the origins that the M-URLs of a list may have: of its URL, and
// of the URL that it redirects to.
func originsOf(resp *http.Response, at string) []string {
	origins := []string{canon.Origin(at)}
	if final, err := canon.URL(resp.Request.URL.String()); err == nil {
		origins = append(origins, canon.Origin(final))
	}
	return origins
}

func (r *Reader) listError(at string, err error) error {
	switch {
	case errors.Is(err, ErrVersion):
		return fmt.Errorf("%s: list %s: TCT is unavailable: %w: %w", r.d.Name, at, err, millrace.ErrInvalid)
	case errors.Is(err, ErrNoList):
		return fmt.Errorf("%s: list %s: %w", r.d.Name, at, err)
	}
	return r.d.FormatError(err, at, section(r.d.Rules.Items))
}

// IsOther reports whether an error says that a URL has another document than a
// list, or no document, rather than a list that is broken or out of reach.
func IsOther(err error) bool {
	_, draft := errors.AsType[*DraftError](err)
	return draft || errors.Is(err, ErrNoList) || errors.Is(err, millrace.ErrNotFound) || errors.Is(err, millrace.ErrForbidden)
}

// verify walks the list once before any of its items is used, and finds the
// pages that it names twice: 8 bytes of memory for each item.
func (r *Reader) verify(f *ListFile) error {
	var seen []uint64
	body, err := f.spool.Reader()
	if err != nil {
		return err
	}
	err = r.d.ScanList(body, r.Options.MaxList, func(_ int, it *Item, err error) bool {
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

// Items yields the items of a list that has changed, each as a change of the given
// section. The error is [ErrStop] if yield returns false.
func (r *Reader) Items(ctx context.Context, f *ListFile, of string, yield func(millrace.Change, error) bool) error {
	body, err := f.spool.Reader()
	if err != nil {
		return err
	}
	at := section(r.d.Rules.Items)
	named := map[string]bool{} // of those in f.twice
	var stop error
	err = r.d.ScanList(body, r.Options.MaxList, func(i int, it *Item, err error) bool {
		if stop = ctx.Err(); stop != nil {
			return false
		}
		if err == nil {
			*it, err = it.Check(f.origins)
			err = r.d.FormatError(err, "", at)
		}
		if err == nil {
			if _, twice := slices.BinarySearch(f.twice, maphash.String(f.seed, it.CURL)); twice {
				if named[it.CURL] {
					err = r.Bad("", at, "the list names the page twice: the first item counts", nil)
				}
				named[it.CURL] = true
			}
		}
		var ok bool
		if err != nil {
			ok = yield(millrace.Change{}, skip(f.URL, i, it, err))
		} else {
			r.listed.Add(it.MURL, it.Version())
			ok = yield(millrace.Change{Kind: millrace.Put, Time: ParseTime(string(it.Modified)), Ref: millrace.Ref{
				URL: it.CURL, Version: it.Version(), Location: it.MURL, Section: of,
			}}, nil)
		}
		if !ok {
			stop = ErrStop
		}
		return ok
	})
	if stop != nil {
		return stop
	}
	return r.d.FormatError(err, f.URL, at)
}
