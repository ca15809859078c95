package tct

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/millrace/millrace/internal/canon"
)

// encode01 gives the document in RFC 8785 form, as it is served, and its hash
// (1.6.2), which is the ETag without its quotes. The members stand in the
// order of RFC 8785, so that nothing is sorted; the hash is of all bytes but
// those of its own member, for which space is left.
func encode01(d *document) (body []byte, hash string) {
	dst := make([]byte, 0, 512+len(d.Title)+len(d.Content)+len(d.Content)/16)
	dst = append(dst, '{')
	if d.Author != "" {
		dst = append(canon.AppendMember(dst, "author", d.Author), ',')
	}
	dst = append(canon.AppendMember(dst, "canonical_url", d.CanonicalURL), ',')
	dst = canon.AppendMember(dst, "content", d.Content)
	if d.Description != "" {
		dst = canon.AppendMember(append(dst, ','), "description", d.Description)
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
		{"profile", profileName},
		{"published", d.Published},
	} {
		if m.value != "" {
			dst = canon.AppendMember(append(dst, ','), m.name, m.value)
		}
	}
	if len(d.StructuredData) > 0 {
		dst = appendObjects(append(dst, `,"structured_data":`...), d.StructuredData)
	}
	dst = append(canon.AppendMember(append(dst, ','), "title", d.Title), '}')

	h := sha256.New()
	h.Write(dst[:cut])
	h.Write(dst[rest:])
	var sum [sha256.Size]byte
	hex.Encode(dst[digits:], h.Sum(sum[:0]))
	return dst, string(dst[digits-len(hashPrefix) : rest-1])
}

// appendItem01 appends the item as the lists of this draft have it.
func appendItem01(dst []byte, it *listItem) []byte {
	dst = append(canon.AppendMember(append(dst, '{'), "cUrl", it.CURL), ',')
	dst = append(canon.AppendMember(dst, "mUrl", it.MURL), ',')
	return append(canon.AppendMember(dst, "etag", it.ETag), '}')
}
