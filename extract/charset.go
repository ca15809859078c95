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
	"text/plain": true, "application/octet-stream": true, // what servers say when they do not know
}

// decode gives the document as UTF-8. It refuses what is no text at all.
func decode(data []byte, contentType string) ([]byte, error) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		mediaType, _, _ = strings.Cut(contentType, ";")
		mediaType = strings.ToLower(strings.TrimSpace(mediaType))
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
	if bytes.IndexByte(head, 0) >= 0 {
		// UTF-16 without a mark has a zero in every other byte of markup.
		zeros := bytes.Count(head, []byte{0})
		if zeros*5 < len(head)*2 || len(head) < 2 {
			return nil, fmt.Errorf("%w: the document is binary", millrace.ErrInvalid)
		}
		order := unicode.LittleEndian
		if head[0] == 0 {
			order = unicode.BigEndian
		}
		return transcode(unicode.UTF16(order, unicode.IgnoreBOM), data)
	}
	if bytes.HasPrefix(data, []byte("%PDF-")) || bytes.HasPrefix(data, []byte("\x89PNG")) || bytes.HasPrefix(data, []byte("GIF8")) ||
		bytes.HasPrefix(data, []byte("\xFF\xD8\xFF")) || bytes.HasPrefix(data, []byte("PK\x03\x04")) || bytes.HasPrefix(data, []byte("\x1F\x8B")) {
		return nil, fmt.Errorf("%w: the document is binary", millrace.ErrInvalid)
	}
	if utf8.Valid(data) && (!isASCII(data) || bytes.IndexByte(data, 0x1B) < 0) {
		// No other character set gives valid sequences of several bytes by
		// chance; plain ASCII is the same in all but ISO-2022.
		return data, nil
	}
	e, name, certain := charset.DetermineEncoding(head, contentType)
	if !certain && name == "windows-1252" { // which is also what it says when it knows nothing
		switch name = lateCharset(data); {
		case name != "":
			e, _ = charset.Lookup(name)
		case !broken(data):
			name = "utf-8"
		default:
			e = guessCharset(data)
		}
	}
	if name == "utf-8" {
		if broken(data) {
			e = guessCharset(data) // declared, but hardly so
		} else {
			return bytes.ToValidUTF8(data, []byte("\uFFFD")), nil
		}
	}
	return transcode(e, data)
}

func isASCII(data []byte) bool {
	for _, c := range data {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// broken reports whether most of the bytes above ASCII are no UTF-8.
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
