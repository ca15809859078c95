package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An owner can supply a key from a file or standard input. The key grants access to the content.
// It appears in no output and no store, and a weak key is refused.
func TestOwnKey(t *testing.T) {
	t.Parallel()
	const key, piped = "sk_live_4f9d0c7ab81e5326ff019d7c", "7a1c-9e40-b6d3-52f8-0e67-c1d4-88ab"
	dir, db, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "s.db"), filepath.Join(t.TempDir(), "key")
	write(t, file, key+"\n")
	code, out, errs := command(t, nil, "keys", "add", "shop", "--store", db, "--key-file", file)
	if code != 0 || strings.Contains(out+errs, key) {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	var stdout, stderr buffer
	env := environment(map[string]string{"HOME": t.TempDir()})
	if code := run(t.Context(), []string{"keys", "add", "crm", "--store", db, "--key-file", "-", "--json"}, env, strings.NewReader(piped), &stdout, &stderr); code != 0 || strings.Contains(stdout.String(), piped) {
		t.Fatalf("exit %d: %s%s", code, stdout.String(), stderr.String())
	}
	if b, err := os.ReadFile(db); err != nil || bytes.Contains(b, []byte(key)) {
		t.Errorf("the store contains the key or is unreadable: %v", err)
	}
	write(t, file, "password1\n")
	if code, _, errs := command(t, nil, "keys", "add", "weak", "--store", db, "--key-file", file); code != 2 || strings.Contains(errs, "password1") {
		t.Errorf("a weak key: exit %d: %s", code, errs)
	}
	s := serve(t, dir, "--store", db, "--require-key")
	for token, want := range map[string]int{key: 200, piped: 200, key + "x": 401, "": 401} {
		if got, _, _ := get(t, s.url+"openfeeder", "Authorization", "Bearer "+token); got != want {
			t.Errorf("a key of %d characters: status %d, want %d", len(token), got, want)
		}
	}
}
