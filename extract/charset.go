package extract

import (
	"bytes"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
)

// markup are the media types that are parsed as HTML.
var markup = map[string]bool{
	"": true, "text/html": true, "application/xhtml+xml": true, "application/xml": true, "text/xml": true,
	"text/plain": true, "application/octet-stream": true, // servers send these if they do not know the type
}

// decode returns the document as UTF-8. It rejects data that is not text, and media types that
// cannot be HTML.
func decode(data []byte, contentType string) ([]byte, error) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		mediaType, _, _ = strings.Cut(contentType, ";")
		mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	}
	why := Unsupported(mediaType, data)
	if why == nil && !markup[mediaType] {
		why = Unsupported(mediaType, nil)
	}
	if why != nil {
		return nil, fmt.Errorf("%w: %w, not HTML", millrace.ErrInvalid, why)
	}
	if !markup[mediaType] {
		return nil, fmt.Errorf("%w: %s is not HTML", millrace.ErrInvalid, mediaType)
	}
	if rest, ok := bytes.CutPrefix(data, []byte("\xEF\xBB\xBF")); ok {
		return rest, nil
	}
	if bytes.HasPrefix(data, []byte("\xFE\xFF")) || bytes.HasPrefix(data, []byte("\xFF\xFE")) {
		return transcode(unicode.UTF16(unicode.BigEndian, unicode.UseBOM), data)
	}
	head := data[:min(len(data), 1024)]
	// In HTML, the parser drops a stray zero byte.
	if bytes.IndexByte(head, 0) >= 0 && !bytes.HasPrefix(bytes.TrimSpace(head), []byte("<")) || bytes.HasPrefix(data, []byte("\x89PNG")) || bytes.HasPrefix(data, []byte("GIF8")) ||
		bytes.HasPrefix(data, []byte("\xFF\xD8\xFF")) || bytes.HasPrefix(data, []byte("PK\x03\x04")) || bytes.HasPrefix(data, []byte("\x1F\x8B")) || hasControls(data) {
		return nil, fmt.Errorf("%w: the document is binary, not HTML", millrace.Coded("binary", millrace.ErrInvalid))
	}
	if utf8.Valid(data) && (!isASCII(data) || bytes.IndexByte(data, 0x1B) < 0) {
		// Text in another character set is very unlikely to consist of valid multi-byte sequences
		// of UTF-8. Plain ASCII is the same in all character sets except ISO-2022.
		return data, nil
	}
	e, name, certain := charset.DetermineEncoding(head, contentType)
	if !certain && name == "windows-1252" { // windows-1252 is also the default result
		if name = "utf-8"; broken(data) {
			e, name = guessCharset(data), ""
		}
	}
	if name == "utf-8" {
		if broken(data) {
			e = guessCharset(data) // the declared character set is not plausible
		} else {
			return bytes.ToValidUTF8(data, []byte("\uFFFD")), nil
		}
	}
	return transcode(e, data)
}

// hasControls reports whether a document has too many control characters for a text: more than one
// byte in 50 at its beginning.
func hasControls(data []byte) bool {
	head, n := data[:min(len(data), 1<<16)], 0
	for _, c := range head {
		// Tab to carriage return are white space; 0x1B is used by ISO-2022.
		if c < '\t' || c > '\r' && c < ' ' && c != 0x1B {
			n++
		}
	}
	return n > 8 && n*50 > len(head)
}

func isASCII(data []byte) bool {
	for _, c := range data {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// broken reports whether a document has more invalid bytes than valid non-ASCII characters of UTF-8.
func broken(data []byte) bool {
	good, bad := 0, 0
	for len(data) > 0 {
		if data[0] < utf8.RuneSelf {
			data = data[1:]
			continue
		}
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			bad++
		} else {
			good++
		}
		data = data[n:]
	}
	return bad > good
}

func transcode(e encoding.Encoding, data []byte) ([]byte, error) {
	out, err := e.NewDecoder().Bytes(data)
	if err != nil {
		return nil, fmt.Errorf("%w: character set: %w", millrace.ErrInvalid, err)
	}
	return bytes.ToValidUTF8(out, []byte("\uFFFD")), nil
}
