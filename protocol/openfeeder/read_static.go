package openfeeder

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
)

// static reads the index of a static feed, unless the server confirms that no file of the index has
// changed.
func (r *run) static(ctx context.Context) error {
	changed := len(r.is.Files) == 0
	for _, f := range r.is.Files {
		if changed {
			break
		}
		x, _, err := r.staticFile(ctx, f)
		if err != nil {
			return err
		}
		changed = x != nil
	}
	if !changed {
		return r.Checkpoint(r.is, false, "")
	}
	c := cursor{Root: r.is.Root, Found: r.is.Found, Feed: r.is.Feed}
	complete := true
	for target := r.is.Feed.Endpoint; target != ""; {
		x, f, err := r.staticFile(ctx, kit.Resource{URL: target})
		if err != nil {
			return err
		}
		c.Files = append(c.Files, *f)
		if err := r.names(ctx, x); err != nil {
			return err
		}
		if target, err = r.staticNext(x, c.Files); err != nil {
			return err
		}
		if target == "" && x.TotalPages > len(c.Files) {
			complete = false
			r.Note("reader/static-pages", f.URL, fmt.Sprintf("the index has %d pages but no next", x.TotalPages))
		}
	}
	if i := slices.IndexFunc(c.Files, func(f kit.Resource) bool { return f.Validators == (fetch.Validators{}) }); i >= 0 {
		c.Files = nil // send no conditional requests
	}
	return r.Checkpoint(c, complete, "")
}

// staticNext returns the URL of the next file of a static index, or "" after the last one.
func (r *run) staticNext(x *index, files []kit.Resource) (string, error) {
	if x.Next == "" {
		return "", nil
	}
	last := files[len(files)-1].URL
	next, err := r.documentAt(x.Next, r.is.Feed)
	if err == nil && (len(files) == maxPages || slices.ContainsFunc(files, func(f kit.Resource) bool { return f.URL == next })) {
		err = errors.New("already read")
	}
	if err != nil {
		return "", &millrace.FormatError{Protocol: Name, URL: last, Position: "/next", Section: "3.3", Reason: "next is not a usable URL", Err: err}
	}
	return next, nil
}

// staticFile fetches a file of the index with its validators. If the file has not changed, x is
// nil.
func (r *reader) staticFile(ctx context.Context, f kit.Resource) (x *index, is *kit.Resource, err error) {
	resp, err := r.ask(ctx, f.URL, f.Validators, mediaType)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: index: %w", Name, err)
	}
	defer resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		if errors.Is(err, millrace.ErrUnmodified) && f.Validators != (fetch.Validators{}) {
			return nil, &f, nil
		}
		return nil, nil, fmt.Errorf("%s: index: %w", Name, err)
	}
	body, err := fetch.ReadBody(resp, pageLimits.Size)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: index: %w", Name, err)
	}
	if x, err = decodeIndex(body); err != nil {
		return nil, nil, kit.FormatURL(err, f.URL)
	}
	return x, &kit.Resource{URL: f.URL, Validators: fetch.ValidatorsOf(resp)}, nil
}

// documentAt returns the URL of a file of a static feed. The file must be on the endpoint's origin.
func (r *reader) documentAt(ref string, f feed) (string, error) {
	base, err := url.Parse(f.Endpoint)
	if err != nil {
		return "", fmt.Errorf("%w: %w", err, millrace.ErrInvalid)
	}
	u, err := canon.Resolve(base, ref)
	if err == nil && !kit.SameOrigin(f.Endpoint, u) {
		err = errors.New("on another origin: " + kit.Short(u))
	}
	if err != nil {
		return "", &millrace.FormatError{Protocol: Name, Section: "3.3", Reason: "not a document of the feed", Err: err}
	}
	return u, nil
}

// locate finds the URL of a page's file in the index.
func (r *reader) locate(ctx context.Context, f feed, page string) (string, error) {
	var files []kit.Resource
	run := &run{reader: r, is: cursor{Feed: f}}
	for target := f.Endpoint; target != ""; {
		x, is, err := r.staticFile(ctx, kit.Resource{URL: target})
		if err != nil {
			return "", err
		}
		files = append(files, *is)
		for i := range x.Items {
			if u, err := f.url(r.Root, x.Items[i].URL); err == nil && u == page && x.Items[i].Document != "" {
				return r.documentAt(x.Items[i].Document, f)
			}
		}
		if target, err = run.staticNext(x, files); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s: %s is not in the index or has no document: %w", Name, page, millrace.ErrNotFound)
}
