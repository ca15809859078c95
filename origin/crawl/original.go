package crawl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
)

// original is the input of a page's extraction, except its address. It is stored so that the page
// can be extracted again without a request.
type original struct {
	contentType string   // Content-Type of the response
	robots      []string // X-Robots-Tag values of the response
	modified    int64    // modification time, if the page itself contains none, in seconds since 1970, or 0 if unknown
	body        []byte   // body without its content coding
}

// originalFormat is the first byte of an encoded original. If it differs, the original is ignored,
// and the page is fetched again.
const originalFormat = 1

// encode returns the bytes for [millrace.Page.Original], or nil if they would be too large. They
// contain the format, the time, the number of robots values, each string with its length before it,
// and the body. Numbers are unsigned varints. The body is copied.
func (o *original) encode() []byte {
	head := []byte{originalFormat}
	text := func(s string) {
		head = binary.AppendUvarint(head, uint64(len(s)))
		head = append(head, s...)
	}
	head = binary.AppendUvarint(head, uint64(max(o.modified, 0)))
	text(o.contentType)
	head = binary.AppendUvarint(head, uint64(len(o.robots)))
	for _, s := range o.robots {
		text(s)
	}
	n := len(head) + len(o.body)
	if n > millrace.MaxOriginal {
		return nil
	}
	return append(append(make([]byte, 0, n), head...), o.body...)
}

var errOriginal = errors.New("the stored original belongs to another version")

// parseOriginal is the inverse of encode. The returned body shares the memory of data. For invalid
// data, parseOriginal returns [millrace.ErrInvalid].
func parseOriginal(data []byte) (o original, err error) {
	bad := fmt.Errorf("%w: %w", millrace.ErrInvalid, errOriginal)
	if len(data) == 0 || len(data) > millrace.MaxOriginal || data[0] != originalFormat {
		return o, bad
	}
	data = data[1:]
	number := func(most uint64) uint64 {
		n, size := binary.Uvarint(data)
		if size <= 0 || n > most {
			err, data = bad, nil
			return 0
		}
		data = data[size:]
		return n
	}
	text := func() (s string) {
		n := number(uint64(len(data)))
		if n > uint64(len(data)) { // the number was read from data, so fewer bytes remain
			err, data = bad, nil
			return ""
		}
		s, data = string(data[:n]), data[n:]
		return s
	}
	o.modified = int64(number(1 << 40))
	o.contentType = text()
	for range number(uint64(len(data))) {
		if o.robots = append(o.robots, text()); err != nil {
			break
		}
	}
	if o.body = data; err != nil {
		return original{}, err
	}
	return o, nil
}

// options returns the options for the page's extraction.
func (o *original) options(rules *extract.Rules) *extract.Options {
	return &extract.Options{ContentType: o.contentType, Robots: o.robots, Rules: rules, MaxBytes: maxPage}
}

// date sets the modification time of a page without one.
func (o *original) date(p *millrace.Page) {
	if !p.Known.Has(millrace.FieldModified) && o.modified > 0 {
		p.Modified = time.Unix(o.modified, 0).UTC()
	}
}

// Original returns the stored HTML of a page, and the options for its extraction, without rules. It
// sends no request. If the sink stores no original of the page, Original returns
// [millrace.ErrNotFound]. It returns other errors of [Options.Original] unchanged.
func (c *Crawl) Original(ctx context.Context, ref millrace.Ref) ([]byte, *extract.Options, error) {
	if c.o.Original == nil {
		return nil, nil, fmt.Errorf("original of %s: %w: not stored", ref.URL, millrace.ErrNotFound)
	}
	data, err := c.o.Original(ctx, ref.URL)
	var o original
	if err == nil {
		o, err = parseOriginal(data)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("original of %s: %w", ref.URL, err)
	}
	return o.body, o.options(nil), nil
}
