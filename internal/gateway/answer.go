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
)

// response counts what is answered; one is reused by many requests.
type response struct {
	http.ResponseWriter
	status int // 0 = nothing answered yet
	bytes  int64
	silent bool // it is the owner's: nothing is said of the policy, and nothing counted
	keyed  bool // it is answered by its key: other clients may not have the response
	start  time.Time
	access.Request

	g *Gateway
	r *http.Request // as it has come
	// inner is r with its path relative to the documents' base; nil = it is elsewhere.
	inner *http.Request
}

// WriteHeader notes the final status.
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

// out notes an answer that does not go out to its end. Who listens ends it so.
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
	n, err := io.Copy(w.ResponseWriter, r)
	w.bytes += n
	w.out(err)
	return n, err
}

// FlushError serves [http.ResponseController]: a response that is flushed has
// begun.
func (w *response) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap serves [http.ResponseController].
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack returns the connection of a request that switches to another protocol.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, b, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil && w.status == 0 {
		w.status = http.StatusSwitchingProtocols
	}
	return c, b, err
}
