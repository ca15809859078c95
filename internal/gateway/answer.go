package gateway

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/conns"
	"github.com/millrace/millrace/internal/edition"
)

// response is a response writer that records the status and the size. Later requests reuse it.
type response struct {
	http.ResponseWriter
	status int // If zero, there is no response yet.
	bytes  int64
	silent bool // the response is for the owner or the web server: it has no policy fields and is not counted
	keyed  bool // the response depends on the key, so only private caches may store it
	start  time.Time
	access.Request

	g *Gateway
	r *http.Request // the request as received
	// inner is r with its path relative to the endpoint base, or nil if r is outside of it.
	inner *http.Request
	// edition is the edition in which the document was looked up. If nil, none is published yet.
	edition *edition.Edition
}

// WriteHeader records the final status.
func (w *response) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
		if w.keyed {
			private(w.Header())
		}
		if status != http.StatusNotModified {
			w.SetRateLimit(w.Header())
		}
		if w.g != nil && status < 400 && !w.silent {
			w.g.header.Write(w.Header())
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write counts bytes.
func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.Pause()
	var n int
	var err error
	if w.Paced() {
		n, err = w.Send(w.ResponseWriter, b)
	} else {
		n, err = conns.Write(w.r.Context(), w.ResponseWriter, b)
	}
	w.bytes += int64(n)
	w.out(err)
	return n, err
}

// turnBody is the body of a request that has a turn. It gives up the turn while it waits for the
// client.
type turnBody struct {
	io.ReadCloser
	w *response
}

// Read implements [io.Reader].
func (b *turnBody) Read(p []byte) (int, error) {
	b.w.Pause()
	n, err := b.ReadCloser.Read(p)
	if turn := b.w.WaitTurn(); turn != nil && err == nil {
		err = turn
	}
	return n, err
}

// out marks a response as broken after a write error. It does not mark streams, which normally end
// with an error.
func (w *response) out(err error) {
	if err != nil && !w.Listens && !errors.Is(err, http.ErrBodyNotAllowed) && !errors.Is(err, http.ErrContentLength) {
		w.Broken = true
	}
}

// ReadFrom lets the server send a file without copying it.
func (w *response) ReadFrom(r io.Reader) (int64, error) {
	if w.Paced() {
		return io.Copy(struct{ io.Writer }{w}, r)
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.Pause()
	n, err := io.Copy(w.ResponseWriter, r)
	w.bytes += n
	w.out(err)
	return n, err
}

// FlushError flushes the response, for [http.ResponseController]. A flushed response has begun.
func (w *response) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.Pause()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap returns the underlying writer, for [http.ResponseController].
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack returns the connection of a request that switches to another protocol.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, b, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil && w.status == 0 {
		w.status = http.StatusSwitchingProtocols
	}
	return c, b, err
}
