package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/dcz"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/protocol"
)

// drainLimit is the maximum number of bytes that are read from an unwanted body so that its
// connection can be reused.
const drainLimit = 64 << 10

// memo is a transport that caches the responses to GET and HEAD, and limits requests to a budget.
// Concurrent equal requests share one response. A body is read only as far as a reader needs, and
// the next reader continues from there. memo is safe for concurrent use.
//
// When [fetch.Do] retries a request, memo sends it a second time, but not more often. If the second
// attempt fails too, memo returns an error that fetch.Do does not retry, because an estimate is not
// worth a longer wait.
type memo struct {
	next        http.RoundTripper
	ctx         context.Context // context of the probe; when it ends, all requests end
	maxRequests int
	maxBytes    int64
	maxBody     int64
	progress    func(requests int)        // may be nil
	obey        func(*http.Request) error // returns an error if a URL must not be requested; may be nil

	mu       sync.Mutex
	answers  map[string]*answer
	bodies   []*body
	requests int
	bytes    int64
	draining sync.WaitGroup
	over     error // first limit that was exceeded

	dictionaries map[string]bool // URLs of responses that the server offers as dictionaries
}

// answer is the cached result of a request.
type answer struct {
	done  chan struct{} // closed once the other fields are set
	resp  *http.Response
	body  *body
	err   error
	again bool // the failure is temporary, so the next equal request is sent
}

// Unwrap implements [fetch.Wrapper].
func (m *memo) Unwrap() http.RoundTripper { return m.next }

// RoundTrip implements [http.RoundTripper].
func (m *memo) RoundTrip(req *http.Request) (*http.Response, error) {
	if m.obey != nil {
		if err := m.obey(req); err != nil {
			return nil, err
		}
	}
	if req.Method != http.MethodGet && req.Method != http.MethodHead || req.Body != nil && req.Body != http.NoBody {
		if err := m.count(); err != nil {
			return nil, err
		}
		return m.next.RoundTrip(req)
	}
	a := m.find(req)
	select {
	case <-a.done:
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
	if a.err != nil {
		return nil, a.err
	}
	resp := *a.resp
	resp.Header, resp.Request = a.resp.Header.Clone(), req
	resp.Body = http.NoBody
	if a.body != nil && req.Method == http.MethodGet {
		resp.Body = &reader{body: a.body, ctx: req.Context()}
	}
	return &resp, nil
}

// find returns the cached result of a request. If none can be used, find sends the request.
func (m *memo) find(req *http.Request) *answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := keyOf(req)
	a, tried := m.answers[key], false
	if a == nil && req.Method == http.MethodHead {
		get := *req
		get.Method = http.MethodGet
		a = m.answers[keyOf(&get)]
	}
	if a != nil {
		select {
		case <-a.done:
			if tried = a.again; !tried && !varies(a, req) {
				return a
			}
		default:
			return a
		}
	}
	a = &answer{done: make(chan struct{})}
	m.answers[key] = a
	go m.send(req, a, tried)
	return a
}

// keyOf returns the cache key of a request.
func keyOf(req *http.Request) string {
	u := *req.URL
	u.Fragment, u.RawFragment = "", ""
	parts := []string{req.Method, u.String()}
	for _, name := range []string{"Authorization", "Range", "If-None-Match", "If-Modified-Since", "If-Range"} {
		parts = append(parts, strings.Join(req.Header.Values(name), ","))
	}
	return strings.Join(parts, "\n")
}

// varies reports whether the Vary field of a cached response prevents its use for a request (RFC
// 9111, section 4.1).
func varies(a *answer, req *http.Request) bool {
	if a.err != nil {
		return false
	}
	for name := range strings.SplitSeq(strings.Join(a.resp.Header.Values("Vary"), ","), ",") {
		switch name = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)); name {
		case "", "Authorization", "Accept-Encoding", "User-Agent": // part of the key, or equal in all requests
			continue
		}
		if was := a.resp.Request.Header; !slices.Equal(was.Values(name), req.Header.Values(name)) {
			return true
		}
	}
	return false
}

