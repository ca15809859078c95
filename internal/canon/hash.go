package canon

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// SHA256Hex returns the SHA-256 of b as 64 lower-case hexadecimal digits.
func SHA256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

// Digest returns the value of a Content-Digest or Repr-Digest field for b (RFC
// 9530, section 2): "sha-256=:BASE64:".
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	const head = "sha-256=:"
	text := make([]byte, 0, len(head)+45)
	text = append(text, head...)
	text = base64.StdEncoding.AppendEncode(text, sum[:])
	return string(append(text, ':'))
}
