package scp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/dcz"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
)

const (
	maxTries    = 4              // maximum number of consecutive requests that each receive fewer than progress bytes
	maxRestarts = 3              // maximum number of restarts per file
	progress    = 1 << 20        // minimum number of bytes that count as progress
	leastRate   = 128 << 10      // download rate, in bytes per second, from which the time limit follows
	longest     = 12 * time.Hour // maximum time limit of a download
)

// spool is a downloaded file. Its bytes are as received, unless decoded is set.
type spool struct {
	file *os.File
	size int64 // number of bytes so far
	fetch.Validators
	total       int64 // size of the complete file; -1 = unknown
	restarts    int
	url         string // URL after redirects
	coding      string // Content-Encoding
	decoded     bool   // whether the content was decoded
	contentType string
}

func (s *spool) close() {
	discard(s.file)
}

// temporary creates a temporary file, which discard deletes. On systems that can remove the name of
// an open file, the file is also deleted when the process ends.
func temporary() (*os.File, error) {
	f, err := os.CreateTemp("", "millrace-*.scp")
	if err != nil {
		return nil, fmt.Errorf("create temporary file: %w", err)
	}
	_ = os.Remove(f.Name())
	return f, nil
}

func discard(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}

// allowed reports whether a collection may be fetched from the host of u.
func (r *run) allowed(u string) bool {
	return r.o.Hosts == nil || hostOf(u) == hostOf(r.Root) || slices.Contains(r.o.Hosts, hostOf(u))
}

// visit reports a note for each new host of collections. If the options do not allow the host, for
// example after a redirect, it returns an error.
func (r *run) visit(at string) error {
	host := hostOf(at)
	if !r.allowed(at) {
		return fmt.Errorf("%s: %w: %w", at, errHost, millrace.ErrForbidden)
	}
	if host != hostOf(r.Root) && !r.hosts[host] {
		r.hosts[host] = true
		r.Note(noteHost, at, "collections are fetched from "+host)
	}
	return nil
}

// download fetches a file, conditionally if it was applied before. If the server sent a strong
// ETag, a truncated download is continued by a range request (RFC 9110, section 14); otherwise it
// is restarted. The length is not compared with the sitemap, because the content itself shows
// whether it is complete.
func (r *run) download(ctx context.Context, f file, have kit.Resource) (_ *spool, err error) {
	if f.size > r.left {
		return nil, r.overQuota(f.url)
	}
	out, err := temporary()
	if err != nil {
		return nil, err
	}
	s := &spool{file: out}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	expected := f.size
	if expected == 0 {
		expected = progress << 10
	}
	timeout := min(time.Minute+time.Duration(expected/leastRate)*time.Second, longest)
	for tries := 0; ; {
		before := s.size
		again, err := r.part(fetch.Download(ctx, min(r.left, maxFile)+1, timeout), f, have, s)
		cut, isCut := errors.AsType[*cutError](err)
		if !again && err == nil {
			return s, nil
		}
		if err != nil && !isCut {
			return nil, err
		}
		if tries++; s.size-before >= progress {
			tries = 0
		}
		if tries > maxTries || s.restarts > maxRestarts {
			if err == nil {
				err = fmt.Errorf("%s: file keeps changing during download: %w", f.url, millrace.ErrUnavailable)
			}
			return nil, err
		}
		if isCut && (errors.Is(cut, millrace.ErrInvalid) || !isStrong(s.ETag) || s.decoded) {
			if err := s.restart(); err != nil {
				return nil, err
			}
		}
	}
}

// cutError is the error for a truncated or altered body.
type cutError struct{ err error }

func (e *cutError) Error() string { return e.err.Error() }
func (e *cutError) Unwrap() error { return e.err }

// isStrong reports whether an entity tag is strong, as If-Range requires (RFC 9110, section
// 13.1.5).
func isStrong(etag string) bool { return len(etag) > 2 && etag[0] == '"' && etag[len(etag)-1] == '"' }

// restart discards the received bytes.
func (s *spool) restart() error {
	if s.size > 0 {
		s.restarts++
	}
	s.size, s.total, s.Validators = 0, -1, fetch.Validators{}
	if err := s.file.Truncate(0); err != nil {
		return err
	}
	_, err := s.file.Seek(0, io.SeekStart)
	return err
}

