package webauth

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
)

// Path and media type of key directories.
const (
	// DirectoryPath is the path at which a host publishes its signature keys.
	DirectoryPath = "/.well-known/http-message-signatures-directory"
	// DirectoryType is the media type of a directory.
	DirectoryType = "application/http-message-signatures-directory+json"

	directoryTag = "http-message-signatures-directory"
)

// Limits of a parsed directory.
const (
	maxDirectory = 64 << 10 // bytes
	maxKeys      = 64
)

// PublicKey is a key that verifies signatures.
type PublicKey struct {
	ID  string // thumbprint of the key
	Key ed25519.PublicKey
	// NotBefore and NotAfter are the validity period of the key. Zero means unlimited.
	NotBefore, NotAfter time.Time
}

// isValid reports whether the key is valid at a time.
func (k *PublicKey) isValid(at time.Time) bool {
	return (k.NotBefore.IsZero() || !at.Before(k.NotBefore)) && (k.NotAfter.IsZero() || at.Before(k.NotAfter))
}

// jwk contains the relevant members of a JSON Web Key (RFC 7517, section 4).
type jwk struct {
	Type   string   `json:"kty"`
	Curve  string   `json:"crv"`
	X      string   `json:"x"`
	Secret string   `json:"d"`
	Use    string   `json:"use"`
	Alg    string   `json:"alg"`
	From   *float64 `json:"nbf"`
	Until  *float64 `json:"exp"`
}

// ParseDirectory parses a JSON Web Key Set (RFC 7517, section 5) and returns its Ed25519
// signature keys. It ignores other keys. The ID of a key is its thumbprint, whatever its kid.
// Errors are [millrace.ErrInvalid] and [millrace.ErrTooLarge].
func ParseDirectory(file []byte) ([]PublicKey, error) {
	var set struct {
		Keys []jsonio.Raw `json:"keys"`
	}
	limits := &jsonio.Limits{Size: maxDirectory, Depth: 16}
	if err := jsonio.Unmarshal(file, limits, &set); err != nil {
		return nil, fmt.Errorf("key directory: %w", err)
	}
	if set.Keys == nil {
		return nil, fmt.Errorf("key directory: %w: missing member keys (RFC 7517, section 5)", millrace.ErrInvalid)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("key directory: %w: %d keys, at most %d", millrace.ErrTooLarge, len(set.Keys), maxKeys)
	}
	var out []PublicKey
	for i, raw := range set.Keys {
		var k jwk
		if err := jsonio.Unmarshal(raw, limits, &k); err != nil {
			continue // another kind of key, whose members may have other types
		}
		if k.Type != "OKP" || k.Curve != "Ed25519" || k.Use != "" && k.Use != "sig" {
			continue
		}
		if k.Secret != "" {
			return nil, fmt.Errorf("key directory: %w: /keys/%d contains the private key", millrace.ErrInvalid, i)
		}
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || len(x) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("key directory: %w: /keys/%d/x is not an Ed25519 key (RFC 8037, section 2)", millrace.ErrInvalid, i)
		}
		key := PublicKey{ID: Thumbprint(x), Key: x}
		key.NotBefore, key.NotAfter = keyTime(k.From), keyTime(k.Until)
		out = append(out, key)
	}
	return out, nil
}

// keyTime converts a time in seconds since 1970, or in milliseconds, which some directories
// use.
func keyTime(n *float64) time.Time {
	switch {
	case n == nil || *n < 0 || *n > 1e14:
		return time.Time{}
	case *n > 1e11:
		return time.UnixMilli(int64(*n)).UTC()
	}
	return time.Unix(int64(*n), 0).UTC()
}

// AppendDirectory appends keys as a directory in canonical JSON to dst.
func AppendDirectory(dst []byte, keys []PublicKey) []byte {
	dst = append(dst, `{"keys":[`...)
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"crv":"Ed25519",`...)
		if !k.NotAfter.IsZero() {
			dst = append(strconv.AppendInt(append(dst, `"exp":`...), k.NotAfter.Unix(), 10), ',')
		}
		dst = canon.AppendString(append(dst, `"kid":`...), k.ID)
		dst = append(dst, `,"kty":"OKP",`...)
		if !k.NotBefore.IsZero() {
			dst = append(strconv.AppendInt(append(dst, `"nbf":`...), k.NotBefore.Unix(), 10), ',')
		}
		dst = append(dst, `"use":"sig","x":"`...)
		dst = base64.RawURLEncoding.AppendEncode(dst, k.Key)
		dst = append(dst, `"}`...)
	}
	return append(dst, "]}"...)
}
