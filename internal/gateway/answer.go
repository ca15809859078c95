package gateway

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/canon"
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
		if w.g != nil && w.g.terms != nil && status < 400 && !w.silent {
			w.g.terms.SetFields(w.Header())
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write counts bytes.
func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	write := w.ResponseWriter.Write
	if w.Paced() {
		write = func(b []byte) (int, error) { return w.Send(w.ResponseWriter, b) }
	} else if len(b) > collected && w.whole(b) {
		write = w.once
	}
	n, err := write(b)
	w.bytes += int64(n)
	w.out(err)
	return n, err
}

// collected is how much of a body net/http collects before it writes the header.
const collected = 2 << 10

// whole reports whether b is the whole body.
func (w *response) whole(b []byte) bool {
	size := w.Header()["Content-Length"]
	if len(size) != 1 {
		return false
	}
	n, err := strconv.Atoi(size[0])
	return err == nil && n == len(b)
}

// once writes the header and the whole body with one call of the system. A rest
// that net/http has collected takes what is held with it when the request ends.
func (w *response) once(b []byte) (int, error) {
	conn := connOf(w.r.Context())
	if conn == nil {
		return w.ResponseWriter.Write(b)
	}
	conn.hold()
	n, err := w.ResponseWriter.Write(b)
	conn.holding = false
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

// plain answers a few words.
func plain(w http.ResponseWriter, r *http.Request, status int, text string) {
	answer(w, r, status, "text/plain; charset=utf-8", []byte(text))
}

func answer(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that is gone needs no answer
	}
}

// leadsOn answers that a resource is at another address for good.
func leadsOn(w http.ResponseWriter, r *http.Request, to string) {
	w.Header().Set("Location", to)
	w.Header().Set("Cache-Control", "max-age=3600")
	plain(w, r, http.StatusMovedPermanently, "")
}

// onlyReads answers a request by another method than GET and HEAD, false for
// those.
func onlyReads(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	w.Header().Set("Allow", "GET, HEAD")
	failure(w, r, http.StatusMethodNotAllowed, nil)
	return true
}

// failure answers an error status, as JSON where the client asked for a
// machine document, else as text. Without anything said, the status's own
// words are.
func failure(w http.ResponseWriter, r *http.Request, status int, said *millrace.RequestError) {
	code := strings.ReplaceAll(strings.ToUpper(http.StatusText(status)), " ", "_")
	reason := strings.ToLower(http.StatusText(status))
	if said != nil {
		code, reason = cmp.Or(said.Code, code), cmp.Or(said.Text, reason)
	}
	if path.Ext(r.URL.Path) != ".json" {
		plain(w, r, status, strconv.Itoa(status)+" "+reason+"\n")
		return
	}
	body := canon.AppendString([]byte(`{"error":{"code":`), code)
	body = canon.AppendString(append(body, `,"message":`...), reason)
	answer(w, r, status, "application/json; charset=utf-8", append(body, "}}\n"...))
}

var errNotFound = &millrace.RequestError{Status: http.StatusNotFound, Code: "NOT_FOUND", Text: "there is no such document here"}

func notFound(w http.ResponseWriter, r *http.Request) {
	failure(w, r, http.StatusNotFound, errNotFound)
}
