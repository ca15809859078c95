package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/protocol"
)

// bounding are the flags about how much one pull takes of one site.
type bounding struct {
	MaxPages int      `placeholder:"N" help:"Most pages that one pull asks a site for; the next one goes on. Files of many pages are taken whole, or not at all if the site says that they have more."`
	MaxBytes byteSize `placeholder:"SIZE" help:"Most bytes that one pull receives of a site, headers included, such as 20MB; the next one goes on."`
}

func (c *bounding) validate() error {
	if c.MaxPages < 0 {
		return usageError("--max-pages is not negative; leave it out for no limit of your own")
	}
	return nil
}

// byteSize is a number of bytes, written such as 500000, 500kB, 20MB or 1.5GiB.
type byteSize int64

// UnmarshalText reads a size.
func (s *byteSize) UnmarshalText(text []byte) error {
	digits := strings.TrimSpace(string(text))
	unit := 1.0
	for _, u := range []struct {
		name string
		size float64
	}{
		{"KiB", 1 << 10},
		{"MiB", 1 << 20},
		{"GiB", 1 << 30},
		{"TiB", 1 << 40},
		{"kB", 1e3},
		{"MB", 1e6},
		{"GB", 1e9},
		{"TB", 1e12},
		{"k", 1e3},
		{"M", 1e6},
		{"G", 1e9},
		{"B", 1},
	} {
		if n := len(digits) - len(u.name); n > 0 && strings.EqualFold(digits[n:], u.name) {
			digits, unit = strings.TrimSpace(digits[:n]), u.size
			break
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(n*unit >= 1 && n*unit < 1<<62) {
		return fmt.Errorf("%.40q is no size: write one such as 500kB, 20MB or 1.5GiB", text)
	}
	*s = byteSize(n * unit)
	return nil
}

// boundError is a quota of the user that a pull has come to. It is no failure:
// what was taken is kept, and the next pull goes on.
type boundError struct{ quota string }

// Error names the quota, such as "--max-pages 100".
func (e *boundError) Error() string { return e.quota }

// bound ends one pull of one site where the user wants it to end. It is safe
// for concurrent use.
type bound struct {
	bounding
	client *fetch.Client
	over   func() error // the site wants no more; nil = nobody asks it
	asked  atomic.Int64 // pages
}

// enough is asked before each page.
func (b *bound) enough() error {
	if err := b.full(); err != nil {
		return err
	}
	if n := b.asked.Add(1); b.MaxPages > 0 && n > int64(b.MaxPages) {
		return &boundError{fmt.Sprintf("--max-pages %d", b.MaxPages)}
	}
	return nil
}

// full says whether the bytes are used up, or the site wants no more.
func (b *bound) full() error {
	if b.over != nil {
		if err := b.over(); err != nil {
			return err
		}
	}
	if b.MaxBytes > 0 && b.client.Stats().Received() >= int64(b.MaxBytes) {
		return &boundError{fmt.Sprintf("--max-bytes %d", b.MaxBytes)}
	}
	return nil
}

// ended gives the quota that an error comes from, nil if it comes from none.
func (b *bound) ended(err error) *boundError {
	if e, ok := errors.AsType[*boundError](err); ok {
		return e
	}
	// What fails when nothing more is received, fails for that.
	if full, ok := errors.AsType[*boundError](b.full()); err != nil && ok {
		return full
	}
	return nil
}

// refuse gives an error for an offer of many pages in few files that are more
// than what is left: they would be begun in vain, again with each pull.
func (b *bound) refuse(name string, o *protocol.Offer) error {
	if o == nil || o.First.Requests*2 > int64(o.Pages) {
		return nil // page by page
	}
	left := int64(b.MaxBytes) - b.client.Stats().Received()
	switch {
	case b.MaxPages > 0 && o.Pages > b.MaxPages:
		return fmt.Errorf("%w: %s brings %d pages together, and --max-pages allows %d: nothing was taken; allow more, or name a way that goes page by page with --via",
			millrace.ErrTooLarge, name, o.Pages, b.MaxPages)
	case b.MaxBytes > 0 && o.First.Bytes > left:
		return fmt.Errorf("%w: %s brings %d pages together in about %s, and --max-bytes leaves %s: nothing was taken; allow more, or name a way that goes page by page with --via",
			millrace.ErrTooLarge, name, o.Pages, humanize.Bytes(o.First.Bytes), humanize.Bytes(max(0, left)))
	}
	return nil
}
