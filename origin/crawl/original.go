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

// original is what a page is made of, beside its address: what has to be kept
// so that it can be made again without asking the site.
type original struct {
	contentType string   // of the response
	robots      []string // its X-Robots-Tag values
	modified    int64    // when the page was, if it does not say so itself, seconds since 1970; 0 = unknown
	body        []byte   // decoded, as far as content codings go
}

// originalFormat is the first byte of an encoded original. Another one is not
// read: such a page is asked for again.
const originalFormat = 1

// encode returns the bytes that [millrace.Page.Original] takes: the format,
// then as unsigned varints the time, the number of robots values and the length
// of each string, which follows it, and the body. nil: it would be too large.
// The body is copied.
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

var errOriginal = errors.New("what is kept of the page is not of this version")

// parseOriginal is the inverse of encode. The body is a part of data. The error
// is [millrace.ErrInvalid].
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
		if n > uint64(len(data)) { // the number itself took some of them
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

// options say how the page is extracted.
func (o *original) options(rules *extract.Rules) *extract.Options {
	return &extract.Options{ContentType: o.contentType, Robots: o.robots, Rules: rules, MaxBytes: maxPage}
}

// date sets the modification time of a page if it has none of its own.
func (o *original) date(p *millrace.Page) {
	if !p.Known.Has(millrace.FieldModified) && o.modified > 0 {
		p.Modified = time.Unix(o.modified, 0).UTC()
	}
}

// Original returns the HTML that a page was made of when the crawl had it last,
// and how it is extracted but for rules. The site is asked for nothing. Errors:
// [millrace.ErrNotFound] if the sink keeps nothing of it, and those of
// [Options.Original].
func (c *Crawl) Original(ctx context.Context, ref millrace.Ref) ([]byte, *extract.Options, error) {
	if c.o.Original == nil {
		return nil, nil, fmt.Errorf("original of %s: %w: it is not stored", ref.URL, millrace.ErrNotFound)
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
