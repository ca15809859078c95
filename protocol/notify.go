package protocol

import "context"

// ChangeNotifier is an optional interface of a reader whose protocol has a stream
// of events.
type ChangeNotifier interface {
	// Notify calls changed whenever the site reports a change, until its context
	// ends, and returns the context's error. A report is a hint; reading the site
	// shows what has changed. position is the argument of an earlier call of changed:
	// events since then are reported too. If it is empty, changed is called once as
	// soon as the stream is open. Calls do not overlap; changed must return at once.
	//
	// Notify reconnects with growing delays and continues at its position.
	// [millrace.ErrNotFound]: the site has no events; [millrace.ErrForbidden]: it
	// refuses them to us; [millrace.ErrInvalid]: they cannot be parsed.
	// ErrUnavailable does not end it.
	Notify(ctx context.Context, position string, changed func(position string)) error
}
