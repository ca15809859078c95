package openfeeder

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
)

// Limits of an event stream. A connection that exceeds maxStream or maxLine is closed and opened
// again. This loses nothing, because the reader ignores the data of events.
const (
	maxStream = 16 << 20 // maximum number of bytes per connection
	maxLine   = 256 << 10
	maxID     = 1 << 10 // maximum number of bytes of an ID
	maxData   = 4 << 10 // maximum number of stored bytes of an event's data

	silence = 4 * heartbeat // time without data after which a server counts as disconnected
)

// Delays before a connection is opened again.
const (
	firstRetry  = 3 * time.Second // default delay; the server may set another one
	maxRetry    = 5 * time.Minute
	stableAfter = 20 * time.Second // a connection that lasts at least this long resets the delay
)

// errEnded is the error if a server tells clients not to reconnect.
var errEnded = fmt.Errorf("the site has ended its event stream: %w", millrace.ErrNotFound)

// Notify listens to the event stream of the discovery document. See [protocol.Protocol.Notify].
// Positions are event IDs.
func (r *reader) Notify(ctx context.Context, position string, notify func(position string)) error {
	if r.Err != nil {
		return r.Err
	}
	l := &eventReader{reader: r, lastID: position, notify: notify, retry: firstRetry}
	for fails := 0; ; {
		began := time.Now()
		err := l.connect(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, millrace.ErrNotFound), errors.Is(err, millrace.ErrForbidden), errors.Is(err, millrace.ErrInvalid):
			return fmt.Errorf("%s: events: %w", Name, err)
		}
		r.Note("reader/events", l.target, "event stream ended: "+err.Error())
		if fails++; time.Since(began) >= stableAfter && !errors.Is(err, millrace.ErrTooLarge) {
			fails = 1
		}
		wait := min(l.retry<<min(fails-1, 16), maxRetry)
		wait -= time.Duration(rand.Float64() * float64(wait/2)) // keeps clients from reconnecting all at once
		if status, ok := errors.AsType[*fetch.StatusError](err); ok {
			wait = max(wait, min(status.RetryAfter, kit.DiscoveryAge))
		}
		if err := fetch.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// eventReader is a client of an event stream.
type eventReader struct {
	*reader
	notify func(position string)
	target string // URL of the events, or "" if unknown
	lastID string // ID of the last event, or ""
	fresh  bool   // whether the caller has yet to be notified of earlier changes
	retry  time.Duration
}

// connect opens one connection and reads until it ends. It returns the reason for the end.
func (l *eventReader) connect(ctx context.Context) (err error) {
	if l.target == "" {
		if l.target, err = l.eventsAt(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(fetch.Stream(ctx, maxStream, silence), http.MethodGet, l.target, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", err, millrace.ErrInvalid)
	}
	req.Header.Set("Accept", eventStream)
	req.Header.Set("Accept-Encoding", "identity") // compression delays events
	req.Header.Set("Cache-Control", "no-cache")
	if l.lastID != "" {
		req.Header.Set("Last-Event-ID", l.lastID)
	}
	resp, err := fetch.Do(req.Context(), l.Client, req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return errEnded
	}
	if err := fetch.CheckStatus(resp); err != nil {
		if l.lastID != "" && gone(err) {
			// The log does not reach back to that position.
			l.lastID = ""
			return fmt.Errorf("the server no longer has the position: %s: %w", err.Error(), millrace.ErrUnavailable)
		}
		return err
	}
	if mt, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || mt != eventStream {
		return &millrace.FormatError{Protocol: Name, URL: l.target, Reason: "not an event stream: Content-Type is " + kit.Short(resp.Header.Get("Content-Type"))}
	}
	body, err := fetch.Decode(resp)
	if err != nil {
		return err
	}
	defer body.Close()
	l.fresh = l.lastID == ""
	return l.read(body)
}

// eventsAt returns the URL of the event stream from the discovery document. The stream must be on
// the site's own origin, or on the origin of the document.
func (l *eventReader) eventsAt(ctx context.Context) (string, error) {
	target := l.Root + discovery[1:]
	head, body, err := l.get(ctx, target, "")
	if errors.Is(err, millrace.ErrNotFound) {
		var others []string
		if others, err = l.pointers(ctx); err == nil && len(others) == 0 {
			err = errNone
		}
		for _, other := range others {
			target = other
			if head, body, err = l.get(ctx, other, ""); err == nil {
				break
			}
		}
	}
	if err != nil {
		return "", err
	}
	a, err := decodeAbout(body)
	if err != nil {
		return "", kit.FormatURL(err, target)
	}
	if a.Events == nil || a.Events.Endpoint == "" {
		return "", fmt.Errorf("%s: no event stream: %w", target, millrace.ErrNotFound)
	}
	at, err := canon.Resolve(head.url, a.Events.Endpoint)
	if err != nil {
		return "", &millrace.FormatError{Protocol: Name, URL: target, Position: "/events/endpoint", Reason: "no URL", Err: err}
	}
	if !kit.SameOrigin(l.Root, at) && !kit.SameOrigin(head.url.String(), at) {
		return "", fmt.Errorf("%s: the event stream is on another site, %s: %w", target, canon.Origin(at), millrace.ErrForbidden)
	}
	return at, nil
}

// read reads a stream to its end.
func (l *eventReader) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4<<10), maxLine)
	lines.Split(eventLines())
	var e event
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) > 0 {
			l.field(&e, line)
			continue
		}
		wake, err := l.take(&e)
		if wake || l.fresh {
			l.fresh = false
			l.notify(l.lastID)
		}
		if err != nil {
			return err
		}
		e = event{data: e.data[:0]}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line exceeds %d bytes: %w", maxLine, millrace.ErrTooLarge)
	case err != nil:
		return err
	}
	return fmt.Errorf("the server closed the connection: %w", millrace.ErrUnavailable)
}

