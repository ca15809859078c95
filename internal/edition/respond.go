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

// Respond answers one request for a document, as RFC 9110 has it: GET, HEAD,
// OPTIONS, codings, conditions, one range, digests, CORS. A 304 and a HEAD never
// call d.Write. An error, such as that of another method, means that nothing has
// been answered yet, unless it wraps [ErrBroken]. [Server.Serve] does the same with a cache.
func Respond(w http.ResponseWriter, r *http.Request, d *millrace.Document) error {
	e, err := prepare(d, false, 0, time.Now())
	if err != nil {
		return err
	}
	return e.respond(w, r, new(encoders), nil, nil)
}

// ErrBroken says that a response broke off after its header: the client is
// gone, or a file could not be read to its end.
var ErrBroken = errors.New("response broken off")

const (
	allow       = "GET, HEAD, OPTIONS"
	corsHeaders = "If-None-Match, Authorization, Last-Event-ID"
	corsMaxAge  = "86400"
)

// Errors of requests for documents that are there.
var (
	errMethod       = &millrace.RequestError{Status: http.StatusMethodNotAllowed, Text: "this method is not allowed here; see the field Allow"}
	errCoding       = &millrace.RequestError{Status: http.StatusNotAcceptable, Text: "the document has no content coding, and the request accepts no document without one; see the field Accept-Encoding"}
	errPrecondition = &millrace.RequestError{Status: http.StatusPreconditionFailed, Text: "the document is not as the request's condition wants it"}
	errRange        = &millrace.RequestError{Status: http.StatusRequestedRangeNotSatisfiable, Text: "the document has no such range; see the field Content-Range"}
)

// Method answers a request by a method that reads nothing: it reports true
// after an OPTIONS, and sets Allow and returns an error for a method that allow,
// a value of that field, does not name. public: scripts of other origins may
// ask, and the answer to an OPTIONS that has an Origin says so (CORS).
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

// reads reports whether a request is for a document's bytes.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

func (e *entry) respond(w http.ResponseWriter, r *http.Request, enc *encoders, k keeper, q *access.Request) error {
	if done, err := Method(w, r, allow, !e.private); done || err != nil {
		return err
	}
	if e.exact && refuses(r.Header["Accept-Encoding"]) {
		w.Header()["Vary"] = []string{"Accept-Encoding"}
		return errCoding
	}
	c := negotiate(r.Header["Accept-Encoding"], e.offer)
	e.want(r.Header["Accept-Encoding"])
	switch status, with := e.condition(r.Header, c); status {
	case http.StatusNotModified:
		h := w.Header()
		e.common(h, with)
		e.setCacheStatus(h, e.reps[with].Load(), false)
		q.Sends(0, false)
		w.WriteHeader(status)
		return nil
	case http.StatusPreconditionFailed:
		return errPrecondition
	}
	if r.Method == http.MethodHead && !e.exact {
		e.head(w.Header(), c)
		q.Sends(0, false)
		w.WriteHeader(http.StatusOK)
		return nil
	}
	return e.get(w, r, c, enc, k, q)
}

// common sets what a 200 and a 304 both say.
func (e *entry) common(h http.Header, c coding) {
	for i := range e.shape.all {
		h[e.shape.all[i].name] = e.shape.all[i].value
	}
	for i := range e.own {
		if name := e.own[i].name; name == "Link" && h[name] != nil {
			h[name] = append(slices.Clone(e.own[i].value), h[name]...) // it is asked for by another URL
		} else {
			h[name] = e.own[i].value
		}
	}
	h["Etag"] = e.tags[c : c+1 : c+1]
	if e.ahead && time.Now().Unix() < e.modified {
		// RFC 9110, section 8.8.2.1: never later than Date.
		delete(h, "Last-Modified")
	}
}

// full sets what a 200 says beyond common, but for the bytes.
func (e *entry) full(h http.Header, c coding) {
	e.common(h, c)
	for i := range e.shape.full {
		h[e.shape.full[i].name] = e.shape.full[i].value
	}
}

