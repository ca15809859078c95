package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/millrace/millrace"
)

// ErrNoFolder reports that a path is not that of a folder.
var ErrNoFolder = millrace.Coded("no-folder", errors.New("not a folder"))

// MaxURL is the maximum length in bytes of a page's identity: a canonical URL minus scheme,
// host and path of a base.
const MaxURL = 7500

// ErrLong reports that the path of a page is longer than [MaxURL].
var ErrLong = fmt.Errorf("%w: the path is longer than %d bytes", millrace.ErrTooLarge, MaxURL)

// Read reads a regular file of at most limit bytes, and returns the states of the file before and
// after. If the states differ, the file was changed during the read. Errors are those of
// [PathError], [millrace.ErrInvalid] if the file is empty or not a regular file, and
// [millrace.ErrTooLarge].
func Read(root *os.Root, file string, limit int64) (data []byte, before, after fs.FileInfo, err error) {
	h, err := Open(root, file)
	if err != nil {
		return nil, nil, nil, err
	}
	defer h.Close()
	if before, err = h.Stat(); err != nil {
		return nil, nil, nil, PathError(err)
	}
	if err := stateReason(before, limit); err != nil {
		return nil, nil, nil, err
	}
	data = make([]byte, 0, before.Size()+1)
	for {
		n, err := h.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, nil, PathError(err)
		}
		if len(data) == cap(data) {
			if int64(len(data)) > limit {
				return nil, nil, nil, fmt.Errorf("%w: the limit is %d bytes", millrace.ErrTooLarge, limit)
			}
			data = append(data, 0)[:len(data)]
		}
	}
	if after, err = h.Stat(); err != nil {
		return nil, nil, nil, PathError(err)
	}
	return data, before, after, nil
}

// Open opens a regular file under a root. It never blocks, even if the file is a named pipe.
func Open(root *os.Root, file string) (*os.File, error) {
	h, err := root.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, PathError(err)
	}
	info, err := h.Stat()
	if err == nil && !info.Mode().IsRegular() {
		h.Close()
		return nil, fmt.Errorf("%w: not a regular file", millrace.ErrInvalid)
	}
	if err != nil {
		h.Close()
		return nil, PathError(err)
	}
	return h, nil
}

// PathError converts an error of the file system to an error of package millrace, without the
// path: callers name the file by its path in the site.
func PathError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	switch {
	case errors.Is(err, ErrNoFolder):
		return fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", millrace.ErrNotFound, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", millrace.ErrForbidden, err)
	}
	return fmt.Errorf("%w: %w", millrace.ErrUnavailable, err)
}

// Escape returns a path segment in the form of canonical URLs. Every byte that is not a pchar
// of RFC 3986, section 3.3, is percent-encoded, including "%".
func Escape(segment string) string {
	const hexDigits = "0123456789ABCDEF"
	b := make([]byte, 0, len(segment)+8)
	for _, c := range []byte(segment) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~!$&'()*+,;=:@", c) >= 0:
			b = append(b, c)
		default:
			b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return string(b)
}

// Hidden reports whether a name is skipped without a report: it starts with a dot and
// is not .well-known.
func Hidden(name string) bool { return strings.HasPrefix(name, ".") && name != ".well-known" }
