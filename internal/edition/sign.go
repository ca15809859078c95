package edition

import (
	"net/http"
	"net/url"
	"time"
)

// Signer signs the responses of documents (RFC 9421).
type Signer interface {
	// Sign gives the fields Signature-Input and Signature of a response with a
	// header to a GET of a target: path, percent-encoded and relative to the
	// documents' base, and query. Until again others who ask for the same bytes
	// may be given the same.
	Sign(target string, status int, h http.Header) (input, signature string, again time.Time, err error)
}

// signed is a signature of a representation as the answer to one target.
type signed struct {
	of               key
	input, signature [1]string
	again            int64 // Unix seconds
}

// sign adds a signature to the header of a 200 with the document's bytes, as the
// answer to a target. It is made with the first response, and given to all who
// ask for the same, until it is to be made anew: what it costs does not depend
// on how many ask.
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

// target gives the request target that a key is of.
func (k key) target() string {
	u := url.URL{Path: k.path, RawPath: k.raw, RawQuery: k.query}
	return u.RequestURI()
}
