package tct00

import (
	"crypto/sha256"
	"errors"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tct"
)

const (
	contentType  = "application/json; charset=utf-8" // 8.1
	cacheControl = "max-age=0, must-revalidate"      // 5.3
	vary         = "Accept, Accept-Encoding"         // 5.4
	profile      = "tct-1"                           // 6.1, 8.2
	hashPrefix   = "sha256-"                         // 4.2
	hashDigits   = 2 * sha256.Size
)

// document is what an M-URL says (8.2). Its hash follows from content.
type document tct.Document

// encode gives the document as it is served, and its fingerprint.
func (d *document) encode() (body []byte, hash string) {
	hash = tct.Fingerprint(d.Content)
	dst := make([]byte, 0, 512+len(d.Title)+len(d.Content)+len(d.Content)/16)
	dst = member(append(dst, '{'), "profile", profile)
	for _, m := range []struct {
		name, value string
		required    bool
	}{
		{"canonical_url", d.CanonicalURL, true},
		{"title", d.Title, true},
		{"language", d.Language, false},
		{"published", d.Published, false},
		{"modified", d.Modified, false},
		{"description", d.Description, false},
		{"author", d.Author, false},
		{"content", d.Content, true},
		{"hash", hash, true},
	} {
		if m.required || m.value != "" {
			dst = member(append(dst, ','), m.name, m.value)
		}
	}
	switch n := len(d.StructuredData); {
	case n == 1:
		dst = append(append(dst, `,"structured_data":`...), d.StructuredData[0]...)
	case n > 1:
		dst = append(dst, `,"structured_data":`...)
		sep := byte('[')
		for _, raw := range d.StructuredData {
			dst = append(append(dst, sep), raw...)
			sep = ','
		}
		dst = append(dst, ']')
	}
	return append(dst, '}'), hash
}

func member(dst []byte, name, value string) []byte {
	dst = append(dst, '"')
	dst = append(dst, name...)
	dst = append(dst, '"', ':')
	return canon.AppendString(dst, value)
}

// isDigits reports whether s is 64 hexadecimal digits (4.2).
func isDigits(s string) bool {
	if len(s) != hashDigits {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// isHash reports whether s is "sha256-" and 64 hexadecimal digits.
func isHash(s string) bool {
	digits, ok := strings.CutPrefix(s, hashPrefix)
	return ok && isDigits(digits)
}

// decodeDocument reads an M-URL document (8.2) and gives its hash member as it
// is. Errors are [*millrace.FormatError] without the URL, or ErrTooLarge.
func decodeDocument(body []byte) (*document, string, error) {
	d, hash, err := tct.Decode(body)
	return (*document)(d), hash, formatError(err, "", "8.2")
}

// formatError fills in what a reader of JSON does not know of a document.
func formatError(err error, url, section string) error {
	if f, ok := errors.AsType[*millrace.FormatError](err); ok {
		f.Protocol, f.URL, f.Section = Name, url, section
	}
	return err
}

// short cuts a stranger's string to what fits in a message.
func short(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}
