package accesslog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/millrace/millrace/internal/canon"
)

const (
	// Lines of maxLine bytes or more are skipped. Lines of real requests are much shorter, because
	// servers limit the size of requests.
	maxLine     = 1 << 20
	maxExamples = 3
	maxExample  = 160 // maximum number of bytes of an example
	checkEvery  = 4096
)

// Scanner reads logs. Its zero value works.
type Scanner struct {
	Parser
	Lines    int64     // number of lines that are not empty
	Requests int64     // lines that are requests
	Long     int64     // lines of 1 MB and more, which were skipped
	Unknown  int64     // lines that are not requests in a known format
	Examples []Example // the first unknown lines

	long []byte // beginning of a line that is longer than the buffer
	line Line
}

// Example is an unknown line.
type Example struct {
	File string `json:"file"`
	Line int64  `json:"line"` // number of the line in the file, from 1
	Text string `json:"text"` // beginning of the line
}

// Scan reads a log to its end and calls each for every request. The log may be compressed by gzip.
// Errors are those of the context and of r; the lines before the error were read.
func (s *Scanner) Scan(ctx context.Context, name string, r io.Reader, each func(l *Line)) error {
	in := bufio.NewReaderSize(r, 256<<10)
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		in = bufio.NewReaderSize(z, 256<<10)
	}
	for n := int64(1); ; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, long, err := s.next(ctx, in)
		if len(line) > 0 {
			s.add(name, n, line, long, each)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("%s: line %d: %w", name, n, err)
		}
	}
}

// next returns the next line without its newline, or only the beginning of a line that is too long.
func (s *Scanner) next(ctx context.Context, in *bufio.Reader) (line []byte, long bool, err error) {
	line, err = in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return bytes.TrimSuffix(line, []byte{'\n'}), false, err
	}
	s.long = s.long[:0]
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(s.long)+len(line) < maxLine {
			s.long = append(s.long, line...)
		} else {
			long = true
		}
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		line, err = in.ReadSlice('\n')
	}
	line = bytes.TrimSuffix(line, []byte{'\n'})
	if long = long || len(s.long)+len(line) >= maxLine; !long {
		s.long = append(s.long, line...)
	}
	return s.long, long, err
}

// add counts a line and parses it.
func (s *Scanner) add(name string, n int64, line []byte, long bool, each func(l *Line)) {
	switch s.Lines++; {
	case long:
		s.Long++
	case len(bytes.TrimSpace(line)) == 0:
		s.Lines--
	case s.Parse(line, &s.line):
		s.Requests++
		each(&s.line)
	default:
		if s.Unknown++; len(s.Examples) < maxExamples {
			s.Examples = append(s.Examples, Example{name, n, canon.Visible(string(line[:min(len(line), maxExample)]))})
		}
	}
}
