package dashboard

import (
	"encoding/base64"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

func encode(b []byte) string { return base64.RawStdEncoding.EncodeToString(b) }

func addr(a [16]byte) netip.Addr { return netip.AddrFrom16(a) }

func TestPassword(t *testing.T) {
	t.Parallel()
	typed := NewPassword()
	if len(typed) != 27 || typed == NewPassword() {
		t.Errorf("the password %s", typed)
	}
	phc, err := HashPassword(typed)
	if err != nil {
		t.Fatal(err)
	}
	p, err := readPassword(phc)
	if err != nil || !p.is(typed) || p.is(typed+"x") || p.is("") {
		t.Errorf("%s: %v", phc, err)
	}
	for _, bad := range []string{"", strings.Repeat("x", maxTyped+1)} {
		if _, err := HashPassword(bad); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%.10q has a hash: %v", bad, err)
		}
	}
}

// A hash from another program is accepted. This one is a test vector of the reference
// implementation.
func TestPasswordOfOthers(t *testing.T) {
	t.Parallel()
	p, err := readPassword("$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc")
	if err != nil || !p.is("password") || p.is("Password") {
		t.Error(err)
	}
}

func TestCheckHash(t *testing.T) {
	t.Parallel()
	const salt, hash = "c29tZXNhbHQ", "CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	for _, bad := range []string{
		"", "quiet-water", "$argon2id", "$argon2i$v=19$m=65536,t=2,p=1$" + salt + "$" + hash, "$argon2id$v=16$m=65536,t=2,p=1$" + salt + "$" + hash,
		"$argon2id$v=19$m=65536,t=2$" + salt + "$" + hash, "$argon2id$v=19$t=2,m=65536,p=1$" + salt + "$" + hash,
		"$argon2id$v=19$m=4294967295,t=2,p=1$" + salt + "$" + hash, "$argon2id$v=19$m=65536,t=1000,p=1$" + salt + "$" + hash,
		"$argon2id$v=19$m=65536,t=2,p=255$" + salt + "$" + hash, "$argon2id$v=19$m=0,t=2,p=1$" + salt + "$" + hash,
		"$argon2id$v=19$m=65536,t=2,p=1$$" + hash, "$argon2id$v=19$m=65536,t=2,p=1$" + salt + "$", "$argon2id$v=19$m=65536,t=2,p=1$" + salt + "$" + hash + "=",
		"$argon2id$v=19$m=65536,t=2,p=1$" + salt + "$" + hash + "$", "$argon2id$v=19$m=+65536,t=2,p=1$" + salt + "$" + hash,
	} {
		if err := CheckHash(bad); !errors.Is(err, millrace.ErrInvalid) || bad != "" && strings.Contains(err.Error(), hash) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzCheckHash(f *testing.F) {
	f.Add("$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc")
	f.Add("$argon2id$v=19$m=8,t=1,p=16$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := readPassword(s)
		if err != nil {
			return
		}
		if p.time < 1 || p.time > maxTime || p.memory < 1 || p.memory > maxMemory || p.threads < 1 || p.threads > maxThreads || len(p.salt) < 8 || len(p.hash) < 16 || p.text != s {
			t.Errorf("%q: %+v", s, p)
		}
	})
}
