package tct

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
)

const hashDigits = 2 * sha256.Size

// tagOf returns the ETag of a document, without quotes, for its hash member.
func tagOf(hash string) string { return hashPrefix + strings.TrimPrefix(hash, hashPrefix) }

// isLowerHash reports whether s is "sha256-" and 64 lower-case hexadecimal digits.
func isLowerHash(s string) bool {
	digits, ok := strings.CutPrefix(s, hashPrefix)
	return ok && len(digits) == hashDigits && strings.Trim(digits, "0123456789abcdef") == ""
}

// fingerprintOf returns the draft-00 hash of a document's content: 64 lower-case hexadecimal digits
// (4.1).
func fingerprintOf(content string) string {
	return canon.SHA256Hex([]byte(canon.NormalizeLower(content)))
}

// isFingerprint reports whether hash, with or without its prefix, is the draft-00 hash of a
// document's content.
func isFingerprint(content, hash string) bool {
	return strings.EqualFold(strings.TrimPrefix(hash, hashPrefix), fingerprintOf(content))
}

// isHashOf reports whether hash is the draft-01 hash of a document (1.6.2). It may be the hash of
// the served bytes without the member, in any form, or of their RFC 8785 form.
func isHashOf(body []byte, hash string) bool {
	if !isLowerHash(hash) {
		return false
	}
	want := hash[len(hashPrefix):]
	needle := []byte(`"hash":"` + hash + `"`)
	for from := 0; ; {
		i := bytes.Index(body[from:], needle)
		if i < 0 {
			break
		}
		start, end := from+i, from+i+len(needle)
		from = end
		switch {
		case body[start-1] == ',':
			start--
		case end < len(body) && body[end] == ',':
			end++
		}
		h := sha256.New()
		h.Write(body[:start])
		h.Write(body[end:])
		if hex.EncodeToString(h.Sum(nil)) == want {
			return true
		}
	}
	var members map[string]jsonio.Raw
	if jsonio.Unmarshal(body, &jsonLimits, &members) != nil {
		return false
	}
	delete(members, "hash")
	rest, err := json.Marshal(members)
	if err != nil {
		return false
	}
	c, err := jsonio.Canonical(rest, &jsonLimits)
	return err == nil && canon.SHA256Hex(c) == want
}

// isConfirmed reports whether a document matches its hash and its ETag. holds reports whether the
// hash matches. An ETag that contains no SHA-256 always matches.
func isConfirmed(holds bool, hash, etag string) bool {
	return holds && (hash == "" || !strings.Contains(etag, hashPrefix) || millrace.SameVersion(etag, hash))
}