// send sends a request on behalf of all callers that wait for the result. again is true in the
// second attempt.
func (m *memo) send(req *http.Request, a *answer, again bool) {
	defer close(a.done)
	if a.err = m.count(); a.err != nil {
		return
	}
	// The first caller may be canceled before the others.
	ctx, cancel := context.WithCancel(context.WithoutCancel(req.Context()))
	stop := context.AfterFunc(m.ctx, cancel)
	end := func() { stop(); cancel() }
	out := req.Clone(ctx)
	resp, err := m.next.RoundTrip(out)
	switch {
	case err != nil && again:
		// Omit the cause from the chain, so that fetch.Do does not retry.
		a.err = err
		if errors.Is(err, millrace.ErrUnavailable) {
			a.err = fmt.Errorf("%v: %w", err, millrace.ErrUnavailable) //nolint:errorlint // see above
		}
	case err != nil:
		a.err, a.again = err, connectionFailed(err)
	case isTemporary(resp.StatusCode) && again:
		err := fetch.CheckStatus(resp)
		_ = resp.Body.Close()
		a.err = fmt.Errorf("twice: %w", err)
	default:
		a.resp, a.again = resp, isTemporary(resp.StatusCode)
		if len(resp.Header[dcz.Use]) > 0 {
			m.mu.Lock()
			m.dictionaries[req.URL.String()] = true
			m.mu.Unlock()
		}
		resp.Request = &http.Request{Header: maps.Clone(req.Header)}
		if resp.Body != nil && resp.Body != http.NoBody {
			a.body = &body{memo: m, src: resp.Body, end: end, most: m.maxBody, size: resp.ContentLength}
			m.mu.Lock()
			m.bodies = append(m.bodies, a.body)
			m.mu.Unlock()
			return // the body calls end
		}
	}
	end()
}

// connectionFailed reports whether a connection failed before the response arrived. fetch.Do retries
// such requests, too.
func connectionFailed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// isTemporary reports whether fetch.Do retries a status code.
func isTemporary(code int) bool {
	switch code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// count takes one request from the budget. It returns an error if none is left.
func (m *memo) count() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.requests >= m.maxRequests {
		m.over = cmp.Or(m.over, fmt.Errorf("probe limit of %d requests exceeded: %w", m.maxRequests, millrace.ErrTooLarge))
		return m.over
	}
	m.requests++
	if m.progress != nil {
		m.progress(m.requests)
	}
	return nil
}

// take takes bytes from the budget, and returns an error if it is exceeded.
func (m *memo) take(n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bytes += n; m.bytes > m.maxBytes {
		m.over = cmp.Or(m.over, fmt.Errorf("probe limit of %s exceeded: %w", humanize.Bytes(m.maxBytes), millrace.ErrTooLarge))
		return m.over
	}
	return nil
}

// spent returns the used part of the budget.
func (m *memo) spent() protocol.Cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	return protocol.Cost{Requests: int64(m.requests), Bytes: m.bytes}
}

// close ends all open bodies and waits until they are drained. Call it after the context has ended.
func (m *memo) close() {
	m.mu.Lock()
	bodies := m.bodies
	m.mu.Unlock()
	for _, b := range bodies {
		b.mu.Lock()
		b.finish(errClosed)
		b.mu.Unlock()
	}
	m.draining.Wait()
}

var errClosed = errors.New("the probe has ended")

// body is a response body: the bytes read so far, and the rest of the stream.
type body struct {
	memo *memo
	most int64 // maximum number of bytes
	size int64 // Content-Length; -1 if unknown

	mu   sync.Mutex
	src  io.ReadCloser
	end  func() // releases the request
	read []byte
	err  error // final error; nil while the body is open
}

// at reads from an offset: first from memory, then from the connection.
func (b *body) at(p []byte, off int) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if off < len(b.read) {
		return copy(p, b.read[off:]), nil
	}
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	n, err := b.src.Read(p)
	b.read = append(b.read, p[:n]...)
	over := b.memo.take(int64(n))
	if over == nil && int64(len(b.read)) > b.most {
		over = fmt.Errorf("probe limit of %s for a document exceeded: %w", humanize.Bytes(b.most), millrace.ErrTooLarge)
	}
	if err == nil {
		err = over
	}
	if err != nil {
		b.finish(err)
	}
	return n, err
}

// finish ends the body. The caller holds the lock.
func (b *body) finish(err error) {
	if b.err != nil {
		return
	}
	b.err = err
	_ = b.src.Close()
	b.end()
}

// drain reads the rest of the body, up to drainLimit.
func (b *body) drain() {
	defer b.memo.draining.Done()
	var chunk [8 << 10]byte
	b.mu.Lock()
	off := len(b.read)
	b.mu.Unlock()
	for read := 0; read < drainLimit; {
		n, err := b.at(chunk[:], off)
		off, read = off+n, read+n
		if err != nil {
			return
		}
	}
}

// reader reads a shared body for one caller.
type reader struct {
	body *body
	ctx  context.Context
	off  int
	done bool
}

func (r *reader) Read(p []byte) (int, error) {
	if r.done {
		return 0, http.ErrBodyReadAfterClose
	}
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	n, err := r.body.at(p, r.off)
	r.off += n
	return n, err
}

// Close detaches the reader, and leaves the body to other readers. If the unread rest of the body
// is short or of unknown length, Close starts to drain it.
func (r *reader) Close() error {
	if r.done {
		return nil
	}
	r.done = true
	b := r.body
	b.mu.Lock()
	rest := b.err == nil && b.size-int64(len(b.read)) <= drainLimit
	b.mu.Unlock()
	if rest && r.ctx.Err() == nil {
		b.memo.draining.Add(1)
		go b.drain()
	}
	return nil
}
