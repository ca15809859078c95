package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// prefix is how a secret begins that is written down.
const prefix = "whsec_"

// A secret has 24 to 64 bytes, and there are at most a few of them.
const (
	minSecret  = 24
	maxSecret  = 64
	maxSecrets = 4
)

// Secret is a key that only the two sides know. It prints as nothing of it.
type Secret struct{ key []byte }

// String says that it is a secret.
func (Secret) String() string { return prefix + "…" }

// GoString says the same.
func (s Secret) GoString() string { return s.String() }

// ParseSecrets reads secrets, one in a line: "whsec_" and the base64 of 24 to 64
// random bytes. With more than one, each signs, so that a new one can take the
// place of an old one. Errors are [millrace.ErrInvalid] and repeat nothing.
func ParseSecrets(text string) ([]Secret, error) {
	var out []Secret
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		encoded, ok := strings.CutPrefix(line, prefix)
		if !ok {
			return nil, fmt.Errorf("line %d: a secret begins with %s: %w", n, prefix, millrace.Coded("secret-prefix", millrace.ErrInvalid))
		}
		key, err := base64.StdEncoding.DecodeString(encoded)
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: what follows %s is no base64: %w", n, prefix, millrace.Coded("secret-base64", millrace.ErrInvalid))
		case len(key) < minSecret || len(key) > maxSecret:
			return nil, fmt.Errorf("line %d: a secret of %d bytes: want %d to %d: %w", n, len(key), minSecret, maxSecret, millrace.Coded("secret-length", millrace.ErrInvalid))
		case len(out) == maxSecrets:
			return nil, fmt.Errorf("line %d: more than %d secrets: %w", n, maxSecrets, millrace.Coded("secret-count", millrace.ErrInvalid))
		}
		out = append(out, Secret{key})
	}
	if out == nil {
		return nil, fmt.Errorf("no secret: %w", millrace.Coded("no-secret", millrace.ErrInvalid))
	}
	return out, nil
}

// signature gives the value of webhook-signature.
func signature(secrets []Secret, id string, at time.Time, body []byte) string {
	var out []string
	for _, s := range secrets {
		mac := hmac.New(sha256.New, s.key)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		out = append(out, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(out, " ")
}
