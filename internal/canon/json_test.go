package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/gowebpki/jcs"
)

// The vector: 116 bytes, its hash as published.
const (
	vectorJSON = `{"canonical_url":"https://example.com/hello-world/","content":"Hello World","profile":"tct-1","title":"Hello World"}`
	vectorHash = "af976cac6d5c89428a724e456311081ddbf3bab73cc4de7c85119b185ffbdab8"
)

func TestVector(t *testing.T) {
	mixed := `{ "title":"Hello World" , "profile":"tct-1","content":"Hello World","canonical_url":"https:\/\/example.com\/hello-world\/"}`
	got, err := JCS([]byte(mixed))
	if string(got) != vectorJSON || len(got) != 116 {
		t.Errorf("JCS gives %s, %v", got, err)
	}
	if h := SHA256Hex(got); h != vectorHash {
		t.Errorf("hash %s, want %s", h, vectorHash)
	}
}

// same fails unless the library leaves doc as it is.
func same(t *testing.T, doc []byte) {
	t.Helper()
	lib, err := jcs.Transform(doc)
	if err != nil || !bytes.Equal(lib, doc) {
		t.Errorf("ours    %q\nlibrary %q, %v", doc, lib, err)
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
	// Every byte at every place of a word, among plain and other bytes.
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
	// RFC 8785, appendix B, and the ends of the two ways of writing.
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

func TestJCS(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{" {\n} ", `{}`},
		{`null`, `null`},
		{`-0`, `0`},
		{`[-0.0,1E3,1e-7,333333333.33333329,4.50,2e-3,1e30]`, `[0,1000,1e-7,333333333.3333333,4.5,0.002,1e+30]`},
		{`9007199254740993`, `9007199254740992`},
		{
			`{"\ufb33":1,"\ud83d\ude00":2,"\u20ac":3,"\r":4,"1":5,"\u0080":6,"ö":7}`,
			"{\"\\r\":4,\"1\":5,\"\u0080\":6,\"ö\":7,\"€\":3,\"\U0001F600\":2,\"\ufb33\":1}",
		},
		{`"\u2028\u2029\/\u003c\u000f\u0041"`, "\"\u2028\u2029/<\\u000fA\""},
		{`[{"b":[],"a":{}}]`, `[{"a":{},"b":[]}]`},
	} {
		if got, err := JCS([]byte(c.in)); string(got) != c.want {
			t.Errorf("JCS(%s) = %s, %v; want %s", c.in, got, err, c.want)
		}
	}
}

func TestJCSRefuses(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth)
	if _, err := JCS([]byte(deep + strings.Repeat("]", MaxDepth))); err != nil {
		t.Errorf("depth %d: %v", MaxDepth, err)
	}
	for _, c := range []struct {
		in     string
		offset int64
		says   string
	}{
		{"", 0, "json-syntax"},
		{"  ", 1, "json-syntax"},
		{`{"a":01}`, 6, "json-syntax"},
		{`01`, 1, "json-syntax"},
		{`+1`, 0, "json-syntax"},
		{`.5`, 0, "json-syntax"},
		{`1.`, 1, "json-syntax"},
		{`0x10`, 1, "json-syntax"},
		{`NaN`, 0, "json-syntax"},
		{`[1,]`, 3, "json-syntax"},
		{`{"a":1,}`, 7, "json-syntax"},
		{`{a:1}`, 1, "json-syntax"},
		{`'a'`, 0, "json-syntax"},
		{`[1] 2`, 4, "json-syntax"},
		{`{}{}`, 2, "json-syntax"},
		{"\"a\nb\"", 2, "json-syntax"},
		{`"\x"`, 2, "json-syntax"},
		{`"abc`, 3, "json-syntax"},
		{"/* */1", 0, "json-syntax"},
		{"\ufeff{}", 0, "json-bom"},
		{"{\"a\":\"\xff\"}", 6, "utf-8"},
		{"\"\ufffd\xed\xa0\x80\"", 4, "utf-8"},
		{deep + "[", MaxDepth, "json-depth"},
		{`1E400`, -1, "json-syntax"},
		{`{"a":1,"a":2}`, -1, "json-syntax"},
		{`{"a":1,"\u0061":2}`, -1, "json-syntax"},
		{`"\ud800"`, 1, "json-surrogate"},
		{`"\ud83d\ude00\\\udc00\ud800"`, 15, "json-surrogate"},
		{`{"\ud83dx":1}`, 2, "json-surrogate"},
		{`"\ud83d\n"`, 1, "json-surrogate"},
		{`"\ud83d\ud83d"`, 1, "json-surrogate"},
	} {
		got, err := JCS([]byte(c.in))
		s, ok := errors.AsType[*SyntaxError](err)
		if !ok {
			t.Errorf("JCS(%q) = %s, %v; want a SyntaxError", c.in, got, err)
			continue
		}
		if s.Offset != c.offset || s.ErrorCode() != c.says {
			t.Errorf("JCS(%.40q): %q at %d (want %d): code %q, want %q", c.in, err, s.Offset, c.offset, s.ErrorCode(), c.says)
		}
	}
}

func FuzzJCS(f *testing.F) {
	for _, s := range []string{
		vectorJSON, `[-0,1E400,1e-7]`, `{"\ufb33":1,"\ud83d\ude00":2}`, `"\ud800"`, `{"a":1,"a":2}`, "\"\u2028\"", `01`, "\xff", "[[[]]] x",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := JCS(data)
		if err != nil {
			return
		}
		if again, err := JCS(out); !bytes.Equal(again, out) {
			t.Fatalf("%q: %q, and again %q, %v", data, out, again, err)
		}
		// Our writer, fed with what the standard library reads, gives the same.
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if ours := appendAny(nil, v); !bytes.Equal(ours, out) {
			t.Fatalf("%q\nours    %q\nlibrary %q", data, ours, out)
		}
	})
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

// appendAny writes a decoded value with the writer under test, members in their
// order.
func appendAny(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return AppendString(dst, v)
	case float64:
		return AppendNumber(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendAny(dst, e)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range slices.SortedFunc(maps.Keys(v), CompareNames) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendAny(append(AppendString(dst, name), ':'), v[name])
		}
		return append(dst, '}')
	}
	return fmt.Append(dst, map[any]string{nil: "null", true: "true", false: "false"}[v])
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

func BenchmarkJCS(b *testing.B) {
	doc := []byte(`[` + strings.Repeat(vectorJSON+",", 100) + vectorJSON + `]`)
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if _, err := JCS(doc); err != nil {
			b.Fatal(err)
		}
	}
}