// head sets what a GET would say, as far as it is known without rendering.
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
	} else if e.oneTag {
		return // whether coding pays is known with the body
	}
	if c != identity {
		h["Content-Encoding"] = codingValues[c]
	}
}

// known returns the digest, "" if nothing has read the representation yet.
func (r *rep) known() []string {
	if r.content != nil {
		return []string{r.content.known()}
	}
	return r.digest[:]
}

func (e *entry) get(w http.ResponseWriter, r *http.Request, c coding, enc *encoders, k keeper, q *access.Request) error {
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
	if fields := r.Header["Range"]; fields != nil && !e.oneTag && e.ifRange(r.Header, c) {
		from, n, status = byteRange(fields, rp.size)
	}
	switch status {
	case http.StatusOK:
		h["Content-Length"] = rp.length[:]
		if digest[0] != "" {
			h["Content-Digest"] = digest
		}
		if err := e.sign(h, rp, keyOf(r.URL)); err != nil {
			return fmt.Errorf("signing %s: %w", e.key.path, err)
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
		q.Sends(0, false)
		w.WriteHeader(status)
		return nil
	}
	q.Sends(rp.plainPart(n), fresh)
	if rp.content == nil {
		w.WriteHeader(status)
		_, err := w.Write(rp.body[from : from+n])
		runtime.KeepAlive(rp) // others share it as long as it lives
		if err != nil {
			return fmt.Errorf("%w: %w", ErrBroken, err)
		}
		return nil
	}
	end, err := q.Large()
	if err != nil {
		return err
	}
	defer end()
	return e.sendLarge(w, n, status, func(w io.Writer) error { return rp.content.write(r.Context(), w, from, n) })
}

// plainPart gives the size without coding of n bytes of the representation, 0
// where that is not known.
func (r *rep) plainPart(n int64) int64 {
	switch {
	case r.coding == identity && r.plain == r.size:
		return n
	case n == r.size:
		return r.plain
	}
	return 0
}

// slowest is the rate, in bytes per second, below which a client of a large
// document is given up.
const slowest = 16 << 10

// sendLarge sends n bytes of a large document, which write writes. The header is
// sent with the first of them, so that a missing artifact can be an error.
func (e *entry) sendLarge(w http.ResponseWriter, n int64, status int, write func(io.Writer) error) error {
	// The server's own limit is one for pages. A writer without deadlines, as
	// in tests, has none to extend.
	deadline := time.Now().Add(time.Minute + time.Duration(n/slowest)*time.Second)
	_ = http.NewResponseController(w).SetWriteDeadline(deadline)
	out := &headerWriter{w: w, status: status}
	err := write(out)
	switch {
	case err != nil && !out.started:
		clear(w.Header())
		return fmt.Errorf("large document %s: %w", e.key.path, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrBroken, err)
	case !out.started: // it is empty
		w.WriteHeader(status)
	}
	return nil
}

// late sends the header of a response with its first bytes.
type headerWriter struct {
	w       http.ResponseWriter
	status  int
	started bool
}

func (l *headerWriter) Write(b []byte) (int, error) {
	if !l.started {
		l.started = true
		l.w.WriteHeader(l.status)
	}
	return l.w.Write(b)
}

// condition evaluates the preconditions of a request in the order of RFC 9110,
// section 13.2.2. It gives 0 when the method shall be done, else the status
// and, for a 304, whose validator it carries: the one that the client holds.
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

// match looks for the document's validator in a list of entity tags, with the
// suffix of any coding, and gives the coding whose validator is there: c if it
// is one of several. A list that breaks off is read as far as it goes.
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
					if have == c || suffix == "" && e.oneTag {
						return true, c
					}
					found, with = true, have
				}
			}
		}
	}
	return found, with
}

// ifRange reports whether a range may be cut from what the client would get
// now. A date is never strong enough (RFC 9110, section 13.1.5).
func (e *entry) ifRange(h http.Header, c coding) bool {
	fields := h["If-Range"]
	return fields == nil || len(fields) == 1 && fields[0] == e.tags[c]
}

// byteRange reads a Range field for size bytes. Other units, faulty fields and
// several ranges mean the whole (RFC 9110, section 14.2).
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
