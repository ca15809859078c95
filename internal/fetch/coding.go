package fetch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// sniffSize is the number of leading bytes that show whether a body has the coding that it
// declares. It fits in the default buffer of a bufio.Reader.
const sniffSize = 512

// zstdWindow is the largest window that the zstd coding may use (RFC 9659).
const zstdWindow = 8 << 20

// An opener starts to decode r. It returns a nil reader if r is plain, and a codingError if r
// is neither plain nor in the coding. stop frees the decoder's resources.
type opener = func(r *bufio.Reader) (_ io.Reader, stop func(), err error)

var decoders = map[string]opener{
	"gzip": openGzip,
	"br":   openBrotli,
	"zstd": openZstd,
}

// codingError describes a body that does not have the coding that it declares.
type codingError string

func (e codingError) Error() string { return string(e) }

// openUnknown accepts plain bodies with an unknown value in Content-Encoding, because some servers
// put a charset there.
func openUnknown(coding string) opener {
	return func(r *bufio.Reader) (io.Reader, func(), error) {
		_, err := confirm(r, coding, func([]byte) bool { return false })
		if _, ok := errors.AsType[codingError](err); ok {
			err = codingError(fmt.Sprintf("unknown content coding %q", coding))
		}
		return nil, nil, err
	}
}

func openGzip(r *bufio.Reader) (io.Reader, func(), error) {
	magic := []byte{0x1f, 0x8b}
	if ok, err := confirm(r, "gzip", func(b []byte) bool { return bytes.HasPrefix(b, magic) }); !ok {
		return nil, nil, err
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, nil, err
	}
	return z, func() { _ = z.Close() }, nil
}

func openZstd(r *bufio.Reader) (io.Reader, func(), error) {
	frame, skippable := []byte{0x28, 0xb5, 0x2f, 0xfd}, []byte{0x2a, 0x4d, 0x18}
	ok, err := confirm(r, "zstd", func(b []byte) bool {
		return bytes.HasPrefix(b, frame) || len(b) > 0 && bytes.HasPrefix(frame, b) || len(b) >= 4 && b[0]>>4 == 5 && bytes.Equal(b[1:4], skippable)
	})
	if !ok {
		return nil, nil, err
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(zstdWindow))
	if err != nil {
		return nil, nil, err
	}
	return z, z.Close, nil
}

// openBrotli starts to decode brotli, which has no magic bytes. A body that looks like text is
// brotli only if its beginning can be decoded.
func openBrotli(r *bufio.Reader) (io.Reader, func(), error) {
	ok, err := confirm(r, "br", func(b []byte) bool {
		if len(b) == 0 || !plain(b) {
			return len(b) > 0
		}
		// A few bytes may decode to very many, so decode only the first 64 KiB.
		_, err := io.CopyN(io.Discard, brotli.NewReader(bytes.NewReader(b)), 64<<10)
		return err == nil || ended(err) || len(b) == sniffSize && errors.Is(err, io.ErrUnexpectedEOF)
	})
	if !ok {
		return nil, nil, err
	}
	return brotli.NewReader(r), func() {}, nil
}

// confirm reports whether r begins with the coding. If not, it returns an error unless r is
// empty or plain.
func confirm(r *bufio.Reader, coding string, is func([]byte) bool) (bool, error) {
	b, err := r.Peek(sniffSize)
	if err != nil && err != io.EOF {
		return false, err
	}
	if is(b) {
		return true, nil
	}
	if plain(b) {
		return false, nil
	}
	return false, codingError("Content-Encoding is " + coding + ", but the body is not")
}

// plain reports whether b is text in an encoding that extends ASCII: it has no control
// characters except white space.
func plain(b []byte) bool {
	return !bytes.ContainsFunc(b, func(c rune) bool {
		return c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' || c == 0x7f
	})
}
