package webauth

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/dunglas/httpsfv"
)

const (
	botTag   = "web-bot-auth"
	botLabel = "sig1"
)

// nonceSize is the number of random bytes in a nonce.
const nonceSize = 32

// SignerOptions configure a [Signer]. The zero value works.
type SignerOptions struct {
	// Lifetime is how long a signature holds; 0 = a minute.
	Lifetime time.Duration
	// Now tells the time; nil = the system's.
	Now func() time.Time
	// Rand gives the nonces; nil = the system's randomness. It must be safe for
	// concurrent use.
	Rand io.Reader
}

// Signer signs the requests of a robot by Web Bot Auth. It is safe for
// concurrent use.
type Signer struct {
	key      *Key
	agent    string
	lifetime time.Duration
	now      func() time.Time
	rand     io.Reader
}

// NewSigner makes a signer that names the directory at a URL, where the key has
// to be found: a URL, which is sent as it is given. One of http is believed by
// nobody but in a network of one's own. An error wraps [millrace.ErrInvalid]. nil
// options are the zero value.
func NewSigner(key *Key, directory string, o *SignerOptions) (*Signer, error) {
	if o == nil {
		o = new(SignerOptions)
	}
	if _, err := parseAgent(directory, true); err != nil {
		return nil, err
	}
	if _, err := httpsfv.Marshal(httpsfv.NewItem(directory)); err != nil {
		return nil, invalid("2.1", "the URL of a directory is written in ASCII, not %q", directory)
	}
	s := &Signer{key: key, agent: directory, lifetime: cmp.Or(o.Lifetime, time.Minute), now: o.Now, rand: o.Rand}
	if s.now == nil {
		s.now = time.Now
	}
	if s.rand == nil {
		s.rand = rand.Reader
	}
	return s, nil
}

// Sign adds the fields of a signature to a request that is about to be sent,
// for its host, method and path.
func (s *Signer) Sign(r *http.Request) error {
	nonce := make([]byte, nonceSize)
	if _, err := io.ReadFull(s.rand, nonce); err != nil {
		return fmt.Errorf("signing a request: %w", err)
	}
	agents := httpsfv.NewDictionary()
	agents.Add(botLabel, httpsfv.NewItem(s.agent))
	field, err := httpsfv.Marshal(agents)
	if err != nil {
		return fmt.Errorf("signing a request: %w", err)
	}
	r.Header[agentField] = []string{field}
	covered := components("@authority", "@method", "@path")
	covered.Items = append(covered.Items, with("signature-agent", "key", botLabel))
	m := requestMessage(r, "")
	if r.Host != "" {
		m.base = normalBase(r.URL.Scheme + "://" + r.Host)
	}
	now := s.now()
	input, value, err := s.key.seal(m, botLabel, covered, now, now.Add(s.lifetime), botTag, base64.StdEncoding.EncodeToString(nonce))
	if err != nil {
		return fmt.Errorf("signing a request: %w", err)
	}
	r.Header["Signature-Input"], r.Header["Signature"] = []string{input}, []string{value}
	return nil
}
