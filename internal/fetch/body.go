package fetch

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace"
)

const (
	ratioFloor = 1 << 20 // decoded size up to which MaxRatio does not apply
	maxCodings = 2       // maximum number of codings; more are an attack or a mistake
	firstAlloc = 1 << 20 // maximum number of bytes allocated for a Content-Length before data arrives
)

type limits struct{ body, ratio int64 }

func (l limits) orDefault() limits {
	return limits{body: cmp.Or(l.body, 100<<20), ratio: cmp.Or(l.ratio, 100)}
}

// ReadBody reads the body of resp, verifies and decodes it as [Decode] does, and closes it. A body
// of more than limit bytes is an error. If limit is zero, the client's MaxBody applies; a greater
// limit does not raise MaxBody.
func ReadBody(resp *http.Response, limit int64) ([]byte, error) {
	r, err := decode(resp, limit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	var buf bytes.Buffer
	buf.Grow(int(min(max(resp.ContentLength, 0), firstAlloc)) + bytes.MinRead)
	if _, err := buf.ReadFrom(r); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// Decode returns the body of resp without its content codings (gzip, br, zstd). Data returned
// before io.EOF is not verified yet. io.EOF means that the body is complete, within the limits, and
// matches its Content-Digest. The limits are those of the client or the [Download] that fetched the
// body, or the defaults for other responses. The digest covers the coded bytes or, because of some
// proxies, the decoded ones.
//
// The first bytes of the body override its Content-Encoding. If a body declares a coding but is
// plain text, Decode returns it unchanged, because some proxies decode without changing the header.
// A body that declares no coding is never decoded. A range of a coded body (206) cannot be decoded.
//
// Closing the result, or an error of Decode, closes the body. Errors are [*BodyError], or those of
// the context or of another transport unchanged.
func Decode(resp *http.Response) (io.ReadCloser, error) { return decode(resp, 0) }

func decode(resp *http.Response, limit int64) (_ *content, err error) {
	body := resp.Body
	if body == nil {
		body = http.NoBody
	}
	c := &content{body: body, url: responseURL(resp), decoded: resp.Uncompressed}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	lim := limits{}.orDefault()
	var broken func()
	if w, ok := body.(*wireBody); ok {
		lim, broken = w.limits, func() {
			if w.broken != nil {
				w.broken()
			}
		}
		if w.keep != nil && w.coding == resp.Header.Get("Content-Encoding") {
			c.kept = new(bytes.Buffer)
		}
	} else if e, ok := body.(emptyBody); ok {
		broken = e.broken
	} else if resp.Request != nil {
		if d, ok := resp.Request.Context().Value(download{}).(download); ok {
			lim.body = d.limit
		}
	}
	if limit > 0 {
		lim.body = min(lim.body, limit)
	}
	codings, err := contentCodings(resp)
	if err != nil {
		return nil, c.invalid("coding", err.Error(), nil)
	}
	c.src = &source{r: body, url: c.url, want: -1, broken: broken}
	if hasBody(resp) && !resp.Uncompressed {
		c.src.want, c.src.digests = resp.ContentLength, digests(resp.StatusCode, resp.Header)
	}
	c.top = bufio.NewReader(c.src)
	for _, coding := range codings {
		open := decoders[coding]
		if open == nil {
			open = openUnknown(coding)
		}
		r, stop, err := open(c.top)
		if err != nil {
			return nil, c.explain(err)
		}
		if r == nil {
			continue // plain text despite the header
		}
		c.stops = append(c.stops, stop)
		c.top = bufio.NewReader(&meter{r: r, url: c.url, limits: lim, src: c.src})
	}
	if len(c.stops) == 0 {
		for i, d := range c.src.digests {
			c.src.digests[i].content = d.hash
		}
	}
	c.out = meter{r: c.top, url: c.url, limits: limits{body: lim.body}}
	return c, nil
}

// contentCodings returns the codings in decoding order.
func contentCodings(resp *http.Response) ([]string, error) {
	if !hasBody(resp) {
		return nil, nil
	}
	var codings []string
	for name := range strings.SplitSeq(strings.Join(resp.Header.Values("Content-Encoding"), ","), ",") {
		name = strings.ToLower(strings.Trim(name, " \t"))
		switch name {
		case "", "identity":
			continue
		case "x-gzip": // RFC 9110, section 8.4.1.3
			name = "gzip"
		}
		codings = append(codings, name)
	}
	if len(codings) > maxCodings {
		return nil, fmt.Errorf("too many content codings: %d", len(codings))
	}
	slices.Reverse(codings)
	return codings, nil
}

// hasBody reports whether resp can have a body, whatever its header declares.
func hasBody(resp *http.Response) bool {
	head := resp.Request != nil && resp.Request.Method == http.MethodHead
	return !head && resp.StatusCode != http.StatusNotModified && resp.StatusCode != http.StatusNoContent
}

// content is a decoded body.
type content struct {
	out   meter // the last stage, which Read reads
	body  io.ReadCloser
	src   *source
	top   *bufio.Reader
	stops []func()
	url   string
	// decoded reports whether the transport has already decoded the body.
	decoded bool
	kept    *bytes.Buffer // the content so far; nil if it is not kept
	err     error
}

func (c *content) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.out.Read(p)
	for _, d := range c.src.digests {
		if d.content != d.hash {
			d.content.Write(p[:n])
		}
	}
	if c.kept != nil && c.out.n <= maxDictionary {
		c.kept.Write(p[:n])
	}
	if ended(err) {
		err = c.src.verify()
	}
	switch w, _ := c.body.(*wireBody); {
	case err == nil:
	case !ended(err):
		err = c.explain(err)
	case w != nil:
		if w.onComplete != nil {
			w.onComplete(c.out.n)
		}
		if c.kept != nil && c.out.n == int64(c.kept.Len()) {
			w.keep(c.kept.Bytes())
		}
	}
	c.err = err
	return n, err
}

// Received returns the number of coded bytes received so far for a body of [Decode]. It
// returns 0 if unknown.
func Received(body io.Reader) int64 {
	if c, ok := body.(*content); ok && !c.decoded {
		return c.src.n
	}
	return 0
}

// Close closes the body. Reading the content afterwards fails.
func (c *content) Close() error {
	for _, stop := range slices.Backward(c.stops) {
		stop()
	}
	c.stops = nil
	c.err = cmp.Or(c.err, errClosed)
	return c.body.Close()
}

// explain returns the error to report for a read error: the error of the source, if any, or else a
// *BodyError. The source comes first, because a decoder may hide the reason why its input ended.
func (c *content) explain(err error) error {
	if c.src.err != nil && !ended(c.src.err) {
		return c.src.err
	}
	if _, ok := errors.AsType[*BodyError](err); ok {
		return err
	}
	if e, ok := errors.AsType[codingError](err); ok {
		return c.invalid("coding", e.Error(), nil)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return c.invalid("coding-truncated", "truncated content coding", nil)
	}
	return c.invalid("coding-broken", "invalid content coding", err)
}

func (c *content) invalid(code, reason string, err error) error {
	return &BodyError{URL: c.url, Code: code, Reason: reason, Kind: millrace.ErrInvalid, Err: err}
}

// ended reports whether err is io.EOF itself. A wrapped io.EOF means that the connection was
// broken.
func ended(err error) bool {
	return err == io.EOF //nolint:errorlint // see above
}

// source reads, counts and hashes the coded bytes. It returns io.EOF only after the number of bytes
// that the header declares.
type source struct {
	r       io.Reader
	url     string
	want    int64 // Content-Length; -1 if unknown
	n       int64
	digests []digest
	broken  func() // called if a digest does not match; may be nil
	err     error
}

func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p)
	s.n += int64(n)
	for _, d := range s.digests {
		d.hash.Write(p[:n])
	}
	if ended(err) && s.n < s.want {
		err = &BodyError{URL: s.url, Code: "body-truncated", Reason: fmt.Sprintf("cut short after %d of %d bytes", s.n, s.want), Kind: millrace.ErrUnavailable}
	}
	s.err = err
	return n, err
}

// verify returns io.EOF if the body, read to its end, matches the digests in the header.
func (s *source) verify() error {
	for _, d := range s.digests {
		if !d.ok() {
			if s.broken != nil {
				s.broken()
			}
			return &BodyError{URL: s.url, Code: "digest", Reason: "the " + d.name + " digest in the header does not match", Kind: millrace.ErrInvalid}
		}
	}
	return io.EOF
}

// meter applies the limits to one stage of decoding. Each stage has its own meter, because stacked
// codings can expand in the middle and still end in few bytes.
type meter struct {
	r      io.Reader
	url    string
	limits limits
	src    *source // nil if no ratio applies
	n      int64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.n += int64(n)
	if m.n > m.limits.body {
		return 0, tooLarge(m.url, "body-size", "longer than %d bytes", m.limits.body)
	}
	if m.src != nil && m.n > ratioFloor && m.n/m.limits.ratio > m.src.n {
		return 0, tooLarge(m.url, "coding-ratio", "decodes to more than %d times its coded size", m.limits.ratio)
	}
	return n, err
}
