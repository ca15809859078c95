package scp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"

	"github.com/millrace/millrace"
)

// Collection is an SCP file: one line of metadata, followed by one line per page, in any coding. It
// is not safe for concurrent use.
type Collection struct {
	r      io.ReaderAt
	size   int64
	coding string
	limits *OpenOptions
	meta   Metadata
	sum    memberSpan // position of the checksum in the first line
	plain  int64      // decoded size of the copy in limits.Scratch. If zero, there is no copy.
}

// Open reads the first line of a file of size bytes, and detects the coding of the file from its
// first bytes. The error is an error of r, or a [*millrace.FormatError] without a URL.
func Open(r io.ReaderAt, size int64, o *OpenOptions) (*Collection, error) {
	c := &Collection{r: r, size: size, limits: o.resolve()}
	if size > c.limits.MaxFile {
		return nil, &ruled{"limits/file", &millrace.FormatError{
			Protocol: Name, Section: sectionLimits, Reason: fmt.Sprintf("the file is longer than %d bytes", c.limits.MaxFile),
		}}
	}
	var magic [4]byte
	n, err := r.ReadAt(magic[:min(4, size)], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read collection: %w", err)
	}
	c.coding = codingOf(magic[:n])
	first := *c.limits
	first.MaxLine = min(first.MaxLine, maxMetadata)
	l := &lines{ctx: context.Background(), limits: &first}
	err = l.read(r, size, c.coding, func(line []byte) error {
		p := parser{limits: c.limits}
		var ok bool
		if c.meta, c.sum, ok = p.parseMetadata(line); !ok {
			return &ruled{p.fatal.rule, formatError(1, line, p.fatal)}
		}
		return errStop
	})
	if err == nil && l.number == 0 {
		err = l.refused("format/first-line", "the file is empty", "Structure", nil)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Metadata returns the content of the first line.
func (c *Collection) Metadata() Metadata { return c.meta }

// Coding returns the content coding of the file: "zstd", "gzip", or "" for none.
func (c *Collection) Coding() string { return c.coding }

// CheckResult is the result of [Collection.Verify].
type CheckResult struct {
	// Checksum reports what the checksum covers, because a file cannot contain its own hash. "cut"
	// is the file without the member, "empty" and "zeros" are the file with "" or zeros as the
	// value, and "pages-only" is the file without the first line. "none" means that the file has no
	// checksum, and "bad" that no form matches.
	Checksum string
	Pages    int   // number of valid pages
	Skipped  int   // number of invalid pages, which are skipped
	Bytes    int64 // decoded size of the file in bytes
	Unknown  int   // number of blocks of unknown types
	Dropped  int   // number of parts of pages that were dropped because their URL is not http or https
	Clamped  int   // number of headings with a level outside 1 to 6

	canonical int // number of canonical URLs in Dropped
}

// Verify checks the whole file: coding, limits, checksum and every line. If it returns an error,
// the result covers the file up to the error. The error is an error of the underlying reader, the
// error of the context, or a [*millrace.FormatError] without a URL.
func (c *Collection) Verify(ctx context.Context) (CheckResult, error) {
	var v CheckResult
	sum := sha256.New()
	p, err := c.read(ctx, false, sum, &v, func(_ *page, skipped error) bool {
		if skipped == nil {
			v.Pages++
		} else {
			v.Skipped++
		}
		return true
	})
	v.Unknown, v.Clamped = p.counts.unknown, p.counts.clamped
	v.Dropped, v.canonical = p.counts.dropped+p.counts.canonical, p.counts.canonical
	if err != nil {
		return v, err
	}
	switch c.meta.Checksum {
	case "":
		v.Checksum = "none"
		return v, nil
	case hashPrefix + hex.EncodeToString(sum.Sum(nil)):
		v.Checksum = "cut"
		return v, nil
	}
	v.Checksum, err = c.otherChecksum(ctx)
	return v, err
}

// Pages yields the pages in file order, one at a time. After a [*millrace.SkipError], which
// concerns one page, the iteration continues; any other error ends it. If several pages have the
// same URL, Pages yields all of them. The strings of a page share memory with its line: clone the
// strings that you keep.
func (c *Collection) Pages(ctx context.Context) iter.Seq2[*millrace.Page, error] {
	return func(yield func(*millrace.Page, error) bool) {
		on := true
		_, err := c.read(ctx, true, nil, new(CheckResult), func(w *page, skipped error) bool {
			if skipped != nil {
				on = yield(nil, skipped)
			} else {
				on = yield(w.page(), nil)
			}
			return on
		})
		if err != nil && on {
			yield(nil, err)
		}
	}
}

// read reads the file, and calls each for every page. For a skipped page, the error is the reason.
// each reports whether to continue. If keep is set, the content of pages is stored. If sum is not
// nil, read writes the file without the checksum member to sum.
func (c *Collection) read(ctx context.Context, keep bool, sum hash.Hash, v *CheckResult, each func(*page, error) bool) (*parser, error) {
	p := &parser{limits: c.limits, keep: keep}
	r, size, coding := c.r, c.size, c.coding
	if keep && c.plain > 0 {
		r, size, coding = c.limits.Scratch, c.plain, ""
	}
	l := &lines{ctx: ctx, limits: c.limits}
	if !keep && coding != "" && c.limits.Scratch != nil {
		l.copy = c.limits.Scratch
	}
	err := l.read(r, size, coding, func(line []byte) error {
		if sum != nil {
			if l.number == 1 {
				sum.Write(line[:c.sum.from])
				sum.Write(line[c.sum.to:])
			} else {
				sum.Write(line)
			}
		}
		if l.number == 1 {
			return nil
		}
		before := p.counts
		if !p.parsePage(line) {
			if len(bytes.TrimSpace(line)) == 0 {
				p.fatal = issue{rule: p.broken, section: "Structure", reason: "the line is blank"}
			}
			return &ruled{p.fatal.rule, formatError(l.number, line, p.fatal)}
		}
		var skipped error
		if p.skip.reason != "" {
			p.counts = before // do not count the errors of skipped pages
			skipped = &millrace.SkipError{URL: p.page.URL, Err: &ruled{p.skip.rule, formatError(l.number, line, p.skip)}}
		}
		if !each(&p.page, skipped) {
			return errStop
		}
		return nil
	})
	if v.Bytes = l.bytes; err == nil && l.copy != nil {
		c.plain = l.bytes
	}
	return p, err
}

// otherChecksum tries the other interpretations of the checksum, the most likely ones first.
func (c *Collection) otherChecksum(ctx context.Context) (string, error) {
	sums := [3]hash.Hash{sha256.New(), sha256.New(), sha256.New()}
	values := []string{`""`, `"` + hashPrefix + noSum + `"`}
	l := &lines{ctx: ctx, limits: c.limits}
	err := l.read(c.r, c.size, c.coding, func(line []byte) error {
		for i, s := range sums {
			switch {
			case l.number > 1:
				s.Write(line)
			case i < len(values):
				s.Write(line[:c.sum.value])
				s.Write([]byte(values[i]))
				s.Write(line[c.sum.end:])
			}
		}
		return nil
	})
	if err != nil {
		return "bad", err
	}
	for i, name := range []string{"empty", "zeros", "pages-only"} {
		if c.meta.Checksum == hashPrefix+hex.EncodeToString(sums[i].Sum(nil)) {
			return name, nil
		}
	}
	return "bad", &ruled{"checksum/matches", &millrace.FormatError{
		Protocol: Name, Position: "line 1 (/collection/checksum)", Section: "Checksum Verification",
		Reason: "the checksum does not match the file", Err: errSum,
	}}
}

var errSum = errors.New("no interpretation matches")
