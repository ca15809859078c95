package protocol

import (
	"context"
	"iter"
	"time"

	"github.com/millrace/millrace"
)

// DeletionReader is an optional interface of a reader that can report deleted pages without
// reading the others.
type DeletionReader interface {
	// Deletions yields the deleted pages, as Deletes with absolute URLs. It ends with one
	// checkpoint, whose cursor the next call takes. It skips deleted pages that exist again,
	// and reports pages of other sites as a Note. If it fails, discard what it yielded.
	//
	// Call it after reading the primary source, which may list pages that are already deleted.
	// from is the oldest state that this reading has reported: the Time of its checkpoints, or
	// its start if they have none; zero if it has reported nothing. Without a cursor,
	// Deletions starts at from, less a margin for clock differences; if from is zero, it
	// starts now. With a cursor, it starts there, or at from if that is earlier.
	//
	// If nothing has changed, it takes one small request or a 304. The first call in 24 hours
	// also looks for the endpoint again. If pages have changed, the response also lists the
	// changed pages.
	//
	// [millrace.ErrConflict]: the site no longer has all deletions since the cursor. Read the
	// primary source completely, then call Deletions without a cursor.
	// [errors.ErrUnsupported]: the site does not report deletions.
	Deletions(ctx context.Context, since millrace.Cursor, from time.Time) iter.Seq2[millrace.Change, error]
}
