package edition

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
)

// Respond responds to a request for a document (RFC 9110). It supports GET, HEAD, OPTIONS, codings,
// conditions, single ranges, digests and CORS. For a 304, or for a HEAD unless d.DigestETag is set,
// it never calls d.Write. If it returns an error, such as for another method, it has written
// nothing, unless the error wraps [ErrBroken]. [Server.Serve] does the same, with a cache.
func Respond(w http.ResponseWriter, r *http.Request, d *millrace.Document) error {
	e, err := prepare(d, false, 0, time.Now())
	if err != nil {
		return err
	}
	_, err = e.respond(w, r, new(encoders), nil, nil)
	return err
}

// ErrBroken is the error of a response that ended after its header: the client closed
// the connection, or reading an artifact failed.
var ErrBroken = errors.New("response ended early")

const (
	allow       = "GET, HEAD, OPTIONS"
	corsHeaders = "If-None-Match, Authorization, Last-Event-ID"
	corsMaxAge  = "86400"
)

// Errors of requests for existing documents.
var (
	errMethod       = &millrace.RequestError{Status: http.StatusMethodNotAllowed, Text: "this method is not allowed here; see the Allow field"}
	errCoding       = &millrace.RequestError{Status: http.StatusNotAcceptable, Text: "the document has no content coding, but the request requires one; see the Accept-Encoding field"}
	errPrecondition = &millrace.RequestError{Status: http.StatusPreconditionFailed, Text: "the document does not meet the condition of the request"}
	errRange        = &millrace.RequestError{Status: http.StatusRequestedRangeNotSatisfiable, Text: "the document has no such range; see the Content-Range field"}
)

// Method handles OPTIONS and methods that are not allowed. allow is a value of the Allow field.
// For OPTIONS, it responds and returns true. For a method that allow does not list, it sets Allow
// and returns an error. If public is set, the response to OPTIONS allows requests from scripts of
// other origins (CORS).
func Method(w http.ResponseWriter, r *http.Request, allow string, public bool) (done bool, err error) {
	h := w.Header()
	switch {
	case r.Method == http.MethodOptions:
		h.Set("Allow", allow)
		if public && r.Header["Origin"] != nil {
			h["Access-Control-Allow-Origin"] = corsOrigin
			h.Set("Access-Control-Allow-Methods", allow)
			h.Set("Access-Control-Allow-Headers", corsHeaders)
			h.Set("Access-Control-Max-Age", corsMaxAge)
		}
		w.WriteHeader(http.StatusNoContent)
		return true, nil
	case slices.Contains(strings.Split(allow, ", "), r.Method):
		return false, nil
	}
	h.Set("Allow", allow)
	return false, errMethod
}

// reads reports whether the method is GET or HEAD.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// respond responds to a request. whole reports that it sent the whole document.
func (e *entry) respond(w http.ResponseWriter, r *http.Request, enc *encoders, k keeper, q *access.Request) (whole bool, err error) {
	if done, err := Method(w, r, allow, !e.private); done || err != nil {
		return false, err
	}
	if e.exact && refuses(r.Header["Accept-Encoding"]) {
		w.Header()["Vary"] = []string{"Accept-Encoding"}
		return false, errCoding
	}
	c := negotiate(r.Header["Accept-Encoding"], e.offer)
	e.want(r.Header["Accept-Encoding"])
	switch status, with := e.condition(r.Header, c); status {
	case http.StatusNotModified:
		h := w.Header()
		e.common(h, with)
		e.setCacheStatus(h, e.reps[with].Load(), false)
		q.SetSize(0, false)
		w.WriteHeader(status)
		return false, nil
	case http.StatusPreconditionFailed:
		return false, errPrecondition
	}
	if r.Method == http.MethodHead && !e.exact {
		e.head(w.Header(), c)
		q.SetSize(0, false)
		w.WriteHeader(http.StatusOK)
		return false, nil
	}
	return r.Method == http.MethodGet && r.Header["Range"] == nil, e.get(w, r, c, enc, k, q)
}

// common sets the fields that 200 and 304 responses share.
func (e *entry) common(h http.Header, c coding) {
	for i := range e.shape.all {
		name, value := e.shape.all[i].name, e.shape.all[i].value
		if name == "Vary" && h[name] != nil { // Server.answer has added the fields for dictionaries
			value = []string{strings.Join(append(slices.Clone(value), h[name]...), ", ")}
		}
		h[name] = value
	}
	for i := range e.own {
		if name := e.own[i].name; name == "Link" && h[name] != nil {
			h[name] = append(slices.Clone(e.own[i].value), h[name]...) // Answer has set the canonical link
		} else {
			h[name] = e.own[i].value
		}
	}
	h["Etag"] = e.tags[c : c+1 : c+1]
	if e.ahead && time.Now().Unix() < e.modified {
		// Last-Modified must not be later than Date (RFC 9110, section 8.8.2.1).
		delete(h, "Last-Modified")
	}
}

