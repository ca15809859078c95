package crawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
)

// outcome is the kind of a result.
type outcome uint8

const (
	unchanged outcome = iota // 304: the stored page is current
	page                     // the response is an HTML page
	moved                    // the response is a redirect
	notPage                  // the response is not HTML
	empty                    // not a page, which is reported: the HTML has no content or is too large
	absent                   // missing or not allowed
	failed                   // unavailable, because of the site or the network
)

// result is the result of fetching one address.
type result struct {
	task
	outcome outcome
	err     error  // reason for empty, absent and failed; for notPage and page, a note to report
	to      string // target of a redirect: a canonical URL, but not cleaned

	rules *extractionRules // rules used by the extraction

	page     *millrace.Page // page with the task's URL and without a version
	made     version        // version of the page
	received int64          // number of bytes of the body in the response, or 0 if unknown
	reading
	same             bool   // the page is equal to the stored one
	canonical        string // the page's canonical address, if it is another one on the site
	foreignCanonical string // the page's canonical address if that is on another site
	links            []string
	feeds            []string
}

// maxPage is the maximum size of a page in bytes.
const maxPage = 50 << 20

// sniffLength is the number of bytes that determine the type of a body. Pages of more than large
// bytes are processed one at a time.
const (
	sniffLength = 1 << 10
	large       = 1 << 20
)

// visit fetches one address without following redirects.
func (c *Crawl) visit(ctx context.Context, rules *extractionRules, t task, buf *bytes.Buffer) *result {
	r := &result{task: t, rules: rules}
	err := c.fetch(ctx, r, buf)
	if cut, ok := errors.AsType[*fetch.BodyError](err); ok && cut.Interrupted() && ctx.Err() == nil {
		*r = result{task: t, rules: rules}
		err = c.fetch(ctx, r, buf) // most requests with an incomplete response succeed the second time
	}
	if err != nil {
		r.err = err
		r.outcome = outcomeOf(err)
	}
	return r
}

// outcomeOf returns the outcome that corresponds to an error.
func outcomeOf(err error) outcome {
	if status, ok := errors.AsType[*fetch.StatusError](err); ok {
		// With a 4xx status other than 425 (Too Early), the server rejects a valid request.
		if status.Code >= 400 && status.Code < 500 && !errors.Is(err, millrace.ErrUnavailable) && status.Code != http.StatusTooEarly {
			return absent
		}
		return failed
	}
	if _, ok := errors.AsType[*fetch.RobotsError](err); ok {
		return absent
	}
	if _, ok := errors.AsType[*fetch.RedirectError](err); ok || errors.Is(err, errLogin) {
		return absent
	}
	if errors.Is(err, millrace.ErrTooLarge) {
		return empty
	}
	return failed
}

func (c *Crawl) fetch(ctx context.Context, r *result, buf *bytes.Buffer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	req.Header.Set("Accept", "text/html, application/xhtml+xml, */*;q=0.1")
	conditional := !r.full && r.version.conditions(req.Header, r.reextracted)
	resp, err := fetch.Do(ctx, c.single, req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	to, err := c.target(resp)
	switch {
	case err != nil:
		return err
	case to != "":
		r.outcome, r.to = moved, to
		return nil
	case resp.StatusCode == http.StatusNotModified && conditional:
		r.outcome = unchanged
		return nil
	}
	if err := fetch.CheckStatus(resp); err != nil {
		return err
	}
	if mediaType := resp.Header.Get("Content-Type"); !isHTML(mediaType) {
		r.outcome, r.err = notPage, extract.Unsupported(mediaType, nil)
		return nil
	}
	data, release, err := c.read(ctx, r, resp, buf)
	defer release()
	if err != nil {
		return err
	}
	if data == nil {
		r.outcome, r.err = notPage, extract.Unsupported("", buf.Bytes())
		return nil
	}
	return c.extract(ctx, r, resp, data)
}

// target returns the canonical URL of a redirect, or "" if the response is not a redirect. Servers
// behind a TLS proxy often redirect to their own http URLs. The crawl fetches these pages with
// https.
func (c *Crawl) target(resp *http.Response) (string, error) {
	to, err := fetch.RedirectTarget(resp)
	if refused, ok := errors.AsType[*fetch.RedirectError](err); ok {
		u, e := canon.URL(refused.To)
		if _, v := c.scope.clean(u); e == nil && v == inside {
			return u, nil
		}
	}
	if to == nil || err != nil {
		return "", err
	}
	u, err := canon.URL(to.String())
	if err != nil {
		return "", &fetch.RedirectError{From: resp.Request.URL.String(), To: to.Redacted(), Reason: err.Error()}
	}
	return u, nil
}

// isHTML reports whether a media type may belong to a page. It returns true for "".
func isHTML(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		mediaType, _, _ = strings.Cut(contentType, ";")
		mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	}
	return mediaType == "" || mediaType == "text/html" || mediaType == "application/xhtml+xml"
}

// read reads a body. It returns nil if the first bytes are not HTML. The bytes are valid until the
// caller calls release.
func (c *Crawl) read(ctx context.Context, r *result, resp *http.Response, buf *bytes.Buffer) (_ []byte, release func(), err error) {
	release = func() {
		if buf.Cap() > large {
			*buf = bytes.Buffer{}
		}
	}
	body, err := fetch.Decode(resp)
	if err != nil {
		return nil, release, err
	}
	defer func() { _ = body.Close() }()
	buf.Reset()
	n, err := io.CopyN(buf, body, sniffLength)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, release, err
	}
	if !sniff(buf.Bytes(), resp.Header.Get("Content-Type")) {
		return nil, release, nil
	}
	if n == sniffLength {
		n, err = io.CopyN(buf, body, large)
	}
	if n == large {
		// Only one large page is processed at a time, because the parse trees of eight 50 MB pages
		// would take gigabytes.
		select {
		case c.heavy <- struct{}{}:
		case <-ctx.Done():
			return nil, release, ctx.Err()
		}
		last := release
		release = func() { last(); <-c.heavy }
		if n, err = io.CopyN(buf, body, maxPage-large); n == maxPage-large {
			return nil, release, millrace.Coded("page-size", fmt.Errorf("%w: page of more than %d bytes", millrace.ErrTooLarge, maxPage))
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, release, err
	}
	r.received = fetch.Received(body)
	return buf.Bytes(), release, nil
}

// sniff reports whether the first bytes of a body may belong to a page. Many servers label the
// output of every script as HTML.
func sniff(head []byte, mediaType string) bool {
	text := bytes.ToLower(bytes.TrimLeft(head, "\xEF\xBB\xBF \t\r\n"))
	if bytes.HasPrefix(text, []byte("<?xml")) {
		if i := bytes.Index(text, []byte("?>")); i > 0 {
			text = bytes.TrimLeft(text[i+2:], " \t\r\n")
		}
	}
	for _, root := range []string{"<rss", "<feed", "<rdf:rdf", "<urlset", "<sitemapindex", "<svg", "<opensearchdescription"} {
		if bytes.HasPrefix(text, []byte(root)) {
			return false
		}
	}
	guess := http.DetectContentType(head)
	if mediaType == "" {
		return strings.HasPrefix(guess, "text/html") || strings.HasPrefix(guess, "text/xml")
	}
	return strings.HasPrefix(guess, "text/") || guess == "application/octet-stream"
}
