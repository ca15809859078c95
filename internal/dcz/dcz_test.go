package dcz

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// list returns a list of n entries, and the same list with one entry of a hundred changed.
func list(n int) (before, after []byte) {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	for i := range n {
		hash := r.Uint64()
		before = fmt.Appendf(before, "{\"url\":\"https://x.test/docs/%d\",\"hash\":\"%016x\"}\n", i, hash)
		if i%100 == 0 {
			hash = r.Uint64()
		}
		after = fmt.Appendf(after, "{\"url\":\"https://x.test/docs/%d\",\"hash\":\"%016x\"}\n", i, hash)
	}
	return before, after
}

func decode(body, dict []byte, id ID) ([]byte, error) {
	r, err := NewReader(bytes.NewReader(body), dict, id)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// For every size and every reuse of an encoder, the target is decoded unchanged, and the encoded
// size depends only on the changes.
func TestEncode(t *testing.T) {
	t.Parallel()
	var e Encoder
	for _, n := range []int{1, 100, 3, 5_000, 100, 200_000, 10} {
		before, after := list(n)
		id := Sum(before)
		body, err := e.Encode(before, id, after)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decode(body, before, id); err != nil || !bytes.Equal(got, after) {
			t.Fatalf("%d entries: %v, %d bytes of %d", n, err, len(got), len(after))
		}
		if want := 100 + 30*(n/100+1); len(body) > want {
			t.Errorf("%d entries: %d bytes, want at most %d", n, len(body), want)
		}
		if again, err := e.Encode(before, id, after); err != nil || !bytes.Equal(again, body) {
			t.Errorf("%d entries: a different result the second time: %v", n, err)
		}
	}
}

// The program zstd, another implementation, decodes the frame.
func TestRealDecoder(t *testing.T) {
	t.Parallel()
	zstdPath := testkit.Real(t, "zstd")
	for _, n := range []int{10, 50_000} {
		before, after := list(n)
		body, err := new(Encoder).Encode(before, Sum(before), after)
		if err != nil {
			t.Fatal(err)
		}
		dict := filepath.Join(t.TempDir(), "before")
		if err := os.WriteFile(dict, before, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), zstdPath, "-d", "-c", "--long=31", "-D", dict)
		cmd.Stdin = bytes.NewReader(body[header:])
		if got, err := cmd.Output(); err != nil || !bytes.Equal(got, after) {
			t.Errorf("%d entries: %v, %d bytes of %d", n, err, len(got), len(after))
		}
	}
}

// The first 40 bytes are those of RFC 9842, section 5, with the example's hash.
func TestHeader(t *testing.T) {
	t.Parallel()
	body, err := new(Encoder).Encode([]byte("dictionary"), Sum([]byte("dictionary")), []byte("target"))
	if err != nil {
		t.Fatal(err)
	}
	sum := Sum([]byte("dictionary"))
	if want := "5e2a4d1820000000" + hex.EncodeToString(sum[:]); hex.EncodeToString(body[:40]) != want {
		t.Errorf("%x, want %s", body[:40], want)
	}
	id, ok := ParseField(":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:")
	if !ok || hex.EncodeToString(id[:]) != "a591a6d40bf420404a011733cfb7b190d62c65bf0bcda32b57b277d9ad9f146e" || id.Field() != ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:" {
		t.Errorf("%x %v %s", id, ok, id.Field())
	}
	for _, bad := range []string{"", ":", "::", ":pZGm:", "pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=", ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:;a", `"x"`} {
		if _, ok := ParseField(bad); ok {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// A damaged, foreign or hostile body causes an error, and never yields wrong bytes.
func TestBadBody(t *testing.T) {
	t.Parallel()
	before, after := list(100)
	id := Sum(before)
	body, err := new(Encoder).Encode(before, id, after)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(body) {
		if _, err := decode(body[:n], before, id); err == nil {
			t.Errorf("%d bytes of %d are accepted", n, len(body))
		}
	}
	for i := range body {
		bad := bytes.Clone(body)
		bad[i] ^= 0x10
		if got, err := decode(bad, before, id); err == nil && !bytes.Equal(got, after) {
			t.Errorf("a change of byte %d causes a wrong result", i)
		}
	}
	if _, err := decode([]byte("plain text"), before, id); !errors.Is(err, ErrCoding) {
		t.Error(err)
	}
	if _, err := decode(body, after, Sum(after)); !errors.Is(err, ErrDictionary) {
		t.Error(err)
	}
	z, err := zstd.NewWriter(nil, zstd.WithWindowSize(64<<20), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	var frame bytes.Buffer
	z.Reset(&frame)
	if _, err := z.Write(make([]byte, 65<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := decode(append(bytes.Clone(body[:header]), frame.Bytes()...), before, id); !errors.Is(err, zstd.ErrWindowSizeExceeded) {
		t.Errorf("a window of 64 MiB: %v", err)
	}
}

func TestFits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dict, target int64
		want         bool
	}{{1, minWindow, true}, {1, minWindow + 1, false}, {0, 1, false}, {20 << 20, 25 << 20, true}, {20 << 20, 25<<20 + 1, false}, {32 << 20, 32<<20 + 1, false}} {
		if got := Fits(c.dict, c.target); got != c.want {
			t.Errorf("%d, %d: %v", c.dict, c.target, got)
		}
	}
	if _, err := new(Encoder).Encode(nil, ID{}, []byte("x")); !errors.Is(err, millrace.ErrInvalid) {
		t.Error(err)
	}
}
