package arc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
)

const yamlHead = "arc_sitemap_version: \"2.1\"\nsite: https://example.com\ngenerated_at: 2026-01-01T12:00:00Z\n"

func TestFromYAML(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"pages between", "site: a\npages:\n  - url: b\n  - {url: c, ai_indexable: true}\nlast: d\n", `{"pages":[{"url":"b"},{"url":"c","ai_indexable":true}],"site":"a","last":"d"}`},
		{"without indentation", "pages:\n- url: b\n  ai_tags:\n  - x\n  - y\n- url: c\nsite: a", `{"pages":[{"url":"b","ai_tags":["x","y"]},{"url":"c"}],"site":"a"}`},
		{"in flow style", "pages: [{url: b}, {url: c}]\n", `{"pages":[{"url":"b"},{"url":"c"}]}`},
		{"none", "pages: []\nsite: a\n", `{"pages":[],"site":"a"}`},
		{"null", "pages:\nsite: a\n", `{"pages":[],"site":"a"}`},
		{"nothing", "", `{}`},
		{"comments", "# one\n%YAML 1.2\n---\n# two\npages: # three\n\n  # four\n  - url: b # five\n\n  # six\n  - url: c\n# seven\n...\n# eight\n", `{"pages":[{"url":"b"},{"url":"c"}]}`},
		{"quoted name", "'pages' : \n - url: b\r\n - url: c\r\n", `{"pages":[{"url":"b"},{"url":"c"}]}`},
		{"numbers", "a: 1\nb: -1.50\nc: 0x1F\nd: 1.0e3\nversion: 2.1\n", `{"a":1,"b":-1.5,"c":31,"d":1000,"version":2.1}`},
		{"a version without quotes", "arc_sitemap_version: 2.10\n", `{"arc_sitemap_version":"2.10"}`},
		{"constants", "a: true\nb: null\nc: ~\nd: yes\ne:\n", `{"a":true,"b":null,"c":null,"d":"yes","e":null}`},
		{"texts", "pages:\n  - a: |\n      one\n\n      - two\n    b: >-\n      three\n      four\n    c: \"five\\u0041\"\n    d: 'six''s'\n", `{"pages":[{"a":"one\n\n- two\n","b":"three four","c":"fiveA","d":"six's"}]}`},
		{"brackets in texts", "pages:\n  - a: \"" + strings.Repeat("[{", 500) + "\"\n", `{"pages":[{"a":"` + strings.Repeat("[{", 500) + `"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := fromYAML(strings.NewReader(c.in), &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFromYAMLErrors(t *testing.T) {
	item := "pages:\n  - url: a\n"
	for _, c := range []struct{ name, in, want string }{
		{"alias", yamlHead + item + "    x: *a\n", "line 6, column 8"},
		{"anchor", yamlHead + item + "    x: &a b\n", "line 6, column 8"},
		{"anchor after the pages", yamlHead + item + "x: y\nz: &a b\n", "line 7, column 4"},
		{"merge", item + "    <<: {a: b}\n", "line 3, column 5"},
		{"tag", item + "    x: !!binary aGk=\n", "line 3, column 8"},
		{"infinity", item + "    x: .inf\n", "line 3, column 8"},
		{"a mapping in place of the pages", "pages:\n  a: b\n", "line 2, column 3"},
		{"a line of nothing", "pages:\n    - url: a\n  x: y\n", "line 3, column 3"},
		{"a sequence", "- a\n- b\n", "line 1, column 1"},
		{"text", "only text\n", "line 1, column 1"},
		{"two documents", item + "---\na: b\n", "line 3, column 1"},
		{"after the end", item + "...\na: b\n", "line 4, column 1"},
		{"a mark", "\uFEFFa: b\n", "line 1, column 1"},
		{"brackets", item + "    x: " + strings.Repeat("[", 10_000) + "\n", "line 3, column 72"},
		{"dashes", item + "    x:\n      " + strings.Repeat("- ", 1000) + "\n", "line 4, column 135"},
		{"no YAML", item + "    x: \"open\n", "line 3, column 8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := fromYAML(strings.NewReader(c.in), io.Discard)
			if f, ok := errors.AsType[*millrace.FormatError](err); !ok || f.Position != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	for name, in := range map[string]string{
		"line": item + "    x: " + strings.Repeat("a", maxYAMLPart),
		"page": item + strings.Repeat("    # a comment\n", maxYAMLPart/10),
		"head": strings.Repeat("# a comment\n", maxYAMLPart/10),
	} {
		if err := fromYAML(strings.NewReader(in), io.Discard); !errors.Is(err, millrace.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is sent to bring down a parser takes no longer than what is not.
func TestFromYAMLTime(t *testing.T) {
	size := 32 << 10
	if testing.Short() {
		size = 4 << 10
	}
	for name, unit := range map[string]string{
		"words": "word ", "brackets": "[", "closed": "[]", "braces": "{a: ", "dashes": "- ", "keys": "? ", "colons": "a: ", "quotes": `"`, "apostrophes": "'",
		"anchors": "&a ", "aliases": "*a ", "tags": "!a ", "tags without names": "!", "bars": "|", "hashes": "#", "commas": ",", "lines": "\n      - a", "deeper": "\n      a:", "empty": "\n      - ", "tabs": "\t", "percents": "%", "escapes": `\u0041`,
		"flow": "\n      [", "pairs": "\n      a: b", "literals": "\n      - |\n        a",
	} {
		in := "pages:\n  - a: " + strings.Repeat(unit, size/len(unit)) + "\n"
		began := time.Now()
		err := fromYAML(strings.NewReader(in), io.Discard)
		if d := time.Since(began); d > 3*time.Second {
			t.Errorf("%s: %s (%.100v)", name, d, err)
		} else if testing.Verbose() {
			t.Logf("%s: %s (%.100v)", name, d, err)
		}
	}
}

