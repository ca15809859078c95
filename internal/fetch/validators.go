package fetch

import (
	"net/http"
	"strings"
)

// Lengths in bytes beyond which a validator is not worth keeping.
const (
	maxETag     = 1024
	maxModified = 64
)

// Validators name one state of a resource (RFC 9110, section 8.8), verbatim
// as its server sent them. They belong to a body that is held: a client that
// sends others has its old body confirmed.
type Validators struct {
	ETag     string `json:"etag,omitempty"`     // quotes and weakness included
	Modified string `json:"modified,omitempty"` // Last-Modified
}

// ValidatorsOf returns the validators of a response. One that is over 1024
// bytes (ETag) or 64 bytes (Last-Modified), or has control characters, counts
// as absent. So does an ETag that is a bare "*": in If-None-Match it stands for
// every state (RFC 9110, section 13.1.2), and a Last-Modified of the second in
// which the response was made: within it there may be another state (section
// 8.8.2.2).
func ValidatorsOf(resp *http.Response) Validators {
	v := Validators{ETag: resp.Header.Get("ETag"), Modified: resp.Header.Get("Last-Modified")}.sound()
	made, err := http.ParseTime(resp.Header.Get("Date"))
	if modified, bad := http.ParseTime(v.Modified); err == nil && bad == nil && modified.Equal(made) {
		v.Modified = ""
	}
	return v
}

// Set makes a request conditional: If-None-Match and If-Modified-Since. Both
// are sent, because a server that knows the first must ignore the second
// (RFC 9110, section 13.1.3), and some know the second only. What
// [ValidatorsOf] would not give is not sent.
func (v Validators) Set(h http.Header) {
	v = v.sound()
	if v.ETag != "" {
		h.Set("If-None-Match", v.ETag)
	}
	if v.Modified != "" {
		h.Set("If-Modified-Since", v.Modified)
	}
}

func (v Validators) sound() Validators {
	if !fits(v.ETag, maxETag) || strings.TrimSpace(v.ETag) == "*" {
		v.ETag = ""
	}
	if !fits(v.Modified, maxModified) {
		v.Modified = ""
	}
	return v
}

func fits(s string, limit int) bool {
	return len(s) <= limit && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f })
}
