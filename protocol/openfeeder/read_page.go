package openfeeder

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/chunk"
	"github.com/millrace/millrace/internal/kit"
)

// version returns the version of the page: its revision, else its modification date, else "".
func (it *item) version() string { return versionOf(it.Revision, it.Updated, "") }

// versionOf returns the version of a page: the revision, else the date, else the ETag. Only an ETag
// contains quotes.
func versionOf(revision, updated, etag string) string {
	switch t := parseTime(updated); {
	case revision != "" && len(revision) <= 200 && !strings.Contains(revision, `"`):
		return revision
	case !t.IsZero():
		return kit.FormatTime(t)
	}
	return etag
}

// Page fetches a page (3.2) with as many requests as its chunks need.
func (r *reader) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	if r.Err != nil {
		return nil, r.Err
	}
	f, err := r.found(ctx)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(f.Base)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", Name, err, millrace.ErrInvalid)
	}
	u, err := canon.Resolve(base, have.URL)
	if err != nil {
		return nil, fmt.Errorf("%s: page: %w: %w", Name, err, millrace.ErrInvalid)
	}
	if f.Static && have.Location == "" {
		if have.Location, err = r.locate(ctx, f, u); err != nil {
			return nil, err
		}
	}
	w, etag, err := r.document(ctx, f, u, have)
	if err != nil {
		return nil, err
	}
	if w.URL, err = r.checkURL(f, w.URL, u); err != nil {
		return nil, err
	}
	p := w.read()
	if p.Version = versionOf(w.Revision, w.Updated, etag); p.Version != "" && p.Version == have.Version {
		return nil, fmt.Errorf("%s: %s: %w", Name, u, millrace.ErrUnmodified)
	}
	return p, nil
}

// found returns the last feed found, or discovers the feed.
func (r *reader) found(ctx context.Context) (feed, error) {
	r.mu.Lock()
	f := r.feed
	r.mu.Unlock()
	if f.Endpoint != "" {
		return f, ctx.Err()
	}
	f, err := r.discover(ctx)
	if err == nil {
		r.remember(f)
	}
	return f, err
}

// document fetches all chunks of a page. If the parts have different states, document starts over.
// It returns an ETag only for a document with one part, because other parts may change while the
// ETag of the first stays the same.
func (r *reader) document(ctx context.Context, f feed, u string, have millrace.Ref) (w *page, etag string, err error) {
	for range 3 {
		part, tag, err := r.part(ctx, f, u, have, 1)
		if err != nil {
			return nil, "", err
		}
		w, etag = part, tag
		torn := false
		for number := 2; len(w.Chunks) < w.Meta.TotalChunks && have.Location == ""; number++ {
			etag = ""
			if part, _, err = r.part(ctx, f, u, millrace.Ref{URL: have.URL}, number); err != nil {
				return nil, "", err
			}
			if torn = part.Revision != w.Revision || part.Updated != w.Updated || part.Meta.TotalChunks != w.Meta.TotalChunks; torn {
				break
			}
			if part.Meta.Page != 0 && part.Meta.Page != number || len(part.Chunks) == 0 || part.Meta.Page == 0 && again(w.Chunks, part.Chunks) {
				r.Note("3.2/chunks", u, fmt.Sprintf("only %d of %d chunks are available", len(w.Chunks), w.Meta.TotalChunks))
				break
			}
			w.Chunks = append(w.Chunks, part.Chunks...)
		}
		if !torn {
			return w, etag, nil
		}
	}
	return nil, "", fmt.Errorf("%s: %s: page keeps changing while it is read: %w", Name, u, millrace.ErrUnavailable)
}

// again reports whether part starts with the same chunk as have, which means that the server
// ignores the page number.
func again(have, part []piece) bool {
	return len(have) > 0 && have[0].ID == part[0].ID && have[0].Text == part[0].Text
}

// part fetches one part of the chunks of a page.
func (r *reader) part(ctx context.Context, f feed, u string, have millrace.Ref, number int) (*page, string, error) {
	target := have.Location
	if target == "" {
		pairs := []string{"url", relative(f.Base, u), "limit", strconv.Itoa(maxLimit)}
		if number > 1 {
			pairs = append(pairs, "page", strconv.Itoa(number))
		}
		if target = f.query(pairs...); r.ignoresQueries() {
			return nil, "", errIgnored(target)
		}
	}
	etag := ""
	if strings.HasSuffix(have.Version, `"`) {
		etag = have.Version
	}
	head, body, err := r.get(ctx, target, etag)
	if err != nil {
		if head != nil && head.status == http.StatusNotModified && etag == "" {
			return nil, "", r.FormatError(target, "3.2", "304 for an unconditional request", nil)
		}
		return nil, "", fmt.Errorf("%s: page: %w", Name, err)
	}
	w, err := decodePage(body)
	if have.Location == "" {
		var x *index
		if err != nil {
			x, _ = decodeIndex(body) // if it is another document, x is nil
		}
		r.answered(x != nil)
	}
	if err != nil {
		return nil, "", ignoredQuery(err, body, target)
	}
	switch m := w.Meta; {
	case m.TotalChunks < len(w.Chunks):
		r.Note("3.2/total-chunks", target, fmt.Sprintf("total_chunks is %d, but the page has %d", m.TotalChunks, len(w.Chunks)))
	case m.ReturnedChunks != len(w.Chunks):
		r.Note("3.2/returned-chunks", target, fmt.Sprintf("returned_chunks is %d, but the response has %d", m.ReturnedChunks, len(w.Chunks)))
	}
	for i := range w.Chunks {
		switch w.Chunks[i].Type {
		case chunk.Paragraph, chunk.Heading, chunk.List, chunk.Code, chunk.Quote:
		default:
			r.Note("3.2/chunk-type", target, "unknown chunk type "+quote(w.Chunks[i].Type))
		}
	}
	return w, head.header.Get("ETag"), nil
}

// checkURL returns the URL of the page in a response. If that is not the requested page, it returns
// an error. The URLs may differ by http and https, by a trailing slash, or by the two origins of
// the feed.
func (r *reader) checkURL(f feed, is, asked string) (string, error) {
	u, err := f.url(r.Root, is)
	if err != nil {
		return "", errors.Join(r.FormatError(asked, "3.2", "url does not belong to the site", nil), err)
	}
	if plainURL(u) == plainURL(asked) {
		return u, nil
	}
	if targetOf(u) == targetOf(asked) {
		return asked, nil // both origins of the feed are allowed
	}
	return "", r.FormatError(asked, "3.2", "the response contains another page: "+kit.Short(u), nil)
}

func plainURL(u string) string {
	_, u, _ = strings.Cut(u, "://")
	path, query, _ := strings.Cut(u, "?")
	return strings.TrimSuffix(path, "/") + "?" + query
}
