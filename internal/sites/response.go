package sites

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/canon"
)

// response writes a site-wide document with a digest (RFC 9530) and a signature.
type response struct {
	http.ResponseWriter
	d    *Documents
	r    *http.Request // the request as received
	q    *access.Request
	body []byte
}

// WriteHeader adds the digest, and if the response is complete, also the signature.
func (w *response) WriteHeader(status int) {
	if w.body == nil {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	h, digest := w.Header(), canon.Digest(w.body)
	switch {
	case status == http.StatusOK && w.r.Method == http.MethodGet:
		h.Set("Content-Digest", digest)
		if err := w.d.signatures.add(w, digest); err != nil {
			w.d.o.Logger.Error("could not sign document", "path", access.Redact(w.r.URL.Path), "err", err)
		}
	case status == http.StatusOK, status == http.StatusPartialContent:
		h.Set("Repr-Digest", digest)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the underlying writer, for [http.ResponseController].
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// signatureCache caches the last signature of each site-wide document.
type signatureCache struct {
	mu   sync.Mutex
	last map[string]signedBody // signatures by path
}

type signedBody struct {
	digest, input, signature string
	again                    time.Time
}

// add signs a response if a Signer is set.
func (s *signatureCache) add(w *response, digest string) error {
	target, ok := strings.CutPrefix(w.r.URL.EscapedPath(), w.d.endpoints)
	if w.d.o.Signer == nil || !ok || !strings.HasPrefix(target, "/") {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.last[target]
	// Cache only plain paths, because a path has very many percent-encoded forms.
	if plain := w.r.URL.RawQuery == "" && w.r.URL.RawPath == ""; !known || !plain || last.digest != digest || !time.Now().Before(last.again) {
		full := target
		if w.r.URL.RawQuery != "" {
			full += "?" + w.r.URL.RawQuery
		}
		var err error
		last.digest = digest
		if last.input, last.signature, last.again, err = w.d.o.Signer.Sign(full, http.StatusOK, w.Header()); err != nil {
			return err
		}
		if plain { // there are only a few plain paths
			if s.last == nil {
				s.last = make(map[string]signedBody)
			}
			s.last[target] = last
		}
	}
	w.Header().Set("Signature-Input", last.input)
	w.Header().Set("Signature", last.signature)
	return nil
}
