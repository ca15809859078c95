package openfeeder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/kit"
)

const (
	eventsPath  = endpoint + "/events"
	updatePath  = endpoint + "/update"
	eventStream = "text/event-stream"
)

// Scope returns the scope that requests for the event stream and for updates need.
func (p *publisher) Scope(r *http.Request) (millrace.Scope, bool) {
	if p.o.Static {
		return "", false
	}
	switch r.URL.EscapedPath() {
	case eventsPath:
		return millrace.ScopeRead, true
	case updatePath:
		return millrace.ScopeUpdate, true
	}
	return "", false
}

// Serve handles a request for the event stream, or an update.
func (p *publisher) Serve(w http.ResponseWriter, r *http.Request, live millrace.Live) error {
	serve, method, allow := p.listen, http.MethodGet, "GET, HEAD, OPTIONS"
	if r.URL.EscapedPath() == updatePath {
		serve, method, allow = p.update, http.MethodPost, "POST, OPTIONS"
	}
	if r.Method == method || r.Method == http.MethodHead && method == http.MethodGet {
		return serve(w, r, live)
	}
	w.Header().Set("Allow", allow)
	return refuse(http.StatusMethodNotAllowed, invalidParam, messageOf(r, http.StatusMethodNotAllowed))
}

const (
	heartbeat    = 15 * time.Second
	writeTimeout = 10 * time.Second // limit for a client that does not read
	atOnce       = 32 << 10         // number of bytes that a client must read within writeTimeout
	catching     = 4                // maximum number of clients that read past events from the log at the same time
)

// listen sends the log from a position on as server-sent events, until the client disconnects.
// Before the first edition, it waits, because a browser does not retry after an error.
func (p *publisher) listen(w http.ResponseWriter, r *http.Request, live millrace.Live) error {
	ctx := r.Context()
	l := &listener{p: p, w: w, control: http.NewResponseController(w), live: live}
	v, err := live.View()
	if errors.Is(err, millrace.ErrUnavailable) && r.Method == http.MethodGet {
		v, err = l.await(ctx)
	}
	var sent string
	if err == nil {
		l.at, sent, err = p.resume(ctx, v, r)
	}
	switch {
	case err != nil && l.begun:
		l.end(ctx, err)
		return p.events.fault(err)
	case err != nil:
		return err
	case r.Method == http.MethodHead:
		l.begin()
		return nil
	}
	e := &p.events
	e.join(p, live, v)
	defer e.leave()
	l.begin()
	site := v.Site()
	hello := append([]byte("retry: 3000\n"), frame("ready", eventID(site, l.at, sent), ready(site, l.at, sent))...)
	if l.write(hello) != nil {
		return nil //nolint:nilerr // the client has disconnected
	}
	err = l.follow(ctx)
	l.end(ctx, err)
	return e.fault(err)
}

// begin sends the response header, once.
func (l *listener) begin() {
	if l.begun {
		return
	}
	l.begun = true
	h := l.w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "X-OpenFeeder")
	h.Set("Content-Type", eventStream)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // prevents proxies from buffering events
	h[versionHead] = []string{version}
	l.w.WriteHeader(http.StatusOK)
}

// end sends the final event, which contains the reason.
func (l *listener) end(ctx context.Context, why error) {
	last := l.p.finalEvent(why)
	switch {
	case errors.Is(context.Cause(ctx), millrace.ErrForbidden):
		last = stop(authRequired, "The key is no longer valid.")
	case ctx.Err() != nil:
		return // the client has disconnected
	}
	if last != nil {
		_ = l.write(last)
	}
}

// await waits for the first edition. Meanwhile, it sends heartbeats.
func (l *listener) await(ctx context.Context) (millrace.View, error) {
	l.begin()
	for sign := "retry: 3000\n\n"; ; sign = ":\n\n" {
		if l.write([]byte(sign)) != nil {
			return nil, errGone
		}
		turn, cancel := context.WithTimeout(ctx, heartbeat)
		v, err := l.live.Wait(turn, 0)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, errGone
		case !errors.Is(err, context.DeadlineExceeded):
			return v, err
		}
		if v, err := l.live.View(); err == nil { // Wait does not return the view of a site without pages
			return v, nil
		}
	}
}

