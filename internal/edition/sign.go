package edition

import (
	"net/http"
	"net/url"
	"time"
)

// Signer signs the responses of documents (RFC 9421).
type Signer interface {
	// Sign returns the fields Signature-Input and Signature for a response to a GET. target is the
	// percent-encoded path below the endpoint base, with the query. again is the time until which
	// the fields may be reused for the same bytes.
	Sign(target string, status int, h http.Header) (input, signature string, again time.Time, err error)
}

// signed is a signature of a representation for one target.
type signed struct {
	of               key
	input, signature [1]string
	again            int64 // Unix seconds
}

// sign adds a signature for a target to the header of a 200. Responses with the same bytes and
// target share one signature until it must be renewed. The cost of signing therefore does not
// depend on the number of requests.
func (e *entry) sign(h http.Header, r *rep, k key) error {
	if e.signer == nil {
		return nil
	}
	s := r.signed.Load()
	if s == nil || s.of != k || time.Now().Unix() >= s.again {
		input, signature, again, err := e.signer.Sign(k.target(), http.StatusOK, h)
		if err != nil {
			return err
		}
		s = &signed{k.clone(), [1]string{input}, [1]string{signature}, again.Unix()}
		r.signed.Store(s)
	}
	h["Signature-Input"], h["Signature"] = s.input[:], s.signature[:]
	return nil
}

// target returns the request target of a key.
func (k key) target() string {
	u := url.URL{Path: k.path, RawPath: k.raw, RawQuery: k.query}
	return u.RequestURI()
}
