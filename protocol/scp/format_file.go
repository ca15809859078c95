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

// OpenOptions limit the resources for reading a file. The default limits are those of the
// specification (Resource Exhaustion Attacks), which does not define MaxDepth. Nil options mean the
// zero value.
type OpenOptions struct {
	MaxFile  int64            // maximum size of the file in bytes. If zero, 50 GB.
	MaxBytes int64            // maximum number of decoded bytes. If zero, 500 GB.
	MaxRatio int64            // maximum ratio of decoded to coded size, from 1 MiB on. If zero, 100.
	MaxLine  int              // maximum size of one page in bytes. If zero, 100 MB.
	MaxDepth int              // maximum number of nested arrays and objects. If zero, 64.
	Now      func() time.Time // clock for the time limit of a page. If nil, time.Now.

	// Scratch stores up to 1 GiB of the bytes that Verify decodes, so Pages need not decode the
	// file again. If nil, nothing is stored.
	Scratch Scratch
}

// Scratch is storage for a file, such as a temporary [os.File].
type Scratch interface {
	io.ReaderAt
	io.WriterAt
}

func (o *OpenOptions) resolve() *OpenOptions {
	if o == nil {
		o = new(OpenOptions)
	}
	r := &OpenOptions{
		MaxFile:  cmp.Or(o.MaxFile, maxFile),
		MaxBytes: cmp.Or(o.MaxBytes, maxBytes),
		MaxRatio: cmp.Or(o.MaxRatio, maxRatio),
		MaxLine:  cmp.Or(o.MaxLine, maxLine),
		MaxDepth: cmp.Or(o.MaxDepth, maxDepth),
		Now:      o.Now,
		Scratch:  o.Scratch,
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	return r
}

const (
	// RFC 9659, section 3, limits the window of the content coding zstd to this size.
	maxWindow = 8 << 20
	// pageTime is the time limit to read one page.
	pageTime = 30 * time.Second
	// maxMetadata is the maximum length of the first line. The specification has no limit.
	maxMetadata = 1 << 20
	// maxScratch is the maximum number of stored decoded bytes, because a file may decode to a
	// hundred times its size.
	maxScratch = 1 << 30
)

// codingOf returns the coding of a file according to its magic number (Media Type Registration). A
// zstd file may start with a skippable frame (RFC 8878, section 3.1.2). Any other file has the
// coding "".
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

// errLine is the error for a line above the limit.
var errLine = errors.New("the line is too long")

// errStop is the error with which a function stops the reading of lines.
var errStop = errors.New("stop reading lines")

// lines splits a file into lines. Its method Write receives the bytes from the decoder.
type lines struct {
	ctx    context.Context
	limits *OpenOptions
	each   func(line []byte) error // receives each line with its line end, which the last line may lack
	err    error                   // error of each, or the error for an exceeded limit
	begun  []byte                  // beginning of the incomplete line
	number int64                   // number of the last complete line
	bytes  int64                   // number of decoded bytes so far
	most   int64                   // maximum number of decoded bytes
	ratio  bool                    // whether most comes from the ratio limit
	copy   io.WriterAt             // receives a copy of the decoded bytes. If nil, there is no copy, or an incomplete one.
}

// failing stores the error of a reader, to distinguish it from an error of the decoder.
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

// read calls each for every line of a file, until each returns an error. If that error is errStop,
// read returns nil. A line is valid until each returns.
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
		return fmt.Errorf("read collection: %w", in.err)
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	case err == nil:
		return nil
	}
	return l.refused("format/compression", "decompression failed", "Error Handling", err)
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

// Write splits decoded bytes into lines. It does not copy complete lines.
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
		rule, reason := noteRefused, fmt.Sprintf("longer than %d bytes", l.most)
		if l.ratio {
			rule, reason = "limits/ratio", fmt.Sprintf("decompressed size over %d times the file size", l.limits.MaxRatio)
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

// begin appends b to the incomplete line. The buffer doubles as it grows, but reserves no space
// beyond the maximum line length.
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

// keep copies the last decoded bytes. If writing fails or the copy exceeds maxScratch, it drops the
// copy.
func (l *lines) keep(b []byte) {
	if l.copy == nil {
		return
	}
	if _, err := l.copy.WriteAt(b, l.bytes-int64(len(b))); err != nil || l.bytes > maxScratch {
		l.copy = nil
	}
}

// refused returns the error for the line after the last complete one.
func (l *lines) refused(rule, reason, section string, err error) error {
	return &ruled{rule, &millrace.FormatError{
		Protocol: Name, Position: fmt.Sprintf("line %d", l.number+1), Section: section, Reason: reason, Err: err,
	}}
}
