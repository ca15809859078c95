// Package subrequest sends requests to an [http.Handler] of this process.
package subrequest

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/millrace/millrace/internal/fetch"
)

// Response is the response of a handler.
type Response struct {
	Status int // If zero, there is no response.
	Header http.Header
	Body   bytes.Buffer
	Cut    bool // the body is longer than requested, or cannot be decoded
}

// Missing reports whether the handler has no document at that path.
func (r *Response) Missing() bool {
	return r.Status == http.StatusNotFound || r.Status == http.StatusGone
}

// Do returns the response of a handler. limit is the maximum number of bytes of the body. If the
// handler panics, the status is 502.
func Do(h http.Handler, r *http.Request, limit int) *Response {
	w := &writer{resp: Response{Header: make(http.Header)}, limit: limit}
	func() {
		defer func() {
			if recover() != nil && !w.resp.Cut { // do not use a partial response
				w.resp.Status = http.StatusBadGateway
			}
		}()
		h.ServeHTTP(w, r)
	}()
	return &w.resp
}

// File requests a path without header fields, on behalf of the client that sent r. It decodes
// content codings, which a handler may use even if they are not requested. If h is nil, the status
// is 404.
func File(h http.Handler, r *http.Request, method, path string, limit int) *Response {
	if h == nil {
		return &Response{Status: http.StatusNotFound}
	}
	ask := r.Clone(r.Context())
	ask.Method, ask.Header, ask.Body, ask.ContentLength = method, make(http.Header), http.NoBody, 0
	if ask.URL.RawQuery = ""; path != ask.URL.Path {
		ask.URL.Path, ask.URL.RawPath = path, ""
	}
	resp := Do(h, ask, limit)
	if resp.Status == http.StatusOK && method == http.MethodGet && !resp.Cut && resp.Header.Get("Content-Encoding") != "" {
		resp.decode(limit)
	}
	return resp
}

// decode removes the codings of the body.
func (r *Response) decode(limit int) {
	plain, err := fetch.ReadBody(&http.Response{Header: r.Header, Body: io.NopCloser(&r.Body), ContentLength: -1}, int64(limit))
	if err != nil {
		r.Cut = true
		return
	}
	r.Header.Del("Content-Encoding")
	r.Body = *bytes.NewBuffer(plain)
}

// errCut ends a handler whose further output is not needed.
var errCut = errors.New("the rest of the response is not needed")

// writer collects a response.
type writer struct {
	resp  Response
	limit int
}

// Header implements [http.ResponseWriter].
func (w *writer) Header() http.Header { return w.resp.Header }

// WriteHeader implements [http.ResponseWriter]. It ignores interim responses.
func (w *writer) WriteHeader(status int) {
	if w.resp.Status == 0 && status >= 200 {
		w.resp.Status = status
	}
}

// Write implements [http.ResponseWriter]. If the handler has set no media type, it sets one, as
// net/http does.
func (w *writer) Write(b []byte) (int, error) {
	h := w.resp.Header
	if _, is := h["Content-Type"]; w.resp.Status == 0 && !is && h.Get("Content-Encoding") == "" {
		h.Set("Content-Type", http.DetectContentType(b))
	}
	w.WriteHeader(http.StatusOK)
	free := w.limit - w.resp.Body.Len()
	w.resp.Cut = w.resp.Cut || len(b) > free
	n, _ := w.resp.Body.Write(b[:max(0, min(free, len(b)))])
	if w.resp.Cut {
		return n, errCut
	}
	return n, nil
}
