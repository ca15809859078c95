package webauth

import (
	"net/http"
	"time"
)

// What a signature of content is called. Its tag tells it from those that
// others may make of the same response.
const (
	stampTag   = "millrace"
	stampLabel = "content"
)

// stamped names what a signature of content covers at least: the status, the
// bytes by their digest, and what they are. Path and query of the request are
// covered too, so that the document of one page is not taken for that of another.
var stamped = []string{"@status", "content-digest", "content-type"}

// Stamp signs the responses of a site. It is safe for concurrent use.
type Stamp struct {
	key    *Key
	prefix string
	now    func() time.Time
}

// NewStamp returns a stamp. prefix is the path that requests have before the
// targets that are passed to [Stamp.Sign], without a "/" at its end.
func NewStamp(key *Key, prefix string) *Stamp { return &Stamp{key: key, prefix: prefix, now: time.Now} }

// Sign returns the fields Signature-Input and Signature of a response with a
// header to a GET of a target, which is path and query as they are on the wire.
// Until again they may be given to others who ask for the same.
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
