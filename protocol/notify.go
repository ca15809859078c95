package protocol

import "context"

// ChangeNotifier is an optional interface of a reader whose protocol has an event stream.
type ChangeNotifier interface {
	// Notify calls changed whenever the site reports a change, until ctx ends, and returns the
	// context's error. A report is a hint; read the site to find the changes. position is the
	// argument of an earlier call of changed: Notify also reports the events since then. If
	// position is empty, Notify calls changed once as soon as the stream is open. Calls do not
	// overlap; changed must return at once.
	//
	// Notify reconnects with growing delays and continues at its position.
	// [millrace.ErrNotFound]: the site has no events; [millrace.ErrForbidden]: the site
	// refuses them to this client; [millrace.ErrInvalid]: they cannot be parsed.
	// ErrUnavailable does not end it.
	Notify(ctx context.Context, position string, changed func(position string)) error
}
