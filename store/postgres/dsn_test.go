package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

// No error and no name of a store contains a part of the password.
func TestPasswordIsHidden(t *testing.T) {
	t.Setenv("PGCONNECT_TIMEOUT", "1")
	for dsn, want := range map[string]error{
		"postgres://u:hush-hush@127.0.0.1:1/db":                  millrace.ErrUnavailable,
		"postgres://127.0.0.1:1/db?user=u&password=hush-hush":    millrace.ErrUnavailable,
		"postgres://u:hush-hush@127.0.0.1:1/db?sslmode=maybe":    millrace.ErrInvalid,
		"postgres://u:hush-hush@127.0.0.1:x/db":                  millrace.ErrInvalid,
		"postgres://u:hush%-hush@127.0.0.1/db":                   millrace.ErrInvalid,
		"postgres://u:hush/hush@127.0.0.1/db":                    millrace.ErrInvalid,
		"postgres://u:hush?hush@127.0.0.1/db":                    millrace.ErrInvalid,
		"postgres://u:hush#hush@127.0.0.1/db":                    millrace.ErrInvalid,
		"postgres://u:hush hush@127.0.0.1/db":                    millrace.ErrInvalid,
		"postgres://u:hush@hush@127.0.0.1:1/db":                  millrace.ErrInvalid,
		"postgres://u:hush-hush@127.0.0.1:1/db?pool_max_conns=x": millrace.ErrInvalid,
	} {
		_, err := Open(t.Context(), dsn, nil)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", dsn, err)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the error has the password: %v", dsn, err)
		}
	}
}

// Any text is read back as it was stored, and valid texts are stored unchanged.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a", "é", "\x00", "\xff", "\U0010FF41", "\U0010FFFF\xf4\x8f", "\uFFFD", "\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := encodeText(s)
		if decodeText(e) != s {
			t.Errorf("%q becomes %q, and that %q", s, e, decodeText(e))
		}
		if strings.ToValidUTF8(e, "") != e || strings.ContainsRune(e, 0) {
			t.Errorf("%q becomes %q", s, e)
		}
	})
}
