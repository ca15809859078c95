// Package reply writes short responses: texts, redirects and errors.
package reply

import (
	"cmp"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// Text sends a short text.
func Text(w http.ResponseWriter, r *http.Request, status int, text string) {
	Bytes(w, r, status, "text/plain; charset=utf-8", []byte(text))
}

// Bytes sends a body. The response is not cacheable unless Cache-Control is set.
func Bytes(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // ignore the error, because the client has disconnected
	}
}

// Redirect sends a permanent redirect.
func Redirect(w http.ResponseWriter, r *http.Request, to string) {
	w.Header().Set("Location", to)
	w.Header().Set("Cache-Control", "max-age=3600")
	Text(w, r, http.StatusMovedPermanently, "")
}

// OnlyReads sends an error unless the method is GET or HEAD. It reports whether it has sent one.
func OnlyReads(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	w.Header().Set("Allow", "GET, HEAD")
	Error(w, r, http.StatusMethodNotAllowed, nil)
	return true
}

// Error sends an error status, as JSON if the requested path ends in ".json", otherwise as text. If
// reqErr is nil, it sends the status text.
func Error(w http.ResponseWriter, r *http.Request, status int, reqErr *millrace.RequestError) {
	code := strings.ReplaceAll(strings.ToUpper(http.StatusText(status)), " ", "_")
	reason := strings.ToLower(http.StatusText(status))
	if reqErr != nil {
		code, reason = cmp.Or(reqErr.Code, code), cmp.Or(reqErr.Text, reason)
	}
	if path.Ext(r.URL.Path) != ".json" {
		Text(w, r, status, strconv.Itoa(status)+" "+reason+"\n")
		return
	}
	body := canon.AppendString([]byte(`{"error":{"code":`), code)
	body = canon.AppendString(append(body, `,"message":`...), reason)
	Bytes(w, r, status, "application/json; charset=utf-8", append(body, "}}\n"...))
}

// ErrNotFound is the error for a path without a document.
var ErrNotFound = &millrace.RequestError{Status: http.StatusNotFound, Code: "NOT_FOUND", Text: "document not found"}

// NotFound sends [ErrNotFound].
func NotFound(w http.ResponseWriter, r *http.Request) {
	Error(w, r, http.StatusNotFound, ErrNotFound)
}
