package webauth

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
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

// Signer signs the requests of a robot with Web Bot Auth. It is safe for concurrent use.
type Signer struct {
	key      *Key
	agent    string
	lifetime time.Duration
	now      func() time.Time
}

// NewSigner returns a signer that names the directory at a URL, which must list the key. The URL is
// sent unchanged. An http URL works only for verifiers that allow it; see
// [VerifierOptions.AllowHTTP]. Errors are [millrace.ErrInvalid].
func NewSigner(key *Key, directory string) (*Signer, error) {
	if _, err := parseAgent(directory, true); err != nil {
		return nil, err
	}
	if _, err := httpsfv.Marshal(httpsfv.NewItem(directory)); err != nil {
		return nil, invalid("2.1", "the URL of a directory must be in ASCII, not %q", directory)
	}
	return &Signer{key: key, agent: directory, lifetime: time.Minute, now: time.Now}, nil
}

// Sign adds a signature of host, method and path to a request. Call it just before sending the
// request.
func (s *Signer) Sign(r *http.Request) error {
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // rand.Read never fails
	agents := httpsfv.NewDictionary()
	agents.Add(botLabel, httpsfv.NewItem(s.agent))
	field, err := httpsfv.Marshal(agents)
	if err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	r.Header[agentField] = []string{field}
	covered := components("@authority", "@method", "@path")
	covered.Items = append(covered.Items, with("signature-agent", "key", botLabel))
	m := requestMessage(r, "")
	if r.Host != "" {
		m.base = normalBase(r.URL.Scheme + "://" + r.Host)
	}
	now := s.now()
	input, value, err := s.key.signMessage(m, botLabel, covered, now, now.Add(s.lifetime), botTag, base64.StdEncoding.EncodeToString(nonce))
	if err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	r.Header["Signature-Input"], r.Header["Signature"] = []string{input}, []string{value}
	return nil
}