// part requests the missing bytes of a file. again reports whether bytes are still missing.
func (r *run) part(ctx context.Context, f file, have kit.Resource, s *spool) (again bool, err error) {
	header := http.Header{"Accept": {contentType + ", */*;q=0.5"}, "Accept-Encoding": {"zstd, gzip"}}
	if s.size > 0 {
		header.Set("Range", "bytes="+strconv.FormatInt(s.size, 10)+"-")
		header.Set("If-Range", s.ETag)
	} else {
		have.Set(header)
	}
	resp, err := r.get(ctx, f.url, header)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if err := r.visit(resp.Request.URL.String()); err != nil {
		return false, err
	}
	switch {
	case resp.StatusCode == http.StatusNotModified && s.size == 0 && have.Validators != (fetch.Validators{}):
		return false, fmt.Errorf("%s: %w", f.url, millrace.ErrUnmodified)
	case resp.StatusCode == http.StatusOK:
		if s.size > 0 {
			r.Note(noteChanged, f.url, "the file has changed or does not support ranges; restarting the download")
		}
		if err := s.restart(); err != nil {
			return false, err
		}
		s.total, s.Validators = resp.ContentLength, fetch.ValidatorsOf(resp)
		s.url, s.decoded, s.contentType = resp.Request.URL.String(), resp.Uncompressed, typeOf(resp.Header)
		s.coding = namedCoding(resp)
		if f.coded && !s.decoded {
			return false, fmt.Errorf("%s: the server does not have the dictionary: %w", f.url, millrace.ErrNotFound)
		}
		if !s.decoded && len(resp.Header[dcz.Use]) > 0 {
			s.decoded, s.total = true, -1 // decode the content, because the client stores it as a dictionary
		}
	case resp.StatusCode == http.StatusPartialContent && s.size > 0 && s.continues(resp):
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && s.size > 0:
		if resp.Header.Get("Content-Range") == "bytes */"+strconv.FormatInt(s.size, 10) {
			r.Note("http/content-length", f.url, "Content-Length is larger than the file")
			return false, nil
		}
		return true, s.restart()
	case resp.StatusCode == http.StatusPartialContent:
		return true, s.restart()
	case resp.StatusCode == http.StatusNotModified:
		return false, fmt.Errorf("%s: 304 for an unconditional request: %w", f.url, millrace.ErrInvalid)
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone:
		// The error is not ErrNotFound: the site has the protocol, but violates it.
		return false, &ruled{"download/get", fmt.Errorf("%s: file listed in the sitemap not found (status %d): %w", f.url, resp.StatusCode, millrace.ErrInvalid)}
	default:
		if err := fetch.CheckStatus(resp); err != nil {
			return false, err
		}
		return false, fmt.Errorf("%s: unexpected status %d: %w", f.url, resp.StatusCode, millrace.ErrInvalid)
	}
	if err := r.copy(ctx, s, resp); err != nil {
		return false, err
	}
	return s.total > s.size, nil
}

// continues reports whether a response is the rest of the same representation.
func (s *spool) continues(resp *http.Response) bool {
	if tag := resp.Header.Get("ETag"); tag != "" && tag != s.ETag {
		return false
	}
	ranges, total, ok := strings.Cut(resp.Header.Get("Content-Range"), "/")
	if !ok || !strings.HasPrefix(ranges, "bytes "+strconv.FormatInt(s.size, 10)+"-") {
		return false
	}
	n, err := strconv.ParseInt(total, 10, 64)
	if err == nil && s.total < 0 {
		s.total = n
	}
	return total == "*" || err == nil && n == s.total
}

// copy appends a body to the spool, and verifies it by its Content-Digest. If the body is truncated
// or does not match, the error is a *cutError.
func (r *run) copy(ctx context.Context, s *spool, resp *http.Response) error {
	open := asSent
	if s.decoded {
		open = fetch.Decode
	}
	body, err := open(resp)
	if err != nil {
		return err
	}
	defer body.Close()
	n, err := io.Copy(s.file, io.LimitReader(body, min(r.left, maxFile-s.size)+1))
	s.size += n
	if r.left -= n; r.left < 0 {
		return r.overQuota(s.url)
	}
	if s.size > maxFile {
		return fmt.Errorf("%s: more than %d bytes: %w", s.url, int64(maxFile), millrace.ErrTooLarge)
	}
	if _, local := errors.AsType[*fs.PathError](err); err == nil || local || ctx.Err() != nil || errors.Is(err, millrace.ErrTooLarge) {
		return err
	}
	return &cutError{remote(ctx, err)}
}

func (r *run) overQuota(url string) error {
	return fmt.Errorf("%s: exceeds the quota of %d bytes per run: %w", url, r.o.Quota, millrace.ErrTooLarge)
}

func typeOf(h http.Header) string {
	t, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return t
}

// namedCoding returns the content coding of a response, or "" if it has none.
func namedCoding(resp *http.Response) string {
	return strings.Replace(strings.ToLower(resp.Header.Get("Content-Encoding")), "identity", "", 1)
}

// asSent returns the body of a response without removing its coding, because the first bytes of the
// file identify the coding.
func asSent(resp *http.Response) (io.ReadCloser, error) {
	resp.Header = resp.Header.Clone()
	resp.Header.Del("Content-Encoding")
	return fetch.Decode(resp)
}
