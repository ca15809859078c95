package tct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/spool"
	"github.com/millrace/millrace/internal/weblink"
)

// listFile is a fetched list. The caller must close it.
type listFile struct {
	kit.Resource
	spool   *spool.Spool // content of the list, or nil if not changed
	origins []string     // origins that its M-URLs may have
	names   kit.Names    // C-URLs of the list
}

// Changed reports whether the list has changed since its validators were stored.
func (f *listFile) Changed() bool { return f.spool != nil }

// Close frees the list.
func (f *listFile) Close() {
	if f.spool != nil {
		f.spool.Close()
		f.spool = nil
	}
}

// GetList requests a list, conditionally if it has validators. If the list has not changed, the
// response is nil.
func (r *tctReader) GetList(ctx context.Context, l kit.Resource) (*http.Response, error) {
	resp, err := r.Open(ctx, "list", l.URL, mediaType, l.Validators)
	switch {
	case errors.Is(err, millrace.ErrUnmodified) && l.Conditional():
		return nil, nil //nolint:nilnil // the caller has the current list
	case err == nil && r.d.OneList && weblink.IsHTML(resp.Header):
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s: list: %s: %w", r.d.Name, l.URL, errNoList) // the error names the usual path even if no list was announced
	}
	return resp, err
}

// ReadList reads the response to a request for a list. It returns only complete and valid lists. If
// the document is not a list, the error is [errNoList].
func (r *tctReader) ReadList(resp *http.Response, at string) (*listFile, error) {
	f := &listFile{
		Resource: kit.Resource{URL: at, Validators: fetch.ValidatorsOf(resp)},
		origins:  originsOf(resp, at),
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

// originsOf returns the origins that the M-URLs of a list may have: that of its URL, and that of
// the URL to which it redirects.
func originsOf(resp *http.Response, at string) []string {
	origins := []string{canon.Origin(at)}
	if final, err := canon.URL(resp.Request.URL.String()); err == nil {
		origins = append(origins, canon.Origin(final))
	}
	return origins
}

func (r *tctReader) listError(at string, err error) error {
	switch {
	case errors.Is(err, errVersion):
		return fmt.Errorf("%s: list %s: TCT is unavailable: %w: %w", r.d.Name, at, err, millrace.ErrInvalid)
	case errors.Is(err, errNoList):
		return fmt.Errorf("%s: list %s: %w", r.d.Name, at, err)
	}
	return r.d.FormatError(err, at, section(r.d.RuleNames.Items))
}

// isOtherDocument reports whether an error means that there is no list at a URL: no document, a
// forbidden document, or a different document. A list that is broken or cannot be fetched gives
// another error.
func isOtherDocument(err error) bool {
	if _, refused := errors.AsType[kit.RefusedError](err); refused {
		return false
	}
	_, draft := errors.AsType[*draftError](err)
	_, index := errors.AsType[*indexError](err)
	return draft || index || errors.Is(err, errNoList) || errors.Is(err, millrace.ErrNotFound) || errors.Is(err, millrace.ErrForbidden)
}

// verify reads the whole list before its items are used, and finds pages that are listed twice. It
// uses 8 bytes of memory per item.
func (r *tctReader) verify(f *listFile) error {
	body, err := f.spool.Reader()
	if err != nil {
		return err
	}
	err = r.d.ScanList(body, r.Options.MaxList, func(_ int, it *listItem, err error) bool {
		if u, bad := canon.URL(it.CURL); err == nil && bad == nil {
			f.names.Add(u)
		}
		return true
	})
	f.names.End()
	return err
}

// Items yields the items of a list that has changed, each as a change in the given section.
func (r *tctReader) Items(ctx context.Context, f *listFile, of string, y kit.Yield) error {
	body, err := f.spool.Reader()
	if err != nil {
		return err
	}
	at := section(r.d.RuleNames.Items)
	again := f.names.Again()
	var stop error
	err = r.d.ScanList(body, r.Options.MaxList, func(i int, it *listItem, err error) bool {
		if stop = ctx.Err(); stop != nil {
			return false
		}
		if err == nil {
			*it, err = it.Check(f.origins)
			err = r.d.FormatError(err, "", at)
		}
		if err == nil && again(it.CURL) {
			err = r.FormatError("", at, "duplicate page; using the first item", nil)
		}
		if err != nil {
			stop = y.Send(millrace.Change{}, skip(f.URL, i, it, err))
		} else {
			r.listed.Add(it.MURL, it.Version())
			stop = y.Send(millrace.Change{Kind: millrace.Put, Time: parseTime(string(cmp.Or(it.Modified, it.LastModified))), Ref: millrace.Ref{
				URL: it.CURL, Version: it.Version(), Location: it.MURL, Section: of,
			}}, nil)
		}
		return stop == nil
	})
	if stop != nil {
		return stop
	}
	return r.d.FormatError(err, f.URL, at)
}