// resume returns the sequence number up to which a client has received the log, from its last event
// ID, its token or a date. It also returns the commit time of that number.
func (p *publisher) resume(ctx context.Context, v millrace.View, r *http.Request) (uint64, string, error) {
	site := v.Site()
	params, err := parameters(r.URL.RawQuery)
	if err != nil {
		return 0, "", err
	}
	var q query
	last := r.Header.Get("Last-Event-ID")
	if err := q.parseDates(map[string]string{"since": cmp.Or(last, params["since"])}); err != nil {
		if last != "" {
			err = refuse(http.StatusBadRequest, invalidParam, "Last-Event-ID is not the ID of an event: "+quote(last)+".")
		}
		return 0, "", err
	}
	switch {
	case q.since.IsZero():
		return site.Seq, asOf(site), nil
	case q.token == nil, site.Has(q.token.E, *q.token.N) && *q.token.N > site.Seq:
		// The position is a date, or a token from a server that is ahead of this one.
		seq, err := v.SeqAt(ctx, q.since.Add(-time.Nanosecond))
		if err == nil {
			err = reaches(ctx, v, seq)
		}
		if errors.Is(err, millrace.ErrConflict) {
			err = resync("The log does not reach back to that time")
		}
		return seq, kit.FormatTime(q.since), err
	case !site.Has(q.token.E, *q.token.N):
		return 0, "", resync("The token belongs to another store of the site")
	}
	err = reaches(ctx, v, *q.token.N)
	if errors.Is(err, millrace.ErrConflict) {
		err = resync("The token is older than the log")
	}
	return *q.token.N, q.token.T, err
}

// ready returns the data of the first event: the position at which the stream begins.
func ready(site millrace.Site, from uint64, sent string) []byte {
	b := member([]byte{'{'}, "schema", schema)
	b = member(b, "as_of", sent)
	return append(member(b, "sync_token", eventID(site, from, sent)), '}')
}

// eventID returns the token for a position in the events, with its commit time. A client at that
// position may not have the state of that time: if a page changed before and after the position,
// the stream may have sent only the later change.
func eventID(site millrace.Site, seq uint64, commitTime string) string {
	return token{T: commitTime, N: &seq, E: site.Epoch, Part: true}.String()
}

// frame encodes an event.
func frame(name, id string, data []byte) []byte {
	b := append([]byte("event: "), name...)
	if id != "" {
		b = append(append(b, "\nid: "...), id...)
	}
	b = append(b, "\ndata: "...)
	return append(append(b, data...), "\n\n"...) // the JSON contains no line ends
}

// stop returns the final event of a stream.
func stop(code, text string) []byte {
	return frame("error", "", failure{code, text}.encode())
}

// listener is a client of the event stream.
type listener struct {
	p       *publisher
	w       http.ResponseWriter
	control *http.ResponseController
	live    millrace.Live
	begun   bool   // whether the response has started
	at      uint64 // sequence number up to which all events were sent
}

// write writes b in parts, each within writeTimeout.
func (l *listener) write(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), atOnce)
		// A writer without deadlines, as in tests, returns an error, which is ignored.
		_ = l.control.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := l.w.Write(b[:n]); err != nil {
			return err
		}
		if err := l.control.Flush(); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// follow sends past events and then new ones until the stream ends. It returns the reason for the
// end.
func (l *listener) follow(ctx context.Context) error {
	e := &l.p.events
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for lag := true; ; {
		frames, moved, err := e.after(&l.at)
		switch {
		case errors.Is(err, errBehind) && lag, errors.Is(err, errPurged):
			if err := l.catchUp(ctx); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		lag = false
		if len(frames) > 0 {
			if l.write(frames) != nil {
				return errGone
			}
			continue
		}
		select {
		case <-moved:
		case <-beat.C:
			if l.write([]byte(":\n\n")) != nil {
				return errGone
			}
		case <-ctx.Done():
			return errGone
		}
	}
}

// finalEvent returns the final event for an error.
func (p *publisher) finalEvent(err error) []byte {
	switch e, asked := errors.AsType[*millrace.RequestError](err); {
	case errors.Is(err, errGone):
		return nil
	case asked:
		return stop(e.Code, e.Text)
	case errors.Is(err, errBehind):
		return stop(slowConsumer, "The client reads events too slowly: connect again with Last-Event-ID.")
	case errors.Is(err, millrace.ErrConflict):
		return stop(resyncRequired, "The log no longer reaches back that far: read the index.")
	case errors.Is(err, millrace.ErrUnavailable):
		return stop(serverError, "The server is shutting down: connect again with Last-Event-ID.")
	}
	return stop(serverError, "Internal server error: connect again with Last-Event-ID.")
}

// errGone means that the client has stopped reading.
var errGone = errors.New("client disconnected")

// catchUp reads past events from the log and sends them.
func (l *listener) catchUp(ctx context.Context) error {
	e := &l.p.events
	select {
	case e.catchSlots() <- struct{}{}:
		defer func() { <-e.catchSlots() }()
	case <-ctx.Done():
		return errGone
	}
	v, err := l.live.View()
	if err != nil {
		return err
	}
	site := v.Site()
	for c, err := range l.p.commits(ctx, v, l.at, asOf(site)) {
		if err != nil {
			return fmt.Errorf("%s: events: %w", Name, err)
		}
		if l.write(c.frames) != nil {
			return errGone
		}
		l.at = c.seq
	}
	l.at = max(l.at, site.Seq)
	return nil
}
