package store

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

func TestKeyForm(t *testing.T) {
	seen := make(map[string]bool)
	for range 200 {
		key, hash := NewKey()
		if len(key) != keyLength || seen[key] {
			t.Fatalf("key of %d characters, duplicate: %t", len(key), seen[key])
		}
		seen[key] = true
		got, err := ReadKey(key)
		if err != nil || got != hash {
			t.Fatalf("read back incorrectly: %v", err)
		}
	}
	for _, fill := range []byte{0, 0xff} {
		var b [keySize]byte
		for i := range b {
			b[i] = fill
		}
		key, hash := writeKey(b)
		if got, err := ReadKey(key); err != nil || got != hash || len(key) != keyLength {
			t.Errorf("%x: %v", fill, err)
		}
	}
}

// A mistyped key is an error whose text does not contain the key.
func TestMistypedKeys(t *testing.T) {
	key, right := NewKey()
	var wrong []string
	for i := range len(key) {
		for _, c := range "0Zz_-\x00é" {
			if w := key[:i] + string(c) + key[i+1:]; w != key {
				wrong = append(wrong, w)
			}
		}
		wrong = append(wrong, key[:i], key[:i]+key[i+1:])
		if i+1 < len(key) && key[i] != key[i+1] {
			wrong = append(wrong, key[:i]+key[i+1:i+2]+key[i:i+1]+key[i+2:])
		}
	}
	// 43 digits hold more than 32 bytes.
	top := new(big.Int).Lsh(big.NewInt(1), 8*keySize)
	wrong = append(wrong, key+"0", " "+key, strings.ToUpper(key), KeyPrefix+digits(top, keyBody)+"000000", KeyPrefix+strings.Repeat("z", keyBody+keyChecksum))
	for _, w := range wrong {
		hash, err := ReadKey(w)
		if err == nil && !strings.HasPrefix(w, KeyPrefix) && hash != right {
			continue // may be an owner's own key
		}
		if !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%q for %q: %v", w, key, err)
		} else if strings.Contains(err.Error(), key[len(KeyPrefix)+2:len(KeyPrefix)+10]) {
			t.Errorf("the error contains the key: %v", err)
		}
	}
}

// An owner's own key must be long and must not repeat a single character. Different keys have
// different hashes.
func TestOwnKeys(t *testing.T) {
	const good = "sk_live_4f9d0c7ab81e5326ff019d7c"
	hash, err := ReadKey(good)
	if other, _ := ReadKey(good + "x"); err != nil || hash == other {
		t.Errorf("%v, equal hashes: %t", err, hash == other)
	}
	for name, bad := range map[string]string{
		"short": good[:31], "long": strings.Repeat(good, 9), "of few characters": strings.Repeat("abc", 12),
		"a space": good + " x", "a comma": good + ",x", "no ASCII": good + "é", "empty": "",
	} {
		if _, err := ReadKey(bad); !errors.Is(err, millrace.ErrInvalid) || bad != "" && strings.Contains(err.Error(), good[:20]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzReadKey(f *testing.F) {
	key, _ := writeKey([keySize]byte{1, 2, 3})
	for _, s := range []string{"", KeyPrefix, key, key[:20], strings.Repeat("z", 2*keyLength)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		hash, err := ReadKey(s)
		if err != nil {
			if !errors.Is(err, millrace.ErrInvalid) || hash != (KeyHash{}) {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		// Each key has only one valid form.
		n, _ := number(s[len(KeyPrefix) : len(KeyPrefix)+keyBody])
		var b [keySize]byte
		if again, _ := writeKey([keySize]byte(n.FillBytes(b[:]))); again != s {
			t.Fatalf("%q and %q are the same key", s, again)
		}
	})
}
