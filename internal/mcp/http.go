package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// Path is the path of the endpoint below the base of a gateway's documents.
const Path = "/mcp"

// maxBody is the maximum size of a request in bytes.
const maxBody = 64 << 10

// request describes the HTTP request of a call.
type request struct {
	ctx  context.Context // context that ends with the request
	live millrace.Live   // published site of the gateway, or nil
}

type requestKey struct{}

// handler returns the streamable HTTP handler. It is stateless: each request is
// independent, so there is no session to limit or hijack.
func (s *Server) handler() http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.sdk }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // a proxy on the same machine has another Host; see Options.Local
	})
}

// Scope implements [millrace.Handler]. If the site has a page at the same path, browsers get the
// page.
func (s *Server) Scope(r *http.Request) (scope millrace.Scope, ok bool) {
	if r.URL.EscapedPath() != Path {
		return "", false
	}
	switch r.Method {
	case http.MethodPost, http.MethodDelete:
		return millrace.ScopeRead, true
	case http.MethodGet: // the response reports that no stream exists
		return millrace.ScopeRead, strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	}
	return "", false
}

// Serve implements [millrace.Handler].
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, live millrace.Live) error {
	if err := s.admit(r); err != nil {
		return err
	}
	if r.Method == http.MethodPost {
		// Limit the time that a slow client may take for the request and for the response.
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(s.o.Time)) // ignore the error of writers without deadlines, as in tests
		body, err := s.body(r)
		if err != nil {
			return err
		}
		_ = control.SetWriteDeadline(time.Now().Add(turnWait + 2*s.o.Time))
		r = r.Clone(context.WithValue(r.Context(), requestKey{}, &request{r.Context(), live}))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	s.http.ServeHTTP(w, r)
	return nil
}

// refuse returns the error for a refused request.
func refuse(status int, code, text string) error {
	return &millrace.RequestError{Status: status, Code: code, Text: text}
}

// admit rejects requests from browser pages of another origin. With Options.Local, it also rejects
// requests to a host name of another machine (DNS rebinding).
func (s *Server) admit(r *http.Request) error {
	if origins := r.Header["Origin"]; len(origins) > 0 && (len(origins) > 1 || !own(origins[0], r.Host)) {
		return refuse(http.StatusForbidden, "ORIGIN", "requests from pages of another origin are refused")
	}
	if s.o.Local && !local(r.Host) {
		return refuse(http.StatusForbidden, "HOST", "this server accepts only requests to a name of its own machine, such as localhost")
	}
	return nil
}

// own reports whether an Origin is that of the requested host.
func own(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.EqualFold(u.Host, host)
}

// local reports whether a Host refers to this machine.
func local(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	return fetch.IsLoopback(strings.Trim(name, "[]"))
}

// body reads the body of a request, which must be a single message.
func (s *Server) body(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	large, _ := errors.AsType[*http.MaxBytesError](err)
	switch {
	case large != nil, len(b) > maxBody:
		return nil, refuse(http.StatusRequestEntityTooLarge, "TOO_LARGE", "the message is longer than 65536 bytes")
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "INVALID_REQUEST", "the request body is incomplete")
	case bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte{'['}):
		// A batch costs as much as many requests, and would bypass the limits.
		return nil, refuse(http.StatusBadRequest, "INVALID_REQUEST", "batches are not supported since revision 2025-06-18 of the protocol; send one message per request")
	}
	return b, nil
}
