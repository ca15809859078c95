package tct

import (
	"strings"

	"github.com/millrace/millrace/internal/canon"
)

// encode00 gives the document as it is served, and its fingerprint.
func encode00(d *document) (body []byte, hash string) {
	hash = fingerprintOf(d.Content)
	dst := make([]byte, 0, 512+len(d.Title)+len(d.Content)+len(d.Content)/16)
	dst = canon.AppendMember(append(dst, '{'), "profile", profileName)
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
			dst = canon.AppendMember(append(dst, ','), m.name, m.value)
		}
	}
	switch n := len(d.StructuredData); {
	case n == 1:
		dst = append(append(dst, `,"structured_data":`...), d.StructuredData[0]...)
	case n > 1:
		dst = appendObjects(append(dst, `,"structured_data":`...), d.StructuredData)
	}
	return append(dst, '}'), hash
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

// appendItem00 appends the item as the lists of this draft have it.
func appendItem00(dst []byte, it *listItem) []byte {
	dst = append(canon.AppendMember(append(dst, '{'), "cUrl", it.CURL), ',')
	dst = append(canon.AppendMember(dst, "mUrl", it.MURL), ',')
	if it.Modified != "" {
		dst = append(canon.AppendMember(dst, "modified", string(it.Modified)), ',')
	}
	return append(canon.AppendMember(dst, "contentHash", it.ContentHash), '}')
}
