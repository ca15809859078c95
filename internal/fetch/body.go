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
	ratioFloor = 1 << 20 // decoded bytes that no ratio limits
	maxCodings = 2       // more are an attack or a mistake
	firstAlloc = 1 << 20 // most that a Content-Length alone may allocate
)

type limits struct{ body, ratio int64 }

func (l limits) orDefault() limits {
	return limits{body: cmp.Or(l.body, 100<<20), ratio: cmp.Or(l.ratio, 100)}
}

// ReadBody reads, verifies and decodes the body of resp as [Decode] does, at
// most limit bytes, and closes it. A limit of 0 is the client's MaxBody; a
// greater one does not raise it.
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

// Decode gives the content of resp: its body without its codings (gzip, br,
// zstd). What it gives before io.EOF is not verified yet: only io.EOF says
// that the body was whole, within the limits of the client that fetched it
// (the defaults, or those of a [Download], for a response from elsewhere), and
// as its Content-Digest says, which is over the coded bytes, or over the content
// as some proxies leave it.
//
// The first bytes have the last word about a coding: a body that claims any
// coding but is plain text is taken as it is, as from a proxy that decodes
// and forgets to say so; one that claims none is never decoded. A range of a
// coded body (206) cannot be decoded.
//
// Closing the result closes the body; so does an error. Errors are
// [*BodyError], or those of the context or of another transport as they are.
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
		lim, broken = w.limits, w.broken
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
		c.src.want, c.src.digests = resp.ContentLength, digests(resp.Header)
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
			continue // plain after all
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

// contentCodings lists the codings in the order in which they come off.
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
		return nil, fmt.Errorf("%d content codings on top of each other", len(codings))
	}
	slices.Reverse(codings)
	return codings, nil
}

// hasBody is false where the header describes a body that does not come.
func hasBody(resp *http.Response) bool {
	head := resp.Request != nil && resp.Request.Method == http.MethodHead
	return !head && resp.StatusCode != http.StatusNotModified && resp.StatusCode != http.StatusNoContent
}

// content is a decoded body.
type content struct {
	out   meter // what Read reads
	body  io.ReadCloser
	src   *source
	top   *bufio.Reader
	stops []func()
	url   string
	// decoded says that the transport has taken a coding off already.
	decoded bool
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
	if ended(err) {
		err = c.src.verify()
	}
	switch w, _ := c.body.(*wireBody); {
	case err == nil:
	case !ended(err):
		err = c.explain(err)
	case w != nil && w.onComplete != nil:
		w.onComplete(c.out.n)
	}
	c.err = err
	return n, err
}

// Received returns how many bytes of a body of [Decode] have come over the wire
// so far, before decoding; 0 if unknown.
func Received(body io.Reader) int64 {
	if c, ok := body.(*content); ok && !c.decoded {
		return c.src.n
	}
	return 0
}

// Close closes the body. The content cannot be read any more.
func (c *content) Close() error {
	for _, stop := range slices.Backward(c.stops) {
		stop()
	}
	c.stops = nil
	c.err = cmp.Or(c.err, errClosed)
	return c.body.Close()
}

// explain makes a *BodyError of what went wrong in reading. A decoder may
// hide why its input ended, so the source is asked first.
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
		return c.invalid("coding-cut", "the content coding ends too early", nil)
	}
	return c.invalid("coding-broken", "the content coding is broken", err)
}

func (c *content) invalid(code, reason string, err error) error {
	return &BodyError{URL: c.url, Code: code, Reason: reason, Kind: millrace.ErrInvalid, Err: err}
}

// ended is true for the proper end of a stream alone. A wrapped io.EOF is a
// connection that broke.
func ended(err error) bool {
	return err == io.EOF //nolint:errorlint // see above
}

// source reads the coded bytes, counts and hashes them, and gives io.EOF only
// when there are as many as the header promised.
type source struct {
	r       io.Reader
	url     string
	want    int64 // Content-Length; -1: not known
	n       int64
	digests []digest
	broken  func() // called if a digest does not match; nil if none
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
		err = &BodyError{URL: s.url, Code: "body-cut", Reason: fmt.Sprintf("cut short after %d of %d bytes", s.n, s.want), Kind: millrace.ErrUnavailable}
	}
	s.err = err
	return n, err
}

// verify returns io.EOF if the body, which was read to its end, has the digests
// that the header promised.
func (s *source) verify() error {
	for _, d := range s.digests {
		if !d.ok() {
			if s.broken != nil {
				s.broken()
			}
			return &BodyError{URL: s.url, Code: "digest", Reason: "Content-Digest " + d.name + " does not match", Kind: millrace.ErrInvalid}
		}
	}
	return io.EOF
}

// meter holds one stage of decoding to the limits. Every stage has its own: a
// stack of codings can expand in the middle to nothing at its end.
type meter struct {
	r      io.Reader
	url    string
	limits limits
	src    *source // nil: no ratio
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
