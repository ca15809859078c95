package gateway

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/canon"
)

// sealed is the answer with a document that was composed for its request: it
// says what its bytes are (RFC 9530), and is signed like the others.
type sealed struct {
	*response
	body []byte
}

// WriteHeader adds the digest, and to a whole answer the signature.
func (s sealed) WriteHeader(status int) {
	h, digest := s.Header(), canon.Digest(s.body)
	switch {
	case status == http.StatusOK && s.r.Method == http.MethodGet:
		h.Set("Content-Digest", digest)
		if err := s.g.seals.add(s.response, digest); err != nil {
			s.g.log.Error("a document is not signed", "path", access.Redact(s.r.URL.Path), "err", err)
		}
	case status == http.StatusOK, status == http.StatusPartialContent:
		h.Set("Repr-Digest", digest)
	}
	s.response.WriteHeader(status)
}

// Unwrap serves [http.ResponseController].
func (s sealed) Unwrap() http.ResponseWriter { return s.response }

// seals remembers the last signature of each composed document.
type seals struct {
	mu   sync.Mutex
	last map[string]seal // by path
}

type seal struct {
	digest, input, signature string
	again                    time.Time
}

// add signs an answer, if somebody signs here.
func (s *seals) add(w *response, digest string) error {
	target, ok := strings.CutPrefix(w.r.URL.EscapedPath(), w.g.docs)
	if w.g.o.Signer == nil || !ok || !strings.HasPrefix(target, "/") {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.last[target]
	// A path can be percent-encoded in more ways than there is room for.
	if plain := w.r.URL.RawQuery == "" && w.r.URL.RawPath == ""; !known || !plain || last.digest != digest || !time.Now().Before(last.again) {
		full := target
		if w.r.URL.RawQuery != "" {
			full += "?" + w.r.URL.RawQuery
		}
		var err error
		last.digest = digest
		if last.input, last.signature, last.again, err = w.g.o.Signer.Sign(full, http.StatusOK, w.Header()); err != nil {
			return err
		}
		if plain { // there are a handful of those
			if s.last == nil {
				s.last = make(map[string]seal)
			}
			s.last[target] = last
		}
	}
	w.Header().Set("Signature-Input", last.input)
	w.Header().Set("Signature", last.signature)
	return nil
}
