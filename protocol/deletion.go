package protocol

import (
	"context"
	"iter"
	"time"

	"github.com/millrace/millrace"
)

// DeletionReader is a reader whose protocol can be asked what is gone, without
// reading what there is: beside a roll whose refresh does not tell. It is found
// by assertion.
type DeletionReader interface {
	// Deletions yields the pages that are gone, as Deletes with absolute URLs,
	// and at its end one Mark, whose cursor is the place to go on from. Pages
	// that came back are none of them; those of other sites are noted and left
	// out. What is yielded before an error counts for nothing.
	//
	// It is to be asked after the roll has been read, since what that names may
	// be gone already. from is the oldest state that this reading of the roll has
	// told of, which is the Time of its Marks, or when the reading began if they
	// have none; the zero time: it has told of nothing. Without a cursor, from is
	// where deletions begin, less a margin for clocks that differ; the zero
	// time: now. With one they begin there, or at from if that is earlier.
	//
	// When nothing has changed it takes one small request, or a 304; the first
	// in 24 hours also looks for the endpoint again. When pages have, the reply
	// names them, too.
	//
	// [millrace.ErrConflict]: what has gone since is not known any more, or not
	// all of it, so the roll has to be read whole, and the next call is without
	// a cursor. [errors.ErrUnsupported]: the site does not tell of deletions.
	Deletions(ctx context.Context, since millrace.Cursor, from time.Time) iter.Seq2[millrace.Change, error]
}
