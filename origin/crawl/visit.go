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
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
)

// outcome is what a visit found.
type outcome uint8

const (
	unchanged outcome = iota // 304: what is held is what there is
	page                     // an HTML page
	moved                    // it leads to another address
	nothing                  // no page, and no mistake: another media type, another site
	empty                    // no page, and worth a word: no content, too large
	absent                   // not there, or not for us
	failed                   // nothing is known: the site or the network has a problem
)

// result is what a visit brought.
type result struct {
	task
	outcome outcome
	err     error  // why; of empty, absent and failed
	to      string // moved: canonical, not cleaned

	rules *ruling // that it is extracted by

	page     *millrace.Page // with the task's URL and no version
	made     version        // of the page
	received int64          // bytes of the body over the wire, 0 = not known
	reading
	same      bool   // the page says what is held of it
	canonical string // another address of the site by which the page says it goes
	elsewhere string // the same, on another site
	links     []string
	feeds     []string
}

// maxPage is the most bytes that a page may have.
const maxPage = 50 << 20

// sniffLength is how much of a body tells its type, and large how much makes a
// page one that is read and taken apart only while no other such page is.
const (
	sniffLength = 1 << 10
	large       = 1 << 20
)

// visit asks for one address, without following where it leads.
func (c *Crawl) visit(ctx context.Context, rules *ruling, t task, buf *bytes.Buffer) *result {
	r := &result{task: t, rules: rules}
	err := c.fetch(ctx, r, buf)
	if cut, ok := errors.AsType[*fetch.BodyError](err); ok && cut.BrokenOff() && ctx.Err() == nil {
		*r = result{task: t, rules: rules}
		err = c.fetch(ctx, r, buf) // once more: most come whole then
	}
	if err != nil {
		r.err = err
		r.outcome = outcomeOf(err)
	}
	return r
}

// outcomeOf tells what an error says of a page.
func outcomeOf(err error) outcome {
	if status, ok := errors.AsType[*fetch.StatusError](err); ok {
		// What a server says of a request that is right. 425 is Too Early.
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
	conditional := !r.full && r.version.conditions(req.Header, r.remade)
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
	if !isHTML(resp.Header.Get("Content-Type")) {
		r.outcome = nothing
		return nil
	}
	data, release, err := c.read(ctx, r, resp, buf)
	defer release()
	if err != nil {
		return err
	}
	if data == nil {
		r.outcome = nothing
		return nil
	}
	return c.extract(ctx, r, resp, data)
}

// target returns the canonical URL that a response redirects to, "" if it does
// not. Servers behind a proxy that speaks https often redirect to their own
// http: that is a page of the site, and is asked for by https.
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

// isHTML reports whether a media type may be that of a page; "" may.
func isHTML(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		mediaType, _, _ = strings.Cut(contentType, ";")
		mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	}
	return mediaType == "" || mediaType == "text/html" || mediaType == "application/xhtml+xml"
}

// read reads a body, nil if its first bytes say that it is no HTML. What it
// returns may be used until release is called.
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
		// One at a time: eight trees of 50 MB pages would be gigabytes.
		select {
		case c.heavy <- struct{}{}:
		case <-ctx.Done():
			return nil, release, ctx.Err()
		}
		last := release
		release = func() { last(); <-c.heavy }
		if n, err = io.CopyN(buf, body, maxPage-large); n == maxPage-large {
			return nil, release, millrace.Coded("page-size", fmt.Errorf("%w: a page of more than %d bytes", millrace.ErrTooLarge, maxPage))
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, release, err
	}
	r.received = fetch.Received(body)
	return buf.Bytes(), release, nil
}

// sniff reports whether the first bytes of a body may be those of a page.
// Servers call everything HTML that a script sends.
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
