package agent

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/protocol"
)

// budgetError reports that a pull reached a limit of its options. It is not a failure: the
// pages read so far are in the store, and the next pull continues.
type budgetError struct{ quota string }

// Error names the limit, such as "Options.MaxPages 100".
func (e *budgetError) Error() string { return e.quota }

// maxDecoded is the maximum ratio of the decoded bytes in temporary files to Options.MaxBytes.
const maxDecoded = 10

// budget checks the limits of one pull, and returns an error when one is reached. It is safe for
// concurrent use.
type budget struct {
	maxPages int
	maxBytes int64
	maxTime  time.Duration
	start    time.Time
	client   *fetch.Client
	over     func() error // returns the error with which the site's policy ended the pull, or nil; not called if nil
	asked    atomic.Int64 // number of requested pages
}

// enough counts the request of one more page, or returns an error if a limit is reached.
func (b *budget) enough() error {
	if err := b.full(); err != nil {
		return err
	}
	if n := b.asked.Add(1); b.maxPages > 0 && n > int64(b.maxPages) {
		return &budgetError{fmt.Sprintf("Options.MaxPages %d", b.maxPages)}
	}
	return nil
}

// full returns an error if the byte or time limit is reached, or the site's policy ended the pull.
func (b *budget) full() error {
	if b.over != nil {
		if err := b.over(); err != nil {
			return err
		}
	}
	if b.maxTime > 0 && time.Since(b.start) >= b.maxTime {
		return &budgetError{fmt.Sprintf("Options.MaxTime %s", b.maxTime)}
	}
	if b.maxBytes > 0 && b.client.Stats().Received() >= b.maxBytes {
		return &budgetError{fmt.Sprintf("Options.MaxBytes %d", b.maxBytes)}
	}
	return nil
}

// ended returns the limit that caused err, or nil if no limit did.
func (b *budget) ended(err error) *budgetError {
	if e, ok := errors.AsType[*budgetError](err); ok {
		return e
	}
	// Once a limit is reached, it counts as the cause of every failure.
	if full, ok := errors.AsType[*budgetError](b.full()); err != nil && ok {
		return full
	}
	return nil
}

// refuse returns an error if an offer packs many pages into few files and exceeds the
// remaining budget. No pull could finish such an offer.
func (b *budget) refuse(name string, o *protocol.Offer) error {
	if o == nil || o.First.Requests*2 > int64(o.Pages) {
		return nil // no offer, or the pages are read one by one
	}
	left := b.maxBytes - b.client.Stats().Received()
	switch {
	case b.maxPages > 0 && o.Pages > b.maxPages:
		return fmt.Errorf("%w: %s has %d pages in one file, and Options.MaxPages allows %d: nothing was read; allow more, or set Options.Via to a way that reads page by page",
			millrace.ErrTooLarge, name, o.Pages, b.maxPages)
	case b.maxBytes > 0 && o.First.Bytes > left:
		return fmt.Errorf("%w: %s has %d pages in one file of about %s, and Options.MaxBytes leaves %s: nothing was read; allow more, or set Options.Via to a way that reads page by page",
			millrace.ErrTooLarge, name, o.Pages, humanize.Bytes(o.First.Bytes), humanize.Bytes(max(0, left)))
	}
	return nil
}
