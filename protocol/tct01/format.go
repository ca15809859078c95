package tct01

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tct"
)

const (
	contentType  = "application/json; charset=utf-8" // 1.5.1, 1.7.2
	cacheControl = "max-age=0, must-revalidate"      // 1.7.2, 1.8.2
	profile      = "tct-1"                           // 1.5.2, 1.7.1
	hashPrefix   = "sha256-"                         // 1.5.2
)

// document is what an M-URL says (1.5.2). Its hash follows from the rest.
type document tct.Document

// encode gives the document in RFC 8785 form, as it is served, and its hash
// (1.6.2), which is the ETag without its quotes. The members stand in the
// order of RFC 8785, so that nothing is sorted; the hash is of all bytes but
// those of its own member, for which space is left.
func (d *document) encode() (body []byte, hash string) {
	dst := make([]byte, 0, 512+len(d.Title)+len(d.Content)+len(d.Content)/16)
	dst = append(dst, '{')
	if d.Author != "" {
		dst = append(member(dst, "author", d.Author), ',')
	}
	dst = append(member(dst, "canonical_url", d.CanonicalURL), ',')
	dst = member(dst, "content", d.Content)
	if d.Description != "" {
		dst = member(append(dst, ','), "description", d.Description)
	}
	cut := len(dst)
	dst = append(dst, `,"hash":"`+hashPrefix...)
	digits := len(dst)
	dst = append(dst, make([]byte, 2*sha256.Size)...)
	dst = append(dst, '"')
	rest := len(dst)
	for _, m := range []struct{ name, value string }{
		{"language", d.Language},
		{"modified", d.Modified},
		{"profile", profile},
		{"published", d.Published},
	} {
		if m.value != "" {
			dst = member(append(dst, ','), m.name, m.value)
		}
	}
	if len(d.StructuredData) > 0 {
		dst = append(dst, `,"structured_data":`...)
		sep := byte('[')
		for _, raw := range d.StructuredData {
			dst = append(append(dst, sep), raw...)
			sep = ','
		}
		dst = append(dst, ']')
	}
	dst = append(member(append(dst, ','), "title", d.Title), '}')

	h := sha256.New()
	h.Write(dst[:cut])
	h.Write(dst[rest:])
	var sum [sha256.Size]byte
	hex.Encode(dst[digits:], h.Sum(sum[:0]))
	return dst, string(dst[digits-len(hashPrefix) : rest-1])
}

func member(dst []byte, name, value string) []byte {
	dst = append(dst, '"')
	dst = append(dst, name...)
	dst = append(dst, '"', ':')
	return canon.AppendString(dst, value)
}

// decodeDocument reads an M-URL document (1.5.2) and gives its hash member as
// it is. Errors are [*millrace.FormatError] without the URL, or ErrTooLarge.
func decodeDocument(body []byte) (*document, string, error) {
	d, hash, err := tct.Decode(body)
	section := "1.5.1"
	if errors.Is(err, tct.ErrRequired) {
		section = "1.5.2"
	}
	return (*document)(d), hash, formatError(err, "", section)
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