// full sets the fields of a 200 response that do not depend on the bytes.
func (e *entry) full(h http.Header, c coding) {
	e.common(h, c)
	for i := range e.shape.full {
		h[e.shape.full[i].name] = e.shape.full[i].value
	}
}

// head sets the fields of the response to a HEAD that are known without rendering.
func (e *entry) head(h http.Header, c coding) {
	e.full(h, c)
	r := e.reps[c].Load()
	e.setCacheStatus(h, r, false)
	if r != nil {
		h["Content-Length"] = r.length[:]
		if digest := r.known(); digest[0] != "" {
			h["Repr-Digest"] = digest
		}
		c = r.coding
	} else if e.sharedETag {
		return // the coding depends on the size of the body
	}
	if c != identity {
		h["Content-Encoding"] = codingValues[c]
	}
}

// known returns the digest, or "" if it has not been computed.
func (r *rep) known() []string {
	if r.content != nil {
		return []string{r.content.known()}
	}
	return r.digest[:]
}

func (e *entry) get(w http.ResponseWriter, r *http.Request, c coding, enc *encoders, k keeper, q *access.Request) error {
	if e.reps[c].Load() == nil {
		if err := q.WaitTurn(); err != nil {
			return err
		}
	}
	rp, fresh, err := e.render(r.Context(), c, enc, k)
	if err != nil {
		return err
	}
	digest := rp.digest[:]
	if rp.content != nil {
		sum, err := rp.content.digest(r.Context())
		if err != nil {
			return fmt.Errorf("large document %s: %w", e.key.path, err)
		}
		digest = []string{sum}
	}
	h := w.Header()
	e.full(h, c)
	e.setCacheStatus(h, rp, fresh)
	if rp.coding != identity {
		h["Content-Encoding"] = codingValues[rp.coding]
	}
	from, n, status := int64(0), rp.size, http.StatusOK
	if fields := r.Header["Range"]; fields != nil && !e.sharedETag && e.ifRange(r.Header, c) {
		from, n, status = byteRange(fields, rp.size)
	}
	switch status {
	case http.StatusOK:
		h["Content-Length"] = rp.length[:]
		if e.coded {
			h["Repr-Digest"] = digest
		}
		// Content-Digest and Repr-Digest are equal here, and a client needs only one, but a
		// signature covers Content-Digest.
		if digest[0] != "" && (!e.coded || e.signer != nil) {
			h["Content-Digest"] = digest
		}
		if err := e.sign(h, rp, keyOf(r.URL)); err != nil {
			return fmt.Errorf("sign %s: %w", e.key.path, err)
		}
	case http.StatusPartialContent:
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+n-1, rp.size))
		h.Set("Content-Length", strconv.FormatInt(n, 10))
		if digest[0] != "" {
			h["Repr-Digest"] = digest
		}
	case http.StatusRequestedRangeNotSatisfiable:
		clear(h)
		h.Set("Content-Range", fmt.Sprintf("bytes */%d", rp.size))
		return errRange
	}
	if r.Method == http.MethodHead {
		q.SetSize(0, false)
		w.WriteHeader(status)
		return nil
	}
	q.SetSize(rp.plainPart(n), fresh)
	if rp.content == nil {
		w.WriteHeader(status)
		_, err := w.Write(rp.body[from : from+n])
		runtime.KeepAlive(rp) // keeps rp in inUse, where render finds it
		if err != nil {
			return fmt.Errorf("%w: %w", ErrBroken, err)
		}
		return nil
	}
	end, err := q.BeginLarge()
	if err != nil {
		return err
	}
	defer end()
	return e.sendLarge(w, n, status, q, func(w io.Writer) error { return rp.content.write(r.Context(), w, from, n) })
}

// plainPart returns the identity size of n bytes of the representation, or 0 if it is unknown.
func (r *rep) plainPart(n int64) int64 {
	switch {
	case r.coding == identity && r.plain == r.size:
		return n
	case n == r.size:
		return r.plain
	}
	return 0
}

// minRate is the minimum rate, in bytes per second, at which a client must read a large document.
const minRate = 16 << 10

// sendLarge sends n bytes of a large document, which the function write produces. It sends the
// header with the first byte, so that a missing artifact can still result in an error response.
// The request waits for a turn before each part of the document.
func (e *entry) sendLarge(w http.ResponseWriter, n int64, status int, q *access.Request, write func(io.Writer) error) error {
	// Replace the server's write timeout, which is too short for large documents. Ignore the error
	// of writers without deadlines, as in tests.
	deadline := time.Now().Add(time.Minute + time.Duration(n/minRate)*time.Second)
	_ = http.NewResponseController(w).SetWriteDeadline(deadline)
	out := &partWriter{w: w, status: status, q: q}
	err := q.WaitTurn()
	if err == nil {
		err = write(out)
	}
	switch {
	case err != nil && !out.started:
		clear(w.Header())
		return fmt.Errorf("large document %s: %w", e.key.path, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrBroken, err)
	case !out.started: // the document is empty
		w.WriteHeader(status)
	}
	return nil
}