// manyYAML is a list that does not end.
type manyYAML struct {
	n   int
	buf []byte
}

func (m *manyYAML) Read(p []byte) (int, error) {
	if len(m.buf) == 0 {
		if m.n == 0 {
			m.buf = []byte(yamlHead + "pages:\n")
		}
		m.n++
		m.buf = fmt.Appendf(m.buf, "  - url: https://example.com/%d\n    ai_indexable: true\n    ai_tags: [a, b]\n", m.n)
	}
	n := copy(p, m.buf)
	m.buf = m.buf[n:]
	return n, nil
}

func TestFromYAMLInFlatMemory(t *testing.T) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, peak := m.HeapAlloc, uint64(0)
	n := 0
	w := writerFunc(func(p []byte) (int, error) {
		if n++; n%16 == 0 {
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc-min(before, m.HeapAlloc))
		}
		return len(p), nil
	})
	in := &bounded{r: &manyYAML{}, limit: 1 << 18}
	if err := fromYAML(in, w); !errors.Is(err, millrace.ErrTooLarge) {
		t.Error(err)
	}
	if peak > 16<<20 {
		t.Errorf("%d bytes were held", peak)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// What is read in parts is what is read at once.
func FuzzFromYAML(f *testing.F) {
	f.Add([]byte(yamlHead + "pages:\n  - url: https://example.com/a\n    ai_indexable: true\n    ai_tags: [a, \"b\"]\ncrawl_rate: 1/s\n"))
	f.Add([]byte("---\npages:\n- a: |\n    b\n\n   # c\n- 'd': >\n   e\n...\n"))
	f.Add([]byte("pages: &a\n  - *a\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 4<<10 {
			t.Skip("it takes too long")
		}
		var out bytes.Buffer
		if fromYAML(bytes.NewReader(in), &out) != nil {
			return
		}
		got, err := jsonio.Canonical(out.Bytes(), nil)
		// Two members of one name, and a number that no double holds, are for the
		// decoder of lists to refuse.
		if err != nil && !json.Valid(out.Bytes()) {
			t.Fatalf("%q gives %q: %v", in, out.Bytes(), err)
		}
		if err != nil || bytes.Contains(in, []byte("---")) || bytes.Contains(in, []byte("...")) || bytes.HasPrefix(in, []byte("%")) {
			return
		}
		p := part{text: in, first: 1}
		node, err := p.parse()
		if err != nil {
			return // a part alone may be right where it is not in the whole
		}
		if node == nil {
			node = &ast.MappingNode{}
		}
		d := yamlEncoder{part: &p, top: true}
		whole, err := d.append(nil, node, 0)
		if err != nil {
			return
		}
		want, err := jsonio.Canonical(whole, nil)
		if err == nil && !bytes.Equal(bytes.Replace(want, []byte(`"pages":null`), []byte(`"pages":[]`), 1), got) {
			t.Errorf("%q gives %s in parts, and %s at once", in, got, want)
		}
	})
}
