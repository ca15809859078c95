package jsonio_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
)

// The test vector: 116 bytes, with its published hash.
const (
	vectorJSON = `{"canonical_url":"https://example.com/hello-world/","content":"Hello World","profile":"tct-1","title":"Hello World"}`
	vectorHash = "af976cac6d5c89428a724e456311081ddbf3bab73cc4de7c85119b185ffbdab8"
)

func TestCanonicalVector(t *testing.T) {
	mixed := `{ "title":"Hello World" , "profile":"tct-1","content":"Hello World","canonical_url":"https:\/\/example.com\/hello-world\/"}`
	got, err := jsonio.Canonical([]byte(mixed), nil)
	if string(got) != vectorJSON || len(got) != 116 {
		t.Errorf("Canonical returns %s, %v", got, err)
	}
	if h := canon.SHA256Hex(got); h != vectorHash {
		t.Errorf("hash %s, want %s", h, vectorHash)
	}
}

func TestCanonical(t *testing.T) {
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
		if got, err := jsonio.Canonical([]byte(c.in), nil); string(got) != c.want {
			t.Errorf("Canonical(%s) = %s, %v; want %s", c.in, got, err, c.want)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	deep := strings.Repeat("[", 64)
	if _, err := jsonio.Canonical([]byte(deep+strings.Repeat("]", 64)), nil); err != nil {
		t.Errorf("depth 64: %v", err)
	}
	for _, c := range []struct {
		in, code string
	}{
		{"", "json-truncated"},
		{"  ", "json-truncated"},
		{`{"a":01}`, "json-syntax"},
		{`01`, "json-syntax"},
		{`+1`, "json-syntax"},
		{`.5`, "json-syntax"},
		{`1.`, "json-truncated"},
		{`0x10`, "json-syntax"},
		{`NaN`, "json-syntax"},
		{`[1,]`, "json-syntax"},
		{`{"a":1,}`, "json-syntax"},
		{`{a:1}`, "json-syntax"},
		{`'a'`, "json-syntax"},
		{`[1] 2`, "json-syntax"},
		{`{}{}`, "json-syntax"},
		{"\"a\nb\"", "json-syntax"},
		{`"\x"`, "json-syntax"},
		{`"abc`, "json-truncated"},
		{"/* */1", "json-syntax"},
		{"\ufeff{}", "json-bom"},
		{"{\"a\":\"\xff\"}", "json-syntax"},
		{"\"\ufffd\xed\xa0\x80\"", "json-syntax"},
		{deep + "[", "json-depth"},
		{`1E400`, "json-syntax"},
		{`{"a":1,"a":2}`, "json-duplicate"},
		{`{"a":1,"\u0061":2}`, "json-duplicate"},
		{`"\ud800"`, "json-syntax"},
		{`"\ud83d\ude00\\\udc00\ud800"`, "json-syntax"},
		{`{"\ud83dx":1}`, "json-syntax"},
		{`"\ud83d\n"`, "json-syntax"},
		{`"\ud83d\ud83d"`, "json-syntax"},
	} {
		if got, err := jsonio.Canonical([]byte(c.in), nil); millrace.ErrorCode(err) != c.code {
			t.Errorf("Canonical(%.40q) = %s, %v; code %q, want %q", c.in, got, err, millrace.ErrorCode(err), c.code)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{
		vectorJSON, `[-0,1E400,1e-7]`, `{"\ufb33":1,"\ud83d\ude00":2}`, `"\ud800"`, `{"a":1,"a":2}`, "\"\u2028\"", `01`, "\xff", "[[[]]] x",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := jsonio.Canonical(data, nil)
		if err != nil {
			return
		}
		if again, err := jsonio.Canonical(out, nil); !bytes.Equal(again, out) {
			t.Fatalf("%q: %q, and after a second call %q, %v", data, out, again, err)
		}
		// The encoder of this project returns the same bytes for values of the standard library.
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if ours := appendAny(nil, v); !bytes.Equal(ours, out) {
			t.Fatalf("%q\nours    %q\nlibrary %q", data, ours, out)
		}
	})
}

// appendAny appends a decoded value with the encoder of this project, with the members in
// canonical order.
func appendAny(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return canon.AppendString(dst, v)
	case float64:
		return canon.AppendNumber(dst, v)
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
		for i, name := range slices.SortedFunc(maps.Keys(v), canon.CompareNames) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendAny(append(canon.AppendString(dst, name), ':'), v[name])
		}
		return append(dst, '}')
	}
	return fmt.Append(dst, map[any]string{nil: "null", true: "true", false: "false"}[v])
}

func BenchmarkCanonical(b *testing.B) {
	doc := []byte(`[` + strings.Repeat(vectorJSON+",", 100) + vectorJSON + `]`)
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if _, err := jsonio.Canonical(doc, nil); err != nil {
			b.Fatal(err)
		}
	}
}
