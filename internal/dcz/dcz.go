// Package dcz encodes and decodes the content coding dcz: Compression Dictionary Transport with
// Zstandard (RFC 9842). The dictionary of a body is an earlier version of the same document.
//
// A dictionary is the identity representation of an earlier response, and its [ID] is the SHA-256
// of those bytes. A client that has a dictionary sends its ID in Available-Dictionary, and dcz in
// Accept-Encoding. A coded body consists of 8 fixed bytes, the ID, and a Zstandard frame that uses
// the dictionary as raw content.
package dcz

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace"
)

// Name is the token of the content coding.
const Name = "dcz"

// Names of the header fields.
const (
	Available = "Available-Dictionary" // in a request: the ID of the client's dictionary
	Use       = "Use-As-Dictionary"    // in a response: the URLs for which the response is a dictionary
)

// Limits of a coding, in bytes.
const (
	MaxSum    = 64 << 20 // maximum total size of dictionary and target
	minWindow = 8 << 20  // every decoder supports this window
	header    = 8 + sha256.Size
)

// magic is the start of a coded body: the header of a skippable Zstandard frame of 32 bytes.
var magic = []byte{0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0}

// ID identifies a dictionary: the SHA-256 of its bytes.
type ID [sha256.Size]byte

// Sum returns the ID of a dictionary.
func Sum(dict []byte) ID { return sha256.Sum256(dict) }

// Field returns the ID as a value of Available-Dictionary: a byte sequence of RFC 9651.
func (id ID) Field() string { return ":" + base64.StdEncoding.EncodeToString(id[:]) + ":" }

// ParseField parses a value of Available-Dictionary.
func ParseField(value string) (id ID, ok bool) {
	value = strings.Trim(value, " ")
	if len(value) < 2 || value[0] != ':' || value[len(value)-1] != ':' {
		return id, false
	}
	// Padding is optional when parsing (RFC 9651, section 4.2.7).
	value = strings.TrimRight(value[1:len(value)-1], "=")
	var text [(sha256.Size*8 + 5) / 6]byte
	if len(value) != len(text) {
		return id, false
	}
	copy(text[:], value)
	n, err := base64.RawStdEncoding.Decode(id[:], text[:])
	return id, err == nil && n == len(id)
}

// Fits reports whether a target may be coded against a dictionary, given their sizes in bytes. A
// decoder must support a window of 8 MiB or 1.25 times the dictionary, whichever is larger (RFC
// 9842, section 5).
func Fits(dict, target int64) bool {
	return dict > 0 && dict+target <= MaxSum && target <= window(dict)
}

func window(dict int64) int64 { return max(minWindow, dict+dict/4) }

// small is the maximum sum of dictionary and target, in bytes, at which the encoder's default
// level finds all long matches. That level takes only a fraction of a millisecond to fill its
// tables.
const small = 512 << 10

// Encoder encodes bodies. The zero value is ready to use and safe for concurrent use.
type Encoder struct{ pool sync.Pool }

// Encode returns target encoded as dcz. It returns ErrInvalid if the sizes do not fit; see [Fits].
// For large bodies, Encode uses about ten times their total size in memory.
func (e *Encoder) Encode(dict []byte, id ID, target []byte) ([]byte, error) {
	if !Fits(int64(len(dict)), int64(len(target))) {
		return nil, fmt.Errorf("%s: %d bytes do not fit a dictionary of %d bytes: %w", Name, len(target), len(dict), millrace.ErrInvalid)
	}
	raw := zstd.WithEncoderDictRaw(0, dict)
	var z *zstd.Encoder
	var err error
	if len(dict)+len(target) <= small {
		if z, _ = e.pool.Get().(*zstd.Encoder); z != nil {
			err = z.ResetWithOptions(nil, raw)
		} else {
			z, err = newEncoder(zstd.SpeedDefault, small, raw)
		}
		defer func() { e.pool.Put(z) }()
	} else {
		// With a window that covers both, the encoder can refer to the whole dictionary.
		z, err = newEncoder(zstd.SpeedBestCompression, 1<<bits.Len(uint(max(len(dict), len(target))-1)), raw)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	out := make([]byte, 0, header+len(target)/8)
	out = append(append(out, magic...), id[:]...)
	return bytes.Clone(z.EncodeAll(target, out)), nil
}

func newEncoder(level zstd.EncoderLevel, window int, dict zstd.EOption) (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window), dict)
}

// Errors of [NewReader].
var (
	// ErrCoding reports that the body does not begin with the fixed bytes of the coding.
	ErrCoding = errors.New("the body does not begin like " + Name)
	// ErrDictionary reports that the body was coded against another dictionary.
	ErrDictionary = errors.New("the body needs another dictionary")
)

// NewReader returns a reader that decodes the body in r. The caller must close the result, which
// does not close r, and must limit the decoded bytes. A frame that requires a larger window than
// the dictionary allows fails with [zstd.ErrWindowSizeExceeded].
func NewReader(r io.Reader, dict []byte, id ID) (io.ReadCloser, error) {
	in := bufio.NewReader(r)
	// For a body without a frame, the decoder would return an empty result.
	b, err := in.Peek(header + 1)
	switch {
	case len(b) == 0 && err == io.EOF, !bytes.HasPrefix(b, magic[:min(len(b), len(magic))]): //nolint:errorlint // a wrapped io.EOF is a broken connection
		return nil, ErrCoding
	case err == io.EOF: //nolint:errorlint // see above
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	case ID(b[len(magic):header]) != id:
		return nil, ErrDictionary
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(uint64(window(int64(len(dict))))), //nolint:gosec // not negative
		zstd.WithDecoderDictRaw(0, dict))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}
