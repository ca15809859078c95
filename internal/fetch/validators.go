package fetch

import (
	"net/http"
	"strings"
)

// Maximum lengths in bytes of stored validators.
const (
	maxETag     = 1024
	maxModified = 64
)

// Validators identify one state of a resource (RFC 9110, section 8.8), exactly as the server sent
// them. Store them with the body to which they belong. Otherwise a 304 could confirm the wrong
// body.
type Validators struct {
	ETag     string `json:"etag,omitempty"`     // with quotes and W/
	Modified string `json:"modified,omitempty"` // Last-Modified
}

// ValidatorsOf returns the validators of a response. It treats as absent:
//
//   - a validator over 1024 bytes (ETag) or 64 bytes (Last-Modified), or one with
//     control characters
//   - an unquoted "*" as ETag, which matches every state in If-None-Match
//     (RFC 9110, section 13.1.2)
//   - a Last-Modified in the second of the response, since the resource may change
//     again within that second (section 8.8.2.2)
func ValidatorsOf(resp *http.Response) Validators {
	v := Validators{ETag: resp.Header.Get("ETag"), Modified: resp.Header.Get("Last-Modified")}.sound()
	made, err := http.ParseTime(resp.Header.Get("Date"))
	if modified, bad := http.ParseTime(v.Modified); err == nil && bad == nil && modified.Equal(made) {
		v.Modified = ""
	}
	return v
}

// Set makes a request conditional with If-None-Match and If-Modified-Since. It sends both, because
// a server that supports the first must ignore the second (RFC 9110, section 13.1.3), and some
// servers support only the second. Set omits validators that [ValidatorsOf] would treat as absent.
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
