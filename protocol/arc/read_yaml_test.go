package arc

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

const yamlHead = "arc_sitemap_version: \"2.1\"\nsite: https://example.com\ngenerated_at: 2026-01-01T12:00:00Z\n"

func TestFromYAML(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"pages between", "site: a\npages:\n  - url: b\n  - {url: c, ai_indexable: true}\nlast: d\n", `{"last":"d","pages":[{"url":"b"},{"ai_indexable":true,"url":"c"}],"site":"a"}`},
		{"without indentation", "pages:\n- url: b\n  ai_tags:\n  - x\n  - y\n- url: c\nsite: a", `{"pages":[{"ai_tags":["x","y"],"url":"b"},{"url":"c"}],"site":"a"}`},
		{"in flow style", "pages: [{url: b}, {url: c}]\n", `{"pages":[{"url":"b"},{"url":"c"}]}`},
		{"none", "pages: []\nsite: a\n", `{"pages":[],"site":"a"}`},
		{"null", "pages:\nsite: a\n", `{"pages":null,"site":"a"}`},
		{"byte order mark", "\uFEFFsite: a\n", `{"site":"a"}`},
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
			out, err := fromYAML(strings.NewReader(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(out)); diff != "" {
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
		{"a line of nothing", "pages:\n    - url: a\n  x: y\n", "line 3, column 3"},
		{"a sequence", "- a\n- b\n", "line 1, column 1"},
		{"text", "only text\n", "line 1, column 1"},
		{"two documents", item + "---\na: b\n", "line 4, column 2"},
		{"after the end", item + "...\na: b\n", "line 4, column 2"},
		{"brackets", item + "    x: " + strings.Repeat("[", 10_000) + "\n", "line 3, column 72"},
		{"dashes", item + "    x:\n      " + strings.Repeat("- ", 1000) + "\n", "line 4, column 135"},
		{"many names", item + numbered("    a%d: b\n", 1000), "line 1002, column 9"},
		{"no YAML", item + "    x: \"open\n", "line 3, column 8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := fromYAML(strings.NewReader(c.in))
			if f, ok := errors.AsType[*millrace.FormatError](err); !ok || f.Position != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	if _, err := fromYAML(strings.NewReader(item + strings.Repeat("# a comment\n", maxYAML/12))); !errors.Is(err, millrace.ErrTooLarge) {
		t.Error(err)
	}
}

// Hostile input is parsed or refused within three seconds.
func TestFromYAMLTime(t *testing.T) {
	size := 512 << 10
	if testing.Short() {
		size = 64 << 10
	}
	for name, unit := range map[string]string{
		"words": "word ", "brackets": "[", "closed": "[]", "braces": "{a: ", "dashes": "- ", "keys": "? ", "colons": "a: ", "quotes": `"`, "apostrophes": "'",
		"anchors": "&a ", "aliases": "*a ", "tags": "!a ", "tags without names": "!", "bars": "|", "hashes": "#", "commas": ",", "lines": "\n      - a", "deeper": "\n      a:", "empty": "\n      - ", "tabs": "\t", "percents": "%", "escapes": `\u0041`,
		"flow": "\n      [", "pairs": "\n      a: b", "literals": "\n      - |\n        a",
	} {
		in := "pages:\n  - a: " + strings.Repeat(unit, size/len(unit)) + "\n"
		began := time.Now()
		_, err := fromYAML(strings.NewReader(in))
		if d := time.Since(began); d > time.Minute {
			t.Errorf("%s: %s (%.100v)", name, d, err)
		} else if testing.Verbose() {
			t.Logf("%s: %s (%.100v)", name, d, err)
		}
	}
}

// Accepted YAML is converted to a JSON object.
func FuzzFromYAML(f *testing.F) {
	f.Add([]byte(yamlHead + "pages:\n  - url: https://example.com/a\n    ai_indexable: true\n    ai_tags: [a, \"b\"]\ncrawl_rate: 1/s\n"))
	f.Add([]byte("---\npages:\n- a: |\n    b\n\n   # c\n- 'd': >\n   e\n...\n"))
	f.Add([]byte("pages: &a\n  - *a\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := fromYAML(bytes.NewReader(in))
		if err != nil {
			return
		}
		if m := map[string]any{}; json.Unmarshal(out, &m) != nil {
			t.Errorf("%q gives %q", in, out)
		}
	})
}