// partWriter sends the header of a response with its first bytes. After each part, the request
// waits for its next turn.
type partWriter struct {
	w       http.ResponseWriter
	status  int
	started bool
	q       *access.Request
}

func (l *partWriter) Write(b []byte) (int, error) {
	if !l.started {
		l.started = true
		l.w.WriteHeader(l.status)
	}
	n, err := l.w.Write(b)
	if err == nil {
		err = l.q.WaitTurn()
	}
	return n, err
}

// condition evaluates the preconditions of a request (RFC 9110, section 13.2.2). It
// returns 0 if the method must be performed, otherwise the status. For a 304, it also
// returns the coding of the validator that the client has.
func (e *entry) condition(h http.Header, c coding) (int, coding) {
	if fields := h["If-None-Match"]; fields != nil {
		if len(fields) == 1 && fields[0] == e.tags[c] && h["If-Match"] == nil && h["If-Unmodified-Since"] == nil {
			return http.StatusNotModified, c
		}
	}
	if fields := h["If-Match"]; fields != nil {
		if ok, _ := e.match(fields, c, true); !ok {
			return http.StatusPreconditionFailed, c
		}
	} else if fields := h["If-Unmodified-Since"]; fields != nil && e.modified != 0 {
		if t, err := http.ParseTime(fields[0]); err == nil && e.modified > t.Unix() {
			return http.StatusPreconditionFailed, c
		}
	}
	if fields := h["If-None-Match"]; fields != nil {
		if ok, with := e.match(fields, c, false); ok {
			return http.StatusNotModified, with
		}
	} else if fields := h["If-Modified-Since"]; fields != nil && e.modified != 0 {
		if t, err := http.ParseTime(fields[0]); err == nil && e.modified <= t.Unix() {
			return http.StatusNotModified, c
		}
	}
	return 0, c
}

// match searches a list of entity tags for the document's validator with the suffix of any coding.
// It returns the coding of the validator that it finds; if there are several, it prefers c. It
// stops at a syntax error.
func (e *entry) match(fields []string, c coding, strong bool) (bool, coding) {
	found, with := false, c
	for _, field := range fields {
		for {
			field = strings.TrimLeft(field, " \t,")
			if strings.HasPrefix(field, "*") {
				return true, c
			}
			opaque, weak := strings.CutPrefix(field, "W/")
			if len(opaque) == 0 || opaque[0] != '"' {
				break
			}
			end := strings.IndexByte(opaque[1:], '"')
			if end < 0 {
				break
			}
			opaque, field = opaque[1:1+end], opaque[end+2:]
			if strong && weak {
				continue
			}
			suffix, ok := strings.CutPrefix(opaque, e.tag)
			if !ok {
				continue
			}
			for have := range codings {
				if suffix == codingTable[have].suffix {
					if have == c || suffix == "" && e.sharedETag {
						return true, c
					}
					found, with = true, have
				}
			}
		}
	}
	return found, with
}

// ifRange reports whether If-Range allows a range of the current bytes. It never accepts
// a date (RFC 9110, section 13.1.5).
func (e *entry) ifRange(h http.Header, c coding) bool {
	fields := h["If-Range"]
	return fields == nil || len(fields) == 1 && fields[0] == e.tags[c]
}

// byteRange parses a Range field for a body of size bytes. It ignores other units, invalid fields
// and several ranges (RFC 9110, section 14.2).
func byteRange(fields []string, size int64) (from, n int64, status int) {
	spec, ok := strings.CutPrefix(fields[0], "bytes=")
	first, last, dash := strings.Cut(strings.Trim(spec, " \t"), "-")
	if !ok || !dash || len(fields) > 1 || strings.Contains(spec, ",") {
		return 0, size, http.StatusOK
	}
	a, errA := offset(first)
	b, errB := offset(last)
	switch {
	case first == "" && errB == nil:
		if b == 0 {
			return 0, 0, http.StatusRequestedRangeNotSatisfiable
		}
		a, b = max(size-b, 0), size-1
	case errA == nil && last == "":
		b = size - 1
	case errA != nil || errB != nil || b < a:
		return 0, size, http.StatusOK
	}
	if a >= size {
		return 0, 0, http.StatusRequestedRangeNotSatisfiable
	}
	b = min(b, size-1)
	return a, b - a + 1, http.StatusPartialContent
}

func offset(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err
}
