package proxy

import (
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/internal/access"
)

// rewrite prepares the request for the site's server.
func (p *Proxy) rewrite(pr *httputil.ProxyRequest) {
	in, out := pr.In, pr.Out
	out.URL.Scheme, out.URL.Host, out.URL.User = p.target.Scheme, p.target.Host, nil
	out.URL.RawQuery = in.URL.RawQuery // byte for byte
	if out.Host = in.Host; p.alongside {
		out.Host = p.target.Host
		MarkRead(out)
	}
	out.Trailer = in.Trailer // filled while the body is read
	from := access.ParseAddress(in.RemoteAddr)
	trusted := p.trusts(from)
	for name := range out.Header {
		if dashed := strings.ReplaceAll(name, "_", "-"); forwarding(dashed) && (!trusted || dashed != name) {
			delete(out.Header, name)
		}
	}
	// Only this proxy and trusted proxies may set these fields.
	proto, host := p.scheme, in.Host
	chain := from.String()
	switch {
	case trusted:
		if forwardedFor := in.Header["X-Forwarded-For"]; forwardedFor != nil {
			chain = strings.Join(forwardedFor, ", ") + ", " + chain
		}
		if forwardedProto := in.Header.Get("X-Forwarded-Proto"); forwardedProto != "" {
			proto = forwardedProto
		}
		if forwardedHost := in.Header.Get("X-Forwarded-Host"); forwardedHost != "" {
			host = forwardedHost
		}
	case in.TLS != nil:
		proto = "https"
	default:
		proto = "http"
	}
	out.Header["X-Forwarded-For"] = []string{chain}
	out.Header["X-Forwarded-Proto"] = []string{proto}
	out.Header["X-Forwarded-Host"] = []string{host}
	out.Header["Cdn-Loop"] = append(out.Header["Cdn-Loop"], p.loop)
}