// event is the part of an event that was received so far.
type event struct {
	name    string
	data    []byte // limited to maxData bytes
	hasData bool   // whether the event has data
}

// field parses a line of an event (WHATWG HTML, section 9.2.6).
func (l *eventReader) field(e *event, line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		e.name = string(value[:min(len(value), maxID)])
	case "data":
		e.data = append(e.data, value[:min(len(value), maxData-len(e.data))]...)
		e.hasData = true
	case "id":
		// An ID that is not allowed in a header cannot be sent back.
		if len(value) <= maxID && !bytes.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			l.lastID = string(value)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			l.retry = min(max(time.Duration(ms)*time.Millisecond, time.Second), maxRetry)
		}
	}
}

// take handles an event. wake reports whether the site has changed, and err ends the stream. An
// event about the stream itself sets neither.
func (l *eventReader) take(e *event) (wake bool, err error) {
	switch {
	case !e.hasData, e.name == "ready":
		return false, nil
	case e.name != "error":
		return true, nil
	}
	f, _ := decodeFailure(e.data)
	switch f.Code {
	case resyncRequired:
		l.lastID = "" // the next connection notifies the caller
	case authRequired:
		return false, fmt.Errorf("%s: %s: %w", kit.Short(f.Code), kit.Short(f.Message), millrace.ErrForbidden)
	}
	return false, fmt.Errorf("%s: %s: %w", kit.Short(f.Code), kit.Short(f.Message), millrace.ErrUnavailable)
}

// eventLines splits a stream at CR, LF and CRLF, without waiting for the byte after a CR.
func eventLines() bufio.SplitFunc {
	first, afterCR := true, false
	return func(data []byte, atEOF bool) (int, []byte, error) {
		skip := 0
		if first && len(data) > 0 {
			const mark = "\ufeff"
			if len(data) < len(mark) && !atEOF && strings.HasPrefix(mark, string(data)) {
				return 0, nil, nil
			}
			first = false
			skip = len(data) - len(bytes.TrimPrefix(data, []byte(mark)))
		}
		if afterCR && len(data) > 0 {
			afterCR = false
			if data[0] == '\n' {
				skip = 1
			}
		}
		if i := bytes.IndexAny(data[skip:], "\r\n"); i >= 0 {
			afterCR = data[skip+i] == '\r'
			return skip + i + 1, data[skip : skip+i], nil
		}
		return skip, nil, nil // an incomplete line at the end is not part of an event
	}
}
