package webauth

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

const (
	provenFor  = 7 * 24 * time.Hour // validity of a signature of a directory or of content
	provenNew  = 24 * time.Hour     // age at which such a signature is renewed
	publishFor = time.Hour          // time for which clients may cache a directory
)

// Directory publishes the keys of a host at [DirectoryPath]. It is safe for
// concurrent use.
type Directory struct {
	authority string // scheme and authority of the host
	signers   []*Key
	body      []byte
	header    http.Header
	now       func() time.Time

	mu     sync.Mutex
	proof  http.Header // Signature-Input and Signature; empty without signers
	proved time.Time
}

// NewDirectory returns the directory of the host with a base such as "https://example.com". It
// lists the signers, which also sign it, and the other keys. Without any key the error is
// [millrace.ErrInvalid].
func NewDirectory(base string, signers []*Key, others []PublicKey) (*Directory, error) {
	d := &Directory{authority: normalBase(canon.Origin(base)), now: time.Now}
	seen := make(map[string]bool)
	var keys []PublicKey
	for _, k := range signers {
		if !seen[k.id] {
			seen[k.id] = true
			d.signers = append(d.signers, k)
			keys = append(keys, k.Public())
		}
	}
	for _, k := range others {
		if !seen[k.ID] {
			seen[k.ID] = true
			keys = append(keys, k)
		}
	}
	switch {
	case len(keys) == 0:
		return nil, fmt.Errorf("key directory: %w: no key", millrace.ErrInvalid)
	case len(keys) > maxKeys:
		return nil, fmt.Errorf("key directory: %w: %d keys, at most %d", millrace.ErrTooLarge, len(keys), maxKeys)
	}
	d.body = AppendDirectory(nil, keys)
	d.header = http.Header{
		"Content-Type":                {DirectoryType},
		"Cache-Control":               {"public, max-age=" + strconv.Itoa(int(publishFor.Seconds()))},
		"Etag":                        {`"` + canon.SHA256Hex(d.body)[:32] + `"`},
		"Access-Control-Allow-Origin": {"*"},
		"X-Content-Type-Options":      {"nosniff"},
	}
	return d, nil
}

// Body returns the directory's bytes.
func (d *Directory) Body() []byte { return d.body }

// Proof returns Content-Digest, Signature-Input and Signature fields in which the keys sign
// the directory for its host. They are valid for lifetime from now.
func (d *Directory) Proof(lifetime time.Duration) (http.Header, error) {
	now := d.now()
	h := http.Header{"Content-Digest": {canon.Digest(d.body)}}
	m := &message{status: http.StatusOK, field: h, req: &message{method: http.MethodGet, base: d.authority, target: DirectoryPath}}
	var inputs, values []string
	for i, k := range d.signers {
		covered := components("content-digest")
		covered.Items = append(covered.Items, with("@authority", "req", true))
		input, value, err := k.signMessage(m, "binding"+strconv.Itoa(i), covered, now, now.Add(lifetime), directoryTag, "")
		if err != nil {
			return nil, fmt.Errorf("sign key directory: %w", err)
		}
		inputs, values = append(inputs, input), append(values, value)
	}
	if len(inputs) > 0 {
		h["Signature-Input"], h["Signature"] = []string{strings.Join(inputs, ", ")}, []string{strings.Join(values, ", ")}
	}
	return h, nil
}

// proofNow returns a proof that remains valid for a few days.
func (d *Directory) proofNow() (http.Header, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	if d.proof == nil || now.Sub(d.proved).Abs() >= provenNew {
		proof, err := d.Proof(provenFor)
		if err != nil {
			return nil, err
		}
		d.proof, d.proved = proof, now
	}
	return d.proof, nil
}

// ServeHTTP serves the directory at any path.
func (d *Directory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed; use GET", http.StatusMethodNotAllowed)
		return
	}
	for name, value := range d.header {
		h[name] = value
	}
	proof, err := d.proofNow()
	if err != nil {
		http.Error(w, "the key directory cannot be signed", http.StatusInternalServerError)
		return
	}
	for name, value := range proof {
		h[name] = value
	}
	r.Header.Del("Range") // Content-Digest covers the whole directory
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(d.body))
}
