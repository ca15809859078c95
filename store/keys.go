package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// Keys stores the hashes of the access keys of a store. All methods are safe for
// concurrent use.
type Keys interface {
	// Add stores a key. It sets Created and ignores Revoked. If an unrevoked key has the same name,
	// or any key has the same hash, Add returns ErrConflict. If the key is invalid, Add returns
	// ErrInvalid; see [Key.Validate].
	Add(ctx context.Context, k Key) error
	// List returns all keys, including expired and revoked ones and those of other processes. They
	// are ordered by name, and keys of the same name by age, oldest first.
	List(ctx context.Context) ([]Key, error)
	// Revoke permanently revokes the key with a name. If no unrevoked key has the name, it returns
	// ErrNotFound.
	Revoke(ctx context.Context, name string) error
}

// MaxKeyName is the maximum length of the name of a key in bytes.
const MaxKeyName = 100

// Key describes an access key. Its times have whole seconds.
type Key struct {
	Name    string
	Hash    KeyHash
	Scopes  []millrace.Scope
	Created time.Time
	Expires time.Time // time at which the key becomes invalid; zero = never
	Revoked time.Time // time of the revocation; zero = not revoked
}

// KeyHash is the SHA-256 of the random bytes of a generated key, or of an owner's own key. Both
// have too much entropy to be guessed, so a fast hash is safe.
type KeyHash [sha256.Size]byte

// ValidAt reports whether a key is valid at a time.
func (k *Key) ValidAt(now time.Time) bool {
	return k.Revoked.IsZero() && (k.Expires.IsZero() || now.Before(k.Expires))
}

// HasScope reports whether a key has a scope.
func (k *Key) HasScope(r millrace.Scope) bool { return slices.Contains(k.Scopes, r) }

// Validate returns ErrInvalid for a key that a store does not accept.
func (k *Key) Validate() error {
	switch {
	case k.Name == "" || len(k.Name) > MaxKeyName:
		return fmt.Errorf("key: %w: the name has %d bytes, want 1 to %d", millrace.ErrInvalid, len(k.Name), MaxKeyName)
	case strings.ToValidUTF8(k.Name, "") != k.Name || strings.ContainsFunc(k.Name, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }):
		return fmt.Errorf("key: %w: the name %q contains unprintable characters", millrace.ErrInvalid, k.Name)
	case strings.Contains(k.Name, KeyPrefix):
		return fmt.Errorf("key: %w: the name looks like a key, and names are stored in plain text; choose another name", millrace.ErrInvalid)
	case len(k.Scopes) == 0:
		return fmt.Errorf("key %s: %w: no scope; use read or update", k.Name, millrace.ErrInvalid)
	}
	for _, r := range k.Scopes {
		if r != millrace.ScopeRead && r != millrace.ScopeUpdate {
			return fmt.Errorf("key %s: %w: unknown scope %q; use read or update", k.Name, millrace.ErrInvalid, string(r))
		}
	}
	return nil
}

// A key is "mill_", 43 base-62 digits of 32 random bytes, and 6 digits of their
// CRC-32, which detects most typing errors.
const (
	KeyPrefix   = "mill_"
	keyDigits   = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	keySize     = 32
	keyBody     = 43
	keyChecksum = 6
	keyLength   = len(KeyPrefix) + keyBody + keyChecksum
)

// NewKey returns a new key and its hash. Store only the hash.
func NewKey() (string, KeyHash) {
	var b [keySize]byte
	_, _ = rand.Read(b[:]) // Read never fails.
	return writeKey(b)
}

func writeKey(b [keySize]byte) (string, KeyHash) {
	text := KeyPrefix + digits(new(big.Int).SetBytes(b[:]), keyBody) +
		digits(big.NewInt(int64(crc32.ChecksumIEEE(b[:]))), keyChecksum)
	return text, sha256.Sum256(b[:])
}

// Limits of an owner's own key: its length in characters, and its minimum number of different
// characters. The key must be a random string from another program, because a word could be guessed
// from its hash.
const (
	minOwnKey      = 32
	maxOwnKey      = 256
	minOwnDistinct = 10
)

// ownKey returns the hash of an owner's own key.
func ownKey(key string) (KeyHash, error) {
	distinct := map[rune]bool{}
	for _, r := range key {
		if distinct[r] = true; r <= ' ' || r > '~' || r == ',' {
			return KeyHash{}, fmt.Errorf("%w: the key contains an invalid character", millrace.ErrInvalid)
		}
	}
	if len(key) < minOwnKey || len(key) > maxOwnKey || len(distinct) < minOwnDistinct {
		return KeyHash{}, fmt.Errorf("%w: a key must start with %s, or have %d to %d characters, at least %d of them different", millrace.ErrInvalid, KeyPrefix, minOwnKey, maxOwnKey, minOwnDistinct)
	}
	return sha256.Sum256([]byte("own key\n" + key)), nil
}

// ReadKey returns the hash of a key from [NewKey] or from an owner. If the key is malformed,
// it returns ErrInvalid; the error does not contain the key.
func ReadKey(key string) (KeyHash, error) {
	body, ok := strings.CutPrefix(key, KeyPrefix)
	switch {
	case !ok:
		return ownKey(key)
	case len(key) != keyLength:
		return KeyHash{}, fmt.Errorf("%w: the key has %d characters, want %d", millrace.ErrInvalid, len(key), keyLength)
	}
	n, ok := number(body[:keyBody])
	sum, okSum := number(body[keyBody:])
	if !ok || !okSum {
		return KeyHash{}, fmt.Errorf("%w: the key contains an invalid character", millrace.ErrInvalid)
	}
	var b [keySize]byte
	if n.BitLen() > 8*keySize {
		return KeyHash{}, fmt.Errorf("%w: the key is mistyped", millrace.ErrInvalid)
	}
	n.FillBytes(b[:])
	if sum.Cmp(big.NewInt(int64(crc32.ChecksumIEEE(b[:])))) != 0 {
		return KeyHash{}, fmt.Errorf("%w: the key is mistyped", millrace.ErrInvalid)
	}
	return sha256.Sum256(b[:]), nil
}

// digits formats n with count base-62 digits.
func digits(n *big.Int, count int) string {
	out, base, digit := make([]byte, count), big.NewInt(int64(len(keyDigits))), new(big.Int)
	for i := count - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		out[i] = keyDigits[digit.Int64()]
	}
	return string(out)
}

// number is the inverse of digits. It reports whether s is valid.
func number(s string) (*big.Int, bool) {
	n, base := new(big.Int), big.NewInt(int64(len(keyDigits)))
	for i := range len(s) {
		d := strings.IndexByte(keyDigits, s[i])
		if d < 0 {
			return nil, false
		}
		n.Add(n.Mul(n, base), big.NewInt(int64(d)))
	}
	return n, true
}