// forwarding reports whether only proxies may set a field. The caller replaces "_" in the name by
// "-", because some servers treat both alike.
func forwarding(name string) bool {
	if len(name) > 1 && name[0] != 'X' && name[0] != 'F' && name[0] != 'T' && name[0] != 'C' {
		return false
	}
	switch name = http.CanonicalHeaderKey(name); name {
	case "Forwarded", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip",
		"X-Original-Url", "X-Rewrite-Url", "X-Original-Host", "X-Host":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded-")
}

// modify rewrites internal addresses in a response. It logs the first response after a failure
// of the server.
func (p *Proxy) modify(resp *http.Response) error {
	if p.failing.Load() && p.failing.CompareAndSwap(true, false) {
		p.log.Info("origin server responds again", "origin", p.target.Host)
	}
	insert(resp)
	for _, name := range []string{"Location", "Content-Location"} {
		if at := resp.Header[name]; len(at) == 1 {
			if public, ok := p.public(at[0], resp.Request); ok {
				resp.Header[name] = []string{public}
			}
		}
	}
	return nil
}

// public returns the public URL for an internal URL of the site's server, for example in a
// redirect.
func (p *Proxy) public(raw string, r *http.Request) (string, bool) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if p.alongside || !ok || !strings.EqualFold(scheme, p.target.Scheme) {
		return "", false
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host := authority(rest[:end])
	private := authority(p.target.Host)
	own := authority((&url.URL{Host: r.Host}).Hostname() + ":" + portOf(p.target))
	if host != private && host != own {
		return "", false
	}
	return r.Header.Get("X-Forwarded-Proto") + "://" + r.Host + rest[end:], true
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// deadlineWriter writes a response with a time limit for each piece. Neither the whole response nor
// the wait for the site's server has a time limit.
type deadlineWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	each    time.Duration
	until   time.Time   // the current deadline
	strict  bool        // an expired deadline also ends an idle response
	slow    bool        // the client is slow
	earlier http.Header // header set earlier; interim responses clear it
	body    *upload
}

func newDeadlineWriter(w http.ResponseWriter, r *http.Request, each time.Duration) *deadlineWriter {
	to := &deadlineWriter{ResponseWriter: w, control: http.NewResponseController(w), each: each, strict: r.ProtoMajor > 1}
	if h := w.Header(); len(h) > 0 {
		to.earlier = h.Clone()
	}
	// Clear the read deadline, which would end a request without a body. Ignore the error of
	// connections in memory, which have no deadlines.
	_ = to.control.SetReadDeadline(time.Time{})
	to.endLimit()
	return to
}

// startLimit starts the time limit of a piece. It returns the current time.
func (to *deadlineWriter) startLimit() (now time.Time) {
	now = time.Now()
	if to.strict || to.until.Sub(now) < to.each/2 {
		to.until = now.Add(to.each)
		_ = to.control.SetWriteDeadline(to.until)
	}
	return now
}

// endLimit ends the time limit.
func (to *deadlineWriter) endLimit() {
	if to.strict {
		_ = to.control.SetWriteDeadline(time.Time{})
	}
}

// WriteHeader adds the earlier header to the final response only.
func (to *deadlineWriter) WriteHeader(status int) {
	if to.earlier != nil {
		h := to.Header()
		for name, values := range to.earlier {
			switch {
			case status < 200:
				delete(h, name)
			case h[name] == nil:
				h[name] = values
			}
		}
	}
	if h := to.Header(); status >= 200 && h["Content-Type"] == nil {
		h["Content-Type"] = nil // prevents net/http from guessing the type
	}
	to.startLimit()
	to.ResponseWriter.WriteHeader(status)
	to.endLimit()
}

// slowPiece is the maximum number of bytes per piece for a slow client.
const slowPiece = 16 << 10

// Write gives the client time for each piece. A slow client gets smaller pieces
// from then on.
func (to *deadlineWriter) Write(b []byte) (n int, err error) {
	for {
		piece := b[n:]
		if to.slow && len(piece) > slowPiece {
			piece = piece[:slowPiece]
		}
		began := to.startLimit()
		var m int
		m, err = to.ResponseWriter.Write(piece)
		to.endLimit()
		if n += m; err != nil || n >= len(b) {
			to.slow = to.slow || len(piece) > slowPiece && time.Since(began) > to.each/32
			return n, err
		}
	}
}

// FlushError flushes the response, for [http.ResponseController].
func (to *deadlineWriter) FlushError() error {
	to.startLimit()
	err := to.control.Flush()
	to.endLimit()
	return err
}

// Unwrap returns the underlying writer, for [http.ResponseController].
func (to *deadlineWriter) Unwrap() http.ResponseWriter { return to.ResponseWriter }

// close starts the time limit of the last piece, which is still in a buffer of the HTTP server.
func (to *deadlineWriter) close() {
	if to.body != nil {
		to.body.end()
	}
	to.startLimit()
}

// late reports whether the client sent the body too slowly.
func (to *deadlineWriter) late() bool { return to.body != nil && to.body.late.Load() }

// broken reports whether the request's body is incomplete or malformed.
func (to *deadlineWriter) broken() bool { return to.body != nil && to.body.broken.Load() }

// reading wraps the request's body with a time limit for each piece.
func (to *deadlineWriter) reading(body io.ReadCloser) io.ReadCloser {
	to.body = &upload{ReadCloser: body, to: to}
	return to.body
}

// upload is the body of a proxied request.
type upload struct {
	io.ReadCloser
	to     *deadlineWriter
	late   atomic.Bool
	broken atomic.Bool

	mu    sync.Mutex
	ended bool
}

// Read reads the next piece.
func (u *upload) Read(b []byte) (int, error) {
	u.limit(time.Now().Add(u.to.each))
	n, err := u.ReadCloser.Read(b)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		u.late.Store(true)
	case err != nil:
		if !errors.Is(err, io.EOF) && !errors.Is(err, http.ErrBodyReadAfterClose) {
			u.broken.Store(true)
		}
		u.limit(time.Time{})
	}
	return n, err
}

// limit sets the deadline of the next piece, except after the end of the request, when the
// connection belongs to the next request.
func (u *upload) limit(until time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.ended {
		_ = u.to.control.SetReadDeadline(until)
	}
}

func (u *upload) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
}
