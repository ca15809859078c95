package terminal

import (
	"io"
	"os"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/canon"
)

// Writer writes untrusted text to a terminal, a pipe or a file. It writes the characters of
// [canon.IsInvisible] as \uXXXX, an escape of JSON, so values in JSON stay the same. Only bold text and
// progress, which this package writes, contain control sequences.
type Writer struct {
	to       io.Writer
	lookup   func(string) (string, bool)
	mu       sync.Mutex
	rest     []byte // start of a character or line end, which the next write completes
	Terminal bool   // to is a terminal that shows progress
}

// New returns a Writer to w. lookup returns the environment variables TERM and NO_COLOR.
func New(w io.Writer, lookup func(string) (string, bool)) *Writer {
	return &Writer{to: w, lookup: lookup, Terminal: Is(w, lookup)}
}

// Own returns the destination of w, for trusted text.
func (w *Writer) Own() io.Writer { return w.to }

// Verbatim returns a writer for a document that a program reads. It changes the bytes only on a
// terminal.
func (w *Writer) Verbatim() io.Writer {
	if w.Terminal {
		return w
	}
	return w.to
}

// Write writes text.
func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out, rest := escape(nil, append(w.rest, b...))
	w.rest = append([]byte(nil), rest...)
	if _, err := w.to.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// escape appends text with its invisible characters escaped. It returns the incomplete end.
func escape(out, b []byte) (escaped, rest []byte) {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == '\r' && len(b) == 1, r == utf8.RuneError && !utf8.FullRune(b):
			return out, b
		case r == '\r' && b[1] == '\n':
			out = append(out, '\r')
		case canon.IsInvisible(r):
			const digits = "0123456789abcdef"
			for _, u := range utf16.AppendRune(nil, r) {
				out = append(out, '\\', 'u', digits[u>>12], digits[u>>8&15], digits[u>>4&15], digits[u&15])
			}
		default:
			out = utf8.AppendRune(out, r)
		}
		b = b[n:]
	}
	return out, nil
}

// Text is text with bold parts.
type Text struct {
	b    []byte
	bold bool
}

// Write appends text.
func (t *Text) Write(b []byte) (int, error) {
	t.b, _ = escape(t.b, b)
	return len(b), nil
}

// Bold appends text, bold on a terminal with colors.
func (t *Text) Bold(s string) {
	if t.bold && s != "" {
		t.b = append(t.b, "\x1b[1m"...)
		defer func() { t.b = append(t.b, "\x1b[0m"...) }()
	}
	_, _ = io.WriteString(t, s)
}

// Text writes the text that f creates. Bold parts are plain if w is not a terminal, or if the user
// has disabled colors (no-color.org).
func (w *Writer) Text(f func(t *Text)) error {
	off, _ := w.lookup("NO_COLOR")
	t := Text{bold: w.Terminal && off == ""}
	f(&t)
	_, err := w.to.Write(t.b)
	return err
}

// Is reports whether w is a terminal that shows progress.
func Is(w any, lookup func(string) (string, bool)) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	term, _ := lookup("TERM")
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && term != "" && term != "dumb"
}
