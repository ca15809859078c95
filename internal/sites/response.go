package sites

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/canon"
)

// response is the response with a document that was composed for its request: it has
// a digest of its bytes (RFC 9530), and is signed like other documents.
type response struct {
	http.ResponseWriter
	d    *Documents
	r    *http.Request // as it has come
	q    *access.Request
	body []byte
}

// WriteHeader adds the digest, and to a whole answer the signature.
func (w *response) WriteHeader(status int) {
	if w.body == nil {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	h, digest := w.Header(), canon.Digest(w.body)
	switch {
	case status == http.StatusOK && w.r.Method == http.MethodGet:
		h.Set("Content-Digest", digest)
		if err := w.d.seals.add(w, digest); err != nil {
			w.d.o.Log.Error("a document is not signed", "path", access.Redact(w.r.URL.Path), "err", err)
		}
	case status == http.StatusOK, status == http.StatusPartialContent:
		h.Set("Repr-Digest", digest)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap serves [http.ResponseController].
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

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
	target, ok := strings.CutPrefix(w.r.URL.EscapedPath(), w.d.docs)
	if w.d.o.Signer == nil || !ok || !strings.HasPrefix(target, "/") {
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
		if last.input, last.signature, last.again, err = w.d.o.Signer.Sign(full, http.StatusOK, w.Header()); err != nil {
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
