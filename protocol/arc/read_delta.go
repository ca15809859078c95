package arc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
)

// catchesUp reports whether to read the deltas since the last day read instead of the list: the
// list must be large, and the last full read recent enough.
func (r *run) catchesUp(now time.Time) bool {
	_, ok := r.dayAge(now)
	age := now.Sub(r.is.FullRead)
	return r.o.Deltas > 0 && r.is.Bytes >= r.o.Deltas && !r.is.NoDeltas && ok &&
		age >= 0 && age < readHorizon*24*time.Hour && r.is.List.Validators != (fetch.Validators{})
}

// dayAge returns the number of days since the last day read. It returns false if that day is before
// the horizon or in the future.
func (r *run) dayAge(now time.Time) (int, bool) {
	n := int(now.UTC().Truncate(24*time.Hour).Sub(r.is.Seen.Truncate(24*time.Hour)) / (24 * time.Hour))
	return n, n >= 0 && n < readHorizon
}

// catchUp checks with a HEAD request whether the list has changed. If so, it reads the deltas from
// the last day read on, including that day (E.8). It verifies all of them before it yields the
// first page. If they do not contain all changes of the list, it returns errFullRead.
func (r *run) catchUp(ctx context.Context, now time.Time) error {
	resp, err := r.Head(ctx, r.is.List.URL, listTypes, r.is.List.Validators)
	if err != nil {
		if unavailable(err) || ctx.Err() != nil {
			return fmt.Errorf("%s: list: %w", Name, err)
		}
		return errFullRead
	}
	_ = resp.Body.Close()
	v := fetch.ValidatorsOf(resp)
	last, dated := time.Time{}, false
	if t, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil {
		last, dated = t.UTC(), true
	}
	switch {
	case resp.StatusCode == http.StatusNotModified, resp.StatusCode == http.StatusOK && v.ETag != "" && v.ETag == r.is.List.ETag:
		return r.Checkpoint(r.is, false, "")
	case resp.StatusCode != http.StatusOK, v == (fetch.Validators{}), last.After(now.Add(time.Minute)):
		return errFullRead
	case dated && last.Before(r.is.Seen): // a restored backup has undone changes that were applied
		return errFullRead
	case !dated:
		last = now
	}
	n, ok := r.dayAge(last)
	if !ok {
		return errFullRead
	}
	skip, err := r.again(ctx, resp.ContentLength)
	if err != nil {
		return err
	}
	var files []*listFile
	defer func() {
		for _, f := range files {
			f.close()
		}
	}()
	newest, left := r.is.Seen, r.o.MaxList
	for i := skip; i <= n; i++ {
		f, err := r.delta(ctx, r.is.Seen.AddDate(0, 0, i), left)
		if err != nil {
			return err
		}
		files, left = append(files, f), left-f.bytes
		if t := parseTime(f.head.Generated); t.After(newest) {
			newest = t
		}
	}
	if dated && newest.Before(last.Truncate(time.Second)) {
		r.Note("E.8/delta-parity", deltaURL(r.is.List.URL, last), fmt.Sprintf("the deltas end at %s, the list at %s", kit.FormatTime(newest), kit.FormatTime(last)))
		return errFullRead
	}
	for _, f := range files {
		r.applyRate(f)
		if err := r.pages(ctx, f, true); err != nil {
			return err
		}
	}
	r.is.List.Validators, r.is.Seen = v, past(newest, now)
	return r.Checkpoint(r.is, false, "")
}

// again checks the delta of the last day read, which may have changed later that day. If it has not
// changed, skip is 1. list is the size of the list in bytes. If the delta is so large that reading
// the list costs less, as on the day of a site's first edition, the error is errFullRead.
func (r *run) again(ctx context.Context, list int64) (skip int, err error) {
	resp, err := r.Head(ctx, deltaURL(r.is.List.URL, r.is.Seen), listTypes, fetch.Validators{})
	if err != nil {
		if unavailable(err) || ctx.Err() != nil {
			return 0, fmt.Errorf("%s: delta: %w", Name, err)
		}
		return 0, nil // the GET reports the error
	}
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusGone: // the site has no deltas
		r.is.NoDeltas = true
		return 0, errFullRead
	default:
		return 0, nil
	}
	if t, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil && t.Before(r.is.Seen) {
		return 1, nil
	}
	if list > 0 && resp.ContentLength > list/2 {
		return 0, errFullRead
	}
	return 0, nil
}

// delta fetches the delta of a day. If the delta is unusable, the error is errFullRead.
func (r *run) delta(ctx context.Context, day time.Time, limit int64) (*listFile, error) {
	u := deltaURL(r.is.List.URL, day)
	f, err := r.loadOne(ctx, kit.Resource{URL: u}, max(limit, 1))
	switch {
	case err == nil:
		return f, nil
	case ctx.Err() != nil, unavailable(err) && !errors.Is(err, errVersion):
		return nil, err
	case errors.Is(err, millrace.ErrNotFound), errors.Is(err, errNoList):
		r.is.NoDeltas = day.Equal(r.is.Seen)
	default:
		r.Note("E.8/delta", u, "reading the list instead: "+err.Error())
	}
	return nil, errFullRead
}

// deltaURL returns the URL of the delta of a day: next to the list, or at the root if the list is
// at the well-known location.
func deltaURL(list string, day time.Time) string {
	folder := strings.TrimSuffix(list[:strings.LastIndexByte(list, '/')], "/.well-known")
	return folder + pathDeltas + day.Format(time.DateOnly) + ".json"
}
