package scp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace"
)

// OpenOptions bound what is read of a file. The zero value, and nil, stand for
// the limits of the specification (Resource Exhaustion Attacks).
type OpenOptions struct {
	MaxFile   int64            // bytes of the file; 0 = 50 GB
	MaxBytes  int64            // bytes when it is decoded; 0 = 500 GB
	MaxRatio  int64            // how many times larger it may become by that, from 1 MiB on; 0 = 100
	MaxLine   int              // bytes of one page; 0 = 100 MB
	MaxBlocks int              // blocks of one page; 0 = 1000
	MaxDepth  int              // arrays and objects inside each other; 0 = 64
	PageTime  time.Duration    // to read one page; 0 = 30 seconds
	Now       func() time.Time // the clock for PageTime; nil = time.Now

	// Scratch is where Verify leaves what it has decoded, up to 1 GiB, so that
	// Pages need not decode it again; nil = nowhere.
	Scratch Scratch
}

// Scratch is room for a file, such as a temporary [os.File].
type Scratch interface {
	io.ReaderAt
	io.WriterAt
}

func (o *OpenOptions) resolve() *OpenOptions {
	if o == nil {
		o = new(OpenOptions)
	}
	r := &OpenOptions{
		MaxFile:   cmp.Or(o.MaxFile, maxFile),
		MaxBytes:  cmp.Or(o.MaxBytes, maxBytes),
		MaxRatio:  cmp.Or(o.MaxRatio, maxRatio),
		MaxLine:   cmp.Or(o.MaxLine, maxLine),
		MaxBlocks: cmp.Or(o.MaxBlocks, maxBlocks),
		MaxDepth:  cmp.Or(o.MaxDepth, maxDepth),
		PageTime:  cmp.Or(o.PageTime, 30*time.Second),
		Now:       o.Now,
		Scratch:   o.Scratch,
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	return r
}

const (
	// RFC 9659, section 3, gives the content coding zstd a window of this size.
	maxWindow = 8 << 20
	// maxMetadata is the longest first line. The specification has no limit.
	maxMetadata = 1 << 20
	// maxScratch bounds what is kept decoded. A file may become a hundred times
	// as large.
	maxScratch = 1 << 30
)

// The codings of files, by the magic numbers that they start with (Media Type
// Registration). A zstd file may start with a frame to be skipped (RFC 8878,
// section 3.1.2).
func codingOf(magic []byte) string {
	switch {
	case bytes.HasPrefix(magic, []byte{0x28, 0xB5, 0x2F, 0xFD}),
		len(magic) >= 4 && magic[0]&0xF0 == 0x50 && bytes.Equal(magic[1:4], []byte{0x2A, 0x4D, 0x18}):
		return "zstd"
	case bytes.HasPrefix(magic, []byte{0x1F, 0x8B}):
		return "gzip"
	}
	return ""
}

// errLine says that a line is over the limit.
var errLine = errors.New("the line is too long")

// errStop is what a function ends the reading of lines with.
var errStop = errors.New("no further line is wanted")

// lines reads the lines of a file, by decoding it into its Write.
type lines struct {
	ctx    context.Context
	limits *OpenOptions
	each   func(line []byte) error // gets a line with its line end, which the last one need not have
	err    error                   // of each, or of a limit
	begun  []byte                  // of the line that has not ended yet
	number int64                   // of the line that was given last
	bytes  int64                   // read so far
	most   int64                   // that there may be
	ratio  bool                    // most is that of the ratio
	copy   io.WriterAt             // of what is read; nil = none, or not all of it
}

// failing remembers the error of a reader, so that it can be told from that of
// a decoder.
type failing struct {
	r   io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// read gives all lines of a file to a function, which may stop it. A line holds until the
// function returns.
func (l *lines) read(r io.ReaderAt, size int64, coding string, each func(line []byte) error) error {
	l.each, l.most = each, l.limits.MaxBytes
	if byRatio := max(ratioFloor, size*l.limits.MaxRatio); coding != "" && byRatio < l.most {
		l.most, l.ratio = byRatio, true
	}
	in := &failing{r: io.NewSectionReader(r, 0, size)}
	err := l.decode(in, coding)
	if err == nil && len(l.begun) > 0 {
		l.err = l.give(l.begun)
	}
	switch {
	case errors.Is(l.err, errStop):
		return nil
	case l.err != nil:
		return l.err
	case in.err != nil:
		return fmt.Errorf("read a collection: %w", in.err)
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	case err == nil:
		return nil
	}
	return l.refused("format/compression", "it cannot be decompressed", "Error Handling", err)
}

func (l *lines) decode(in io.Reader, coding string) error {
	switch coding {
	case "zstd":
		d, err := zstd.NewReader(bufio.NewReaderSize(in, 128<<10), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return err
		}
		defer d.Close()
		_, err = d.WriteTo(l)
		return err
	case "gzip":
		z, err := gzip.NewReader(bufio.NewReaderSize(in, 128<<10))
		if err != nil {
			return err
		}
		_, err = z.WriteTo(l)
		return err
	}
	_, err := io.CopyBuffer(l, in, make([]byte, 256<<10))
	return err
}

// Write takes what was decoded, and gives the lines that are in it without a copy.
func (l *lines) Write(b []byte) (int, error) {
	if l.err = l.take(b); l.err != nil {
		return 0, l.err
	}
	return len(b), nil
}

func (l *lines) take(b []byte) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	if l.bytes += int64(len(b)); l.bytes > l.most {
		rule, reason := noteRefused, fmt.Sprintf("it is longer than %d bytes", l.most)
		if l.ratio {
			rule, reason = "limits/ratio", fmt.Sprintf("it becomes more than %d times larger by decompression", l.limits.MaxRatio)
		}
		return l.refused(rule, reason, sectionLimits, nil)
	}
	l.keep(b)
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			break
		}
		line := b[:i+1]
		if len(l.begun) > 0 {
			l.begin(line)
			line = l.begun
			l.begun = l.begun[:0]
		}
		if err := l.give(line); err != nil {
			return err
		}
		b = b[i+1:]
	}
	if l.begin(b); len(l.begun) > l.limits.MaxLine {
		return l.refused("limits/page", "", sectionLimits, errLine)
	}
	return nil
}

// begin keeps the beginning of a line, in a buffer that is no larger than a line may be.
func (l *lines) begin(b []byte) {
	if n := len(l.begun) + len(b); n > cap(l.begun) {
		l.begun = append(make([]byte, 0, max(n, min(2*n, l.limits.MaxLine+2))), l.begun...)
	}
	l.begun = append(l.begun, b...)
}

func (l *lines) give(line []byte) error {
	if len(bytes.TrimSuffix(line, []byte("\n"))) > l.limits.MaxLine {
		return l.refused("limits/page", "", sectionLimits, errLine)
	}
	l.number++
	return l.each(line)
}

// keep copies what has been read last. Without room, there is no copy.
func (l *lines) keep(b []byte) {
	if l.copy == nil {
		return
	}
	if _, err := l.copy.WriteAt(b, l.bytes-int64(len(b))); err != nil || l.bytes > maxScratch {
		l.copy = nil
	}
}

// refused names the line after the last one that was given.
func (l *lines) refused(rule, reason, section string, err error) error {
	return &ruled{rule, &millrace.FormatError{
		Protocol: Name, Position: fmt.Sprintf("line %d", l.number+1), Section: section, Reason: reason, Err: err,
	}}
}
