package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
)

// networkError is the error for a network failure, which may be temporary.
type networkError struct{ err error }

func (e *networkError) Error() string {
	_, text := networkText(e.err)
	return text
}

// ErrorCode returns the code of the connection error, such as "dns-unknown".
func (e *networkError) ErrorCode() string {
	if slow, ok := errors.AsType[slowError](e.err); ok {
		return slow.code
	}
	code, _ := networkText(e.err)
	return code
}

func (e *networkError) Unwrap() []error { return []error{millrace.ErrUnavailable, e.err} }

// slowError is the error for a time limit that a server exceeded.
type slowError struct{ code, text string }

func (e slowError) Error() string { return e.text }
func (e slowError) Timeout() bool { return true }

// watch cancels an exchange that takes too long.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	total  *time.Timer
	idle   *time.Timer // running while a Read waits for bytes of the body
	// idleTimeout is the duration of idle. It does not change while the body is read.
	idleTimeout time.Duration
}

// startWatch starts the timer of the whole exchange. It calls late when the timer expires.
func startWatch(parent context.Context, timeout time.Duration, late func()) *watch {
	w := &watch{idleTimeout: bodyIdleTimeout}
	w.ctx, w.cancel = context.WithCancelCause(parent)
	w.total = time.AfterFunc(timeout, func() {
		w.cancel(slowError{"timeout-total", fmt.Sprintf("the response took longer than %s", timeout)})
		late()
	})
	w.idle = time.AfterFunc(bodyIdleTimeout, func() {
		w.cancel(slowError{"timeout-idle", fmt.Sprintf("no data received for %s", w.idleTimeout)})
	})
	w.idle.Stop()
	return w
}

func (w *watch) stop() {
	w.total.Stop()
	w.idle.Stop()
	w.cancel(nil)
}

// explain returns a networkError for err. Errors of the caller's context, of refused addresses and
// of Options.Resolve are not network errors, and remain unchanged.
func (w *watch) explain(err error) error {
	if cause := context.Cause(w.ctx); cause != nil {
		if slow, ok := errors.AsType[slowError](cause); ok {
			return &networkError{slow}
		}
		return cause
	}
	if refused, ok := errors.AsType[*AddressError](err); ok {
		return refused
	}
	if errors.Is(err, millrace.ErrConflict) { // an error of Options.Resolve
		return err
	}
	return &networkError{err}
}

// wireBody is a response body as received, still coded.
type wireBody struct {
	body   io.ReadCloser
	watch  *watch
	pass   *pass
	limits limits
	count  *atomic.Int64
	spent  func() error // returns an error if the client must not receive more bytes
	url    string
	want   int64         // Content-Length; -1 if unknown
	n      int64         // bytes read
	paced  bool          // the body is a file, for which a minimum rate applies
	waited time.Duration // time waited since the last rate check
	had    int64         // bytes read at the last rate check
	err    error         // final error, once reached
	// onComplete is called once, with the length of the content, when the body has been read
	// to its end. It may be nil.
	onComplete func(content int64)
	// check is called at the end of the body. Its error replaces io.EOF. It may be nil.
	check func() (broken func(), err error)
	// broken is called if the body does not match its digests. It may be nil.
	broken func()
	// keep is called with the complete content of the body, if Content-Encoding still is coding. It
	// may be nil.
	keep   func(content []byte)
	coding string // Content-Encoding when keep was set
}

// emptyBody is a body without bytes. broken is called if the body does not match its digests.
type emptyBody struct {
	io.ReadCloser
	broken func()
}

func (b *wireBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.want > b.limits.body {
		return 0, b.end(tooLarge(b.url, "body-size", "Content-Length %d is over the limit of %d bytes", b.want, b.limits.body))
	}
	spent := b.spent()
	b.watch.idle.Reset(b.watch.idleTimeout)
	began := time.Now()
	n, err := b.body.Read(p)
	wait := time.Since(began)
	b.watch.idle.Stop()
	b.n += int64(n)
	b.count.Add(int64(n))
	switch {
	case err == nil && b.stalls(wait):
		slow := slowError{"timeout-rate", fmt.Sprintf("less than %d bytes in %s", minFile, fileWindow)}
		return 0, b.end(&BodyError{URL: b.url, Reason: fmt.Sprintf("interrupted after %d bytes", b.n), Kind: millrace.ErrUnavailable, Err: &networkError{slow}})
	case b.n > b.limits.body:
		return 0, b.end(tooLarge(b.url, "body-size", "more than the limit of %d bytes", b.limits.body))
	case err == nil && spent != nil: // a body that ends exactly here is complete
		return 0, b.end(spent)
	case err == nil:
		return n, nil
	case !ended(err):
		if err = b.watch.explain(err); errors.Is(err, millrace.ErrUnavailable) {
			err = &BodyError{URL: b.url, Reason: fmt.Sprintf("interrupted after %d bytes", b.n), Kind: millrace.ErrUnavailable, Err: err}
		}
	}
	if err = b.end(err); ended(err) && b.check != nil {
		var wrong error
		if b.broken, wrong = b.check(); wrong != nil {
			b.err = wrong
		}
	}
	return n, b.err
}

// A file may take a long time, but must receive minFile bytes in each fileWindow.
const (
	fileWindow = time.Minute
	minFile    = 60 << 10
)

// stalls reports whether a file receives less than its minimum rate, after a Read that waited for
// wait. The idle timer of watch detects a Read that receives nothing.
func (b *wireBody) stalls(wait time.Duration) bool {
	if b.waited += wait; !b.paced || b.waited < fileWindow {
		return false
	}
	slow := b.n-b.had < minFile
	b.waited, b.had = 0, b.n
	return slow
}

// end records the final error, stops the timers and ends the pass. At io.EOF, the transport has
// already taken back the connection, so canceling the context does not close the connection.
func (b *wireBody) end(err error) error {
	b.err = err
	b.watch.stop()
	_, ours := errors.AsType[*QuotaError](err)
	switch {
	case ours, ended(err), errors.Is(err, millrace.ErrTooLarge):
		b.pass.done(fine)
	default:
		b.pass.done(outcomeOfErr(err))
	}
	return err
}

// Close discards the unread rest of the body.
func (b *wireBody) Close() error {
	err := b.body.Close()
	if b.err == nil {
		b.err = errClosed
	}
	b.watch.stop()
	b.pass.done(fine)
	return err
}

var errClosed = errors.New("read after Close")
