package jsonio

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Line is one line of JSON Lines.
type Line struct {
	Number int64  // from 1
	Offset int64  // bytes before it
	Data   []byte // without the line end; it holds until the next line is read
	depth  int
}

// Decode reads the line, one JSON value, into v, a pointer. Its errors are
// those of [Unmarshal], with the place in the whole input.
func (l Line) Decode(v any) error {
	return unmarshal(place{line: l.Number, offset: l.Offset}, l.Data, l.depth, v)
}

// Lines reads JSON Lines: a value a line, each ended by LF or CR LF, the last
// one perhaps by the end of the input. A blank line is an error. An error
// ends the sequence; what a line holds is checked by [Line.Decode] alone, and
// the caller may go on after that. The limits may be nil.
func Lines(r io.Reader, limits *Limits) iter.Seq2[Line, error] {
	l := limits.resolve(1 << 30)
	return func(yield func(Line, error) bool) {
		src := newSource(r, l.Size)
		in := bufio.NewReaderSize(src, slack)
		var long []byte // of a line that the buffer does not hold
		line := Line{depth: l.Depth}
		for {
			line.Number++
			data, err := readLine(in, &long, l.Value)
			if err == io.EOF && len(data) == 0 {
				return
			}
			read := int64(len(data))
			line.Data = trimEnd(data)
			at := place{line: line.Number, offset: line.Offset}
			switch {
			case errors.Is(src.err, errSize) && err != nil:
				err = limitError(at, "json-size", "the input is longer than %d bytes", l.Size)
			case errors.Is(err, errValue) || len(line.Data) > l.Value:
				err = limitError(at, "json-value", "the line is longer than %d bytes", l.Value)
			case err != nil && err != io.EOF:
				err = fmt.Errorf("read JSON line %d: %w", line.Number, err)
			case line.Number > int64(l.Count):
				err = limitError(at, "json-lines", "there are more than %d lines", l.Count)
			case len(bytes.TrimSpace(line.Data)) == 0:
				err = formatError(at, "json-blank", "the line is blank", nil)
			case bytes.HasPrefix(line.Data, []byte(bom)):
				err = formatError(at, "", "", errBOM)
			default:
				if !yield(line, nil) {
					return
				}
				line.Offset += read
				continue
			}
			yield(Line{}, err)
			return
		}
	}
}

// readLine reads one line with its end. It gives up, with errValue, on a line
// that is clearly longer than limit.
func readLine(in *bufio.Reader, long *[]byte, limit int) ([]byte, error) {
	data, err := in.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return data, err
	}
	*long = (*long)[:0]
	for err == bufio.ErrBufferFull {
		if *long = append(*long, data...); len(*long) > limit+2 {
			return *long, errValue
		}
		data, err = in.ReadSlice('\n')
	}
	*long = append(*long, data...)
	return *long, err
}

func trimEnd(line []byte) []byte {
	if rest, ok := bytes.CutSuffix(line, []byte("\n")); ok {
		return bytes.TrimSuffix(rest, []byte("\r"))
	}
	return line
}
