package protocol

import (
	"context"
	"iter"
	"time"

	"github.com/millrace/millrace"
)

// DeletionReader is an optional interface of a reader that can report deleted
// pages alone.
type DeletionReader interface {
	// Deletions yields the deleted pages, as Deletes with absolute URLs, and at the
	// end one checkpoint, whose cursor is where to go on. It leaves out pages that
	// came back, and notes those of other sites. If it fails, what it yielded before
	// does not count.
	//
	// Call it after reading the primary source, which may name pages that are
	// deleted already. from is the oldest state that this reading has reported: the
	// Time of its checkpoints, or when it began if they have none; zero if it has
	// reported nothing. Without a cursor, deletions begin at from, less a margin for
	// different clocks; if from is zero, now. With a cursor they begin there, or at
	// from if that is earlier.
	//
	// If nothing has changed, it takes one small request or a 304. The first call in
	// 24 hours also looks for the endpoint again. If pages have changed, the response
	// names them too.
	//
	// [millrace.ErrConflict]: the site no longer knows all deletions since then. Read
	// the primary source completely, then call Deletions without a cursor.
	// [errors.ErrUnsupported]: the site does not report deletions.
	Deletions(ctx context.Context, since millrace.Cursor, from time.Time) iter.Seq2[millrace.Change, error]
}
