package webauth

import (
	"net/http"
	"time"
)

// Label and tag of a signature of content. The tag distinguishes it from other signatures of
// the same response.
const (
	stampTag   = "millrace"
	stampLabel = "content"
)

// stamped lists the components that a signature of content must cover: the status, the digest of
// the bytes, and their media type. The signature also covers the path and query of the request, so
// that the document of one page cannot replace that of another.
var stamped = []string{"@status", "content-digest", "content-type"}

// Stamp signs the responses of a site. It is safe for concurrent use.
type Stamp struct {
	key    *Key
	prefix string
	now    func() time.Time
}

// NewStamp returns a stamp. prefix is the part of the request path before the targets that are
// passed to [Stamp.Sign], without a "/" at its end.
func NewStamp(key *Key, prefix string) *Stamp { return &Stamp{key: key, prefix: prefix, now: time.Now} }

// Sign returns the fields Signature-Input and Signature for a response with header h to a GET of
// target, the path and query as sent. The caller may reuse the fields for the same response until
// the time again.
func (s *Stamp) Sign(target string, status int, h http.Header) (input, value string, again time.Time, err error) {
	now := s.now()
	m := &message{status: status, field: h, req: &message{method: http.MethodGet, target: s.prefix + target}}
	covered := components(stamped...)
	if len(h["Content-Encoding"]) > 0 {
		covered = components(append(stamped[:len(stamped):len(stamped)], "content-encoding")...)
	}
	covered.Items = append(covered.Items, with("@path", "req", true), with("@query", "req", true))
	input, value, err = s.key.signMessage(m, stampLabel, covered, now, now.Add(provenFor), stampTag, "")
	return input, value, now.Add(provenNew), err
}
