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

// prefix is the beginning of a secret in its text form.
const prefix = "whsec_"

// Limits of a secret's length in bytes and of the number of secrets.
const (
	minSecret  = 24
	maxSecret  = 64
	maxSecrets = 4
)

// Secret is a key shared by sender and receiver. Printing does not reveal it.
type Secret struct{ key []byte }

// String returns a placeholder.
func (Secret) String() string { return prefix + "…" }

// GoString returns a placeholder.
func (s Secret) GoString() string { return s.String() }

// ParseSecrets parses secrets, one on each line: "whsec_" and the base64 of 24 to 64 random
// bytes. Messages are signed with each secret, so that a new one can replace an old one.
// Errors are [millrace.ErrInvalid] and contain no secret.
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
			return nil, fmt.Errorf("line %d: the secret must begin with %s: %w", n, prefix, millrace.Coded("secret-prefix", millrace.ErrInvalid))
		}
		key, err := base64.StdEncoding.DecodeString(encoded)
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: the text after %s is not base64: %w", n, prefix, millrace.Coded("secret-base64", millrace.ErrInvalid))
		case len(key) < minSecret || len(key) > maxSecret:
			return nil, fmt.Errorf("line %d: the secret has %d bytes, want %d to %d: %w", n, len(key), minSecret, maxSecret, millrace.Coded("secret-length", millrace.ErrInvalid))
		case len(out) == maxSecrets:
			return nil, fmt.Errorf("line %d: more than %d secrets: %w", n, maxSecrets, millrace.Coded("secret-count", millrace.ErrInvalid))
		}
		out = append(out, Secret{key})
	}
	if out == nil {
		return nil, fmt.Errorf("missing secret: %w", millrace.Coded("no-secret", millrace.ErrInvalid))
	}
	return out, nil
}

// signature returns the value of webhook-signature.
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
