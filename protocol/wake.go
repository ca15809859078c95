package protocol

import "context"

// Waker is a reader whose protocol can tell at once that a site has changed. It
// is found by assertion.
type Waker interface {
	// Wake calls woken whenever the site says that it has changed, until its
	// context ends, whose error it gives. What the site says is a hint: a look
	// shows what there is. place is where a call of woken has put it, so that
	// what has happened since then is told of, too; "" = somewhere before now, so
	// woken is called once as soon as the site listens. Calls come one after the
	// other, and often: woken returns at once.
	//
	// Connections that break are made anew, after ever longer waits, from
	// where they were. [millrace.ErrNotFound]: the site tells nobody;
	// [millrace.ErrForbidden]: not us; [millrace.ErrInvalid]: what it says cannot
	// be understood. ErrUnavailable is no end of it.
	Wake(ctx context.Context, place string, woken func(place string)) error
}
