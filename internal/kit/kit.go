// Package kit holds code that the packages of several protocols share: requests, cursors,
// policies, titles and times.
package kit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
)

// Get sends a request without a body and returns the response, whose URL is the one after
// redirects. Errors are those of [fetch.Do], and [millrace.ErrInvalid].
func Get(ctx context.Context, client *http.Client, method, target string, header http.Header) (*http.Response, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, millrace.ErrInvalid)
	}
	req := &http.Request{Method: method, URL: u, Host: u.Host, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	resp, err := fetch.Do(ctx, client, req)
	if err != nil {
		return nil, err
	}
	if resp.Request == nil {
		resp.Request = req
	}
	return resp, nil
}

// Accept returns the header of a request for media types. The request is conditional if v has
// validators.
func Accept(types string, v fetch.Validators) http.Header {
	h := http.Header{"Accept": {types}}
	v.Set(h)
	return h
}

// FormatURL sets the URL of a format error.
func FormatURL(err error, url string) error {
	if f, ok := errors.AsType[*millrace.FormatError](err); ok {
		f.URL = url
	}
	return err
}

// Title returns a title of a page that is not blank: its own, its first heading,
// the last segment of the path of u, or the host.
func Title(p *millrace.Page, u string) string {
	if t := canon.ValidUTF8(p.Title); strings.TrimSpace(t) != "" {
		return t
	}
	for i := range p.Blocks {
		if t := canon.ValidUTF8(p.Blocks[i].Text); p.Blocks[i].Type == millrace.HeadingBlock && strings.TrimSpace(t) != "" {
			return t
		}
	}
	_, rest, _ := strings.Cut(u, "://")
	rest, _, _ = strings.Cut(rest, "?")
	return LastSegment(rest)
}

// LastSegment returns the last segment of a path, unescaped if the result is valid.
func LastSegment(path string) string {
	path = strings.TrimRight(path, "/")
	segment := path[strings.LastIndexByte(path, '/')+1:]
	t, err := url.PathUnescape(segment)
	if err != nil || !utf8.ValidString(t) || strings.TrimSpace(t) == "" || strings.ContainsFunc(t, unicode.IsControl) {
		return segment
	}
	return t
}

// Second returns t in UTC, truncated to whole seconds. If RFC 3339 cannot represent t, Second returns
// the zero time.
func Second(t time.Time) time.Time {
	if t = t.UTC().Truncate(time.Second); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// FormatTime returns a time in the form of documents (RFC 3339), or "" for one that [Second]
// makes zero.
func FormatTime(t time.Time) string {
	if t = Second(t); t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// SameOrigin reports whether a canonical URL has the scheme, host and port of a
// base.
func SameOrigin(base, u string) bool {
	scheme, rest, ok := strings.Cut(base, "://")
	host, _, _ := strings.Cut(rest, "/")
	n := len(scheme) + len("://") + len(host)
	return ok && strings.HasPrefix(u, base[:n]) && (len(u) == n || u[n] == '/')
}
