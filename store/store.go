// Package store is the contract of the engines that keep sites: the packages
// below it are engines, and storetest is the suite that each of them passes.
package store

import (
	"context"
	"time"

	"github.com/millrace/millrace"
)

// Site is one site in a store: it takes changes in, remembers its sources and
// gives views of what is known (Head) and of what is public now (Published).
// All methods are safe for concurrent use.
type Site interface {
	millrace.Sink
	millrace.Memory

	// Derive brings every page in line with the site's [Config] when its
	// fingerprint differs from the one that the store was written with; it
	// does nothing otherwise. Pages that the new configuration hides become
	// deletions in the log, and so on. It is resumable: after a crash it goes
	// on where it was. progress may be nil.
	Derive(ctx context.Context, progress func(done, total int)) error

	// Head gives a view of the newest sequence number. ErrConflict: the pages
	// have to be derived first.
	Head(ctx context.Context) (millrace.View, error)
	// Published gives the view that was published last, with its manifest.
	// ErrNotFound: none was, or its configuration was another one.
	Published(ctx context.Context) (millrace.View, []byte, error)
	// Publish makes the view of sequence number to the published one, with
	// its manifest, if the published one is still from (0 = none).
	// ErrConflict: somebody else was faster; nothing has happened.
	Publish(ctx context.Context, from, to uint64, manifest []byte) error

	// Compact drops superseded rows that no view needs (older than the
	// published one for longer than keep), and log entries and tombstones
	// older than horizon. A cursor from before the horizon is then refused.
	Compact(ctx context.Context, keep, horizon time.Duration) error
}

// Config is what decides, beside the sources, what a site's views show.
type Config struct {
	Base       string              // of the C-URLs: absolute, ends with "/"
	Docs       string              // of the machine documents; "" = Base
	Visibility millrace.Visibility // below every protocol
	Taggers    []millrace.Tagger   // of every room that publishes
}
