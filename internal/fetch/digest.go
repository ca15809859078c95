package fetch

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"hash"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// digest is one member of Content-Digest and the hash of the bytes read.
type digest struct {
	name string
	want []byte
	hash hash.Hash // hash of the coded bytes
	// content is the hash of the decoded bytes, and equals hash if there is no coding. This hash
	// may also match, because a proxy that compresses a body often leaves Content-Digest unchanged.
	content hash.Hash
}

func (d digest) ok() bool {
	return bytes.Equal(d.hash.Sum(nil), d.want) || bytes.Equal(d.content.Sum(nil), d.want)
}

// digests parses Content-Digest (RFC 9530, section 2), a dictionary of byte sequences. If the field
// is absent, digests parses the Repr-Digest of a 200 response, which covers the same bytes. It
// ignores algorithms other than sha-256 and sha-512. It treats a field that does not parse as
// absent (RFC 9651, section 4.2).
func digests(status int, h http.Header) []digest {
	fields := h.Values("Content-Digest")
	if len(fields) == 0 && status == http.StatusOK {
		fields = h.Values("Repr-Digest")
	}
	found := make(map[string]digest)
	for member := range strings.SplitSeq(strings.Join(fields, ","), ",") {
		name, value, _ := strings.Cut(strings.Trim(member, " \t"), "=")
		d := digest{name: name}
		switch name {
		case "sha-256":
			d.hash, d.content = sha256.New(), sha256.New()
		case "sha-512":
			d.hash, d.content = sha512.New(), sha512.New()
		default:
			continue
		}
		value, _, _ = strings.Cut(value, ";") // no parameters are defined
		value = strings.TrimRight(value, " \t")
		if len(value) < 2 || value[0] != ':' || value[len(value)-1] != ':' {
			return nil
		}
		var err error
		// Padding is optional when parsing (RFC 9651, section 4.2.7).
		d.want, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(value[1:len(value)-1], "="))
		if err != nil || len(d.want) != d.hash.Size() {
			return nil
		}
		found[name] = d // if a name is repeated, the last one counts
	}
	return slices.Collect(maps.Values(found))
}
