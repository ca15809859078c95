package webauth

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/millrace/millrace"
)

// Key is a private Ed25519 key. Printing it does not reveal the secret.
type Key struct {
	private ed25519.PrivateKey
	id      string
}

// NewKey generates a key from a source of randomness. If from is nil, it uses the system's.
func NewKey(from io.Reader) (*Key, error) {
	if from == nil {
		from = rand.Reader
	}
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(from, seed); err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	return newKey(ed25519.NewKeyFromSeed(seed)), nil
}

func newKey(private ed25519.PrivateKey) *Key {
	k := &Key{private: private}
	k.id = Thumbprint(k.public())
	return k
}

// Types of PEM blocks (RFC 7468, sections 10 and 13).
const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
)

// ParseKey parses a PEM file with a PKCS #8 private key (RFC 8410), as "openssl genpkey -algorithm
// ed25519" writes it. Errors are [millrace.ErrInvalid] and contain no part of the file.
func ParseKey(file []byte) (*Key, error) {
	for {
		var block *pem.Block
		if block, file = pem.Decode(file); block == nil {
			return nil, fmt.Errorf("%w: no private key in the file; it must have a PEM block PRIVATE KEY", millrace.ErrInvalid)
		}
		switch block.Type {
		case privateBlock:
		case "ENCRYPTED PRIVATE KEY":
			return nil, fmt.Errorf("%w: the key is encrypted; use a key without a password", millrace.ErrInvalid)
		default:
			continue
		}
		any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%w: invalid private key", millrace.ErrInvalid)
		}
		private, ok := any.(ed25519.PrivateKey)
		if !ok {
			return nil, fmt.Errorf("%w: not an Ed25519 key", millrace.ErrInvalid)
		}
		return newKey(private), nil
	}
}

// PEM returns the private key in the format of [ParseKey].
func (k *Key) PEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der}), nil
}

// ID returns the thumbprint of the key.
func (k *Key) ID() string { return k.id }

// Public returns the public key.
func (k *Key) Public() PublicKey { return PublicKey{ID: k.id, Key: k.public()} }

// String identifies the key without its secret.
func (k *Key) String() string { return "key " + k.id }

// GoString returns the same as String.
func (k *Key) GoString() string { return k.String() }

func (k *Key) public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

func (k *Key) sign(message []byte) []byte { return ed25519.Sign(k.private, message) }

// thumbprintSize is the length of a thumbprint in characters.
const thumbprintSize = 43

// Thumbprint returns the SHA-256 thumbprint of a key as a JSON Web Key, in
// base64url (RFC 7638, section 3; RFC 8037, appendix A.3).
func Thumbprint(key ed25519.PublicKey) string {
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"Ed25519","kty":"OKP","x":"%s"}`, base64.RawURLEncoding.EncodeToString(key)))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// testKey is the key of RFC 9421, appendix B.1.4, whose private key is published.
const testKey = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"

// ParseKeys parses the public keys of a file: a directory in JSON, or PEM blocks of private or
// public keys. Errors are [millrace.ErrInvalid].
func ParseKeys(file []byte) ([]PublicKey, error) {
	if bytes.HasPrefix(bytes.TrimLeft(file, " \t\r\n"), []byte("{")) {
		return ParseDirectory(file)
	}
	var out []PublicKey
	for {
		var block *pem.Block
		if block, file = pem.Decode(file); block == nil {
			break
		}
		if block.Type == publicBlock {
			any, err := x509.ParsePKIXPublicKey(block.Bytes)
			key, ok := any.(ed25519.PublicKey)
			if err != nil || !ok {
				return nil, fmt.Errorf("%w: a public key is not an Ed25519 key", millrace.ErrInvalid)
			}
			out = append(out, PublicKey{ID: Thumbprint(key), Key: key})
			continue
		}
		key, err := ParseKey(pem.EncodeToMemory(block))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.ToLower(block.Type), err)
		}
		out = append(out, key.Public())
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: neither a key directory in JSON nor a PEM file with keys", millrace.ErrInvalid)
	}
	return out, nil
}

// KeySet contains keys from files. The zero value is empty.
type KeySet struct {
	Signers []*Key      // keys with a private key
	Public  []PublicKey // public keys of all files
}

// maxKeyFile is the maximum size of a file with keys in bytes.
const maxKeyFile = 64 << 10

// Read adds the keys of a file that [ParseKeys] can parse. Errors contain no part of the file.
func (s *KeySet) Read(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened only for reading
	b, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return err
	}
	public, err := ParseKeys(b)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.Public = append(s.Public, public...)
	if own, err := ParseKey(b); err == nil {
		s.Signers = append(s.Signers, own)
	}
	return nil
}
