package canon

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/gowebpki/jcs"
)

// same fails the test unless the library returns doc unchanged.
func same(t *testing.T, doc []byte) {
	t.Helper()
	lib, err := jcs.Transform(doc)
	if err != nil || !bytes.Equal(lib, doc) {
		t.Errorf("document %q\nlibrary  %q, %v", doc, lib, err)
	}
}

func TestAppendString(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", `""`},
		{"\b\t\n\f\r\"\\/", `"\b\t\n\f\r\"\\/"`},
		{"\x00\x1f\x7f", "\"\\u0000\\u001f\x7f\""},
		{"<>&'\u2028\u2029é\U0001F600", "\"<>&'\u2028\u2029é\U0001F600\""},
		{"a\xff\xfeb\xe2\x82", "\"a\uFFFD\uFFFDb\uFFFD\uFFFD\""},
		{"\xed\xa0\x80", "\"\uFFFD\uFFFD\uFFFD\""}, // a surrogate in UTF-8
	} {
		if got := string(AppendString([]byte("x"), c.in)); got != "x"+c.want {
			t.Errorf("AppendString(%q) = %s, want %s", c.in, got, c.want)
		}
	}
	// Every byte at every position of a word, among plain and other bytes.
	for c := range 0x80 {
		for at := range 20 {
			for _, fill := range []string{"a", "\u0080"} {
				s := strings.Repeat(fill, at) + string(rune(c)) + strings.Repeat(fill, 20-at)
				same(t, AppendString(nil, s))
			}
		}
	}
}

func TestAppendNumber(t *testing.T) {
	// RFC 8785, appendix B, and the limits of the two notations.
	for _, bits := range []uint64{
		0, 0x8000000000000000, 1, 0x8000000000000001, 0x7fefffffffffffff, 0xffefffffffffffff,
		0x4340000000000000, 0xc340000000000000, 0x4430000000000000, 0x44b52d02c7e14af5, 0x44b52d02c7e14af6,
		0x44b52d02c7e14af7, 0x444b1ae4d6e2ef4e, 0x444b1ae4d6e2ef4f, 0x444b1ae4d6e2ef50, 0x3eb0c6f7a0b5ed8c,
		0x3eb0c6f7a0b5ed8d, 0x41b3de4355555553, 0x41b3de4355555554, 0x41b3de4355555555, 0x41b3de4355555556,
		0x41b3de4355555557, 0xbecbf647612f3696, 0x43143ff3c1cb0959,
	} {
		number(t, math.Float64frombits(bits))
	}
	for _, f := range []float64{1e-6, 9.99e-7, 1e-7, 1e-10, 1e20, 1e21, 1e22, 1e100, 0.1, -1.5, 100} {
		number(t, f)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		if f := math.Float64frombits(random.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
			number(t, f)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got := string(AppendNumber(nil, f)); got != "null" {
			t.Errorf("AppendNumber(%v) = %s", f, got)
		}
	}
}

func number(t *testing.T, f float64) {
	t.Helper()
	want, err := jcs.NumberToJSON(f)
	if got := string(AppendNumber(nil, f)); got != want || err != nil {
		t.Errorf("AppendNumber(%x) = %s, the library %s, %v", math.Float64bits(f), got, want, err)
	}
}

func TestCompareNames(t *testing.T) {
	names := []string{
		"", "a", "aa", "ab", "\x00", "\x7f", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\ufb33", "\uffff",
		"\U00010000", "\U0001F600", "\U0001F601", "\U0010FFFF", "a\U00010000", "a\uffff", "\U00010000\uffff", "é", "e\u0301",
	}
	for _, a := range names {
		for _, b := range names {
			want := slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
			if got := CompareNames(a, b); (got < 0) != (want < 0) || (got > 0) != (want > 0) {
				t.Errorf("CompareNames(%q, %q) = %d, want the sign of %d", a, b, got, want)
			}
		}
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "a\"b\\c\n\x00\x1f", "é\u2028\U0001F600", "\xff\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := AppendString(nil, s)
		same(t, got)
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != string([]rune(s)) {
			t.Fatalf("%q reads back as %q, %v", s, back, err)
		}
	})
}

func TestHashes(t *testing.T) {
	if got, want := SHA256Hex(nil), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"; got != want {
		t.Errorf("SHA256Hex(nil) = %s", got)
	}
	// RFC 9530, appendix D.
	if got, want := Digest([]byte("{\"hello\": \"world\"}\n")), "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"; got != want {
		t.Errorf("Digest = %s, want %s", got, want)
	}
}

var benchTexts = map[string]string{
	"ascii":   strings.Repeat("The quick brown fox jumps over the lazy dog, and again.\n", 100),
	"polish":  strings.Repeat("Zażółć gęślą jaźń, a potem śpij spokojnie.\n", 100),
	"escapes": strings.Repeat(`a "quoted" \word\ `, 200),
}

func BenchmarkAppendString(b *testing.B) {
	for name, text := range benchTexts {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var buf []byte
			for b.Loop() {
				buf = AppendString(buf[:0], text)
			}
		})
		b.Run(name+"-encoding-json", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var buf bytes.Buffer
			enc := json.NewEncoder(&buf)
			enc.SetEscapeHTML(false)
			for b.Loop() {
				buf.Reset()
				if err := enc.Encode(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
