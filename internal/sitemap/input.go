package sitemap

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"

	"github.com/millrace/millrace"
)

// sniffSize is the number of bytes from which Parse detects the format.
const sniffSize = 1024

var (
	errSize  = millrace.Coded("list-size", errors.New("size exceeds the limit"))
	errRatio = millrace.Coded("gzip-ratio", fmt.Errorf("gzip ratio exceeds %d", maxRatio))
	errToken = millrace.Coded("xml-size", errors.New("tag or text is too long"))
)

// counter counts the bytes that it reads, and records an error.
type counter struct {
	r   io.Reader
	n   int64
	err error // first error other than io.EOF
}

func (c *counter) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

// input reads the bytes of a list without gzip, up to the limits.
type input struct {
	raw   counter
	r     io.Reader // decompressed bytes of raw
	gzip  bool
	max   int64
	n     int64
	token int64 // bytes left for the current token
	named bool  // a byte order mark names the character set, so the XML declaration is ignored
	err   error // error of r, or a limit; never io.EOF
}

func (in *input) Read(p []byte) (int, error) {
	if in.err == nil && in.token <= 0 {
		in.err = errToken
	}
	if in.err != nil {
		return 0, in.err
	}
	n, err := in.r.Read(p[:min(int64(len(p)), in.token, in.max+1-in.n)])
	in.n += int64(n)
	in.token -= int64(n)
	switch {
	case in.n > in.max:
		n, in.err = n-1, errSize
	case in.gzip && in.n > minRatio && in.n/maxRatio > in.raw.n:
		in.err = errRatio
	case err != nil && !errors.Is(err, io.EOF):
		in.err = err
	default:
		return n, err
	}
	return n, in.err
}

// open starts to decode gzip and UTF-16, and drops the byte order mark.
func (in *input) open() (*bufio.Reader, error) {
	raw := bufio.NewReader(&in.raw)
	in.r, in.token = raw, maxToken
	if head, _ := raw.Peek(2); string(head) == "\x1F\x8B" {
		z, err := gzip.NewReader(raw)
		if err != nil {
			in.err = err
			return nil, err
		}
		in.r, in.gzip = z, true
	}
	r := bufio.NewReaderSize(in, 64<<10)
	head, _ := r.Peek(4) // the next read returns the error again
	switch {
	case bytes.HasPrefix(head, []byte("\xEF\xBB\xBF")):
		in.named = true
		_, err := r.Discard(3)
		return r, err
	case bytes.HasPrefix(head, []byte("\xFE\xFF")), bytes.HasPrefix(head, []byte("\xFF\xFE")),
		string(head) == "\x00<\x00?", string(head) == "<\x00?\x00": // XML 1.0, appendix F.1
		order := unicode.BigEndian
		if head[0] == '<' {
			order = unicode.LittleEndian
		}
		in.named = true
		return bufio.NewReaderSize(unicode.UTF16(order, unicode.UseBOM).NewDecoder().Reader(r), 64<<10), nil
	}
	return r, nil
}

// charset is the CharsetReader of [encoding/xml.Decoder].
func (in *input) charset(label string, r io.Reader) (io.Reader, error) {
	if in.named || strings.HasPrefix(strings.ToLower(label), "utf-16") {
		return r, nil // a document with a readable declaration is not in UTF-16
	}
	if e, _ := charset.Lookup(label); e == nil {
		return nil, millrace.Coded("charset", fmt.Errorf("unknown character set %.40q", label))
	}
	return charset.NewReaderLabel(label, r)
}

// fail returns the error that ends the stream at a line: an error of the caller's reader, an
// exceeded limit, or an error in the document.
func (in *input) fail(line int, err error) error {
	switch {
	case in.raw.err != nil:
		return fmt.Errorf("sitemap at line %d: %w", line, in.raw.err)
	case errors.Is(in.err, errSize), errors.Is(in.err, errRatio), errors.Is(in.err, errToken):
		return limitError(line, millrace.ErrorCode(in.err), "%v", in.err)
	case errors.Is(in.err, io.ErrUnexpectedEOF):
		return formatError(line, "gzip-truncated", "gzip data is truncated", nil)
	case in.err != nil:
		return formatError(line, "gzip-broken", "gzip data is corrupt", in.err)
	}
	if e, ok := errors.AsType[*millrace.FormatError](err); ok {
		return e
	}
	return formatError(line, "", "", err)
}

var (
	errLong  = millrace.Coded("url-size", errors.New("URL is too long"))
	errURL   = millrace.Coded("bad-url", errors.New("not a URL"))
	errNoURL = millrace.Coded("no-url", errors.New("entry has no URL"))
)

// isURL reports whether a line of text is an absolute http or https URL.
func isURL(s []byte) bool {
	i := bytes.Index(s, []byte("://"))
	if i < 0 || !strings.EqualFold(string(s[:i]), "http") && !strings.EqualFold(string(s[:i]), "https") || len(s) == i+3 {
		return false
	}
	return utf8.Valid(s) && !bytes.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7F })
}
