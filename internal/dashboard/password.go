package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/argon2"

	"github.com/millrace/millrace"
)

// password is an argon2id hash.
type password struct {
	text    string // the PHC string
	time    uint32 // passes
	memory  uint32 // KiB
	threads uint8
	salt    []byte
	hash    []byte
}

// Parameters of new hashes: 19 MiB and two passes, the minimum that OWASP recommends. Higher
// values would only cost memory, because generated passwords cannot be guessed.
const (
	newTime    = 2
	newMemory  = 19 << 10
	newThreads = 1
	newSalt    = 16
	newHash    = 32
)

// Maximum parameters of a hash. They limit the cost of each login attempt.
const (
	maxTime    = 10
	maxMemory  = 256 << 10 // KiB
	maxThreads = 16
	// maxTyped is the maximum length of a typed password in bytes.
	maxTyped = 1024
)

// NewPassword returns a password of 120 random bits, in groups that are easy to
// type.
func NewPassword() string {
	const letters = "abcdefghijkmnpqrstuvwxyz23456789" // 32 characters, distinct in print
	var b [24]byte
	_, _ = rand.Read(b[:]) // Read never fails
	var out strings.Builder
	for i, c := range b {
		if i > 0 && i%6 == 0 {
			out.WriteByte('-')
		}
		out.WriteByte(letters[c%32])
	}
	return out.String()
}

// HashPassword returns the hash of a password as a PHC string with a new salt. It returns
// ErrInvalid if the password is empty or too long.
func HashPassword(typed string) (string, error) {
	if typed == "" || len(typed) > maxTyped {
		return "", fmt.Errorf("password: %w: got %d bytes, want 1 to %d", millrace.ErrInvalid, len(typed), maxTyped)
	}
	p := password{time: newTime, memory: newMemory, threads: newThreads, salt: make([]byte, newSalt), hash: make([]byte, newHash)}
	_, _ = rand.Read(p.salt) // Read never fails
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.memory, p.time, p.threads,
		base64.RawStdEncoding.EncodeToString(p.salt), base64.RawStdEncoding.EncodeToString(p.of(typed))), nil
}

// CheckHash returns ErrInvalid if phc is not a valid hash. The error does not contain the hash.
func CheckHash(phc string) error {
	_, err := readPassword(phc)
	return err
}

// of returns the hash of a typed password, with the parameters and salt of p.
func (p *password) of(typed string) []byte {
	return argon2.IDKey([]byte(typed), p.salt, p.time, p.memory, p.threads, uint32(len(p.hash))) //nolint:gosec // at most 64
}

// is reports whether p is the hash of a typed password, in constant time.
func (p *password) is(typed string) bool {
	return subtle.ConstantTimeCompare(p.of(typed), p.hash) == 1 && typed != ""
}

// readPassword parses a PHC string.
func readPassword(phc string) (password, error) {
	bad := func(why string) (password, error) {
		return password{}, fmt.Errorf("password hash: %w: %s; create one with millrace keys password", millrace.ErrInvalid, why)
	}
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return bad("want $argon2id$v=19$m=…,t=…,p=…$SALT$HASH")
	}
	if parts[2] != "v="+strconv.Itoa(argon2.Version) {
		return bad("want version 19 of argon2id")
	}
	p := password{text: phc}
	const costs = "m=%d,t=%d,p=%d"
	_, err := fmt.Sscanf(parts[3], costs, &p.memory, &p.time, &p.threads)
	if err != nil || fmt.Sprintf(costs, p.memory, p.time, p.threads) != parts[3] {
		return bad("want the costs as m=…,t=…,p=…")
	}
	if min(p.memory, p.time, uint32(p.threads)) == 0 || p.memory > maxMemory || p.time > maxTime || p.threads > maxThreads {
		return bad(fmt.Sprintf("want m= from 1 to %d, t= from 1 to %d and p= from 1 to %d", maxMemory, maxTime, maxThreads))
	}
	if p.salt, err = base64.RawStdEncoding.Strict().DecodeString(parts[4]); err != nil || len(p.salt) < 8 || len(p.salt) > 64 {
		return bad("want a salt of 8 to 64 bytes in base64 without padding")
	}
	if p.hash, err = base64.RawStdEncoding.Strict().DecodeString(parts[5]); err != nil || len(p.hash) < 16 || len(p.hash) > 64 {
		return bad("want a hash of 16 to 64 bytes in base64 without padding")
	}
	return p, nil
}
