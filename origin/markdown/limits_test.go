package markdown

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
)

// TestMonsters converts texts that are expensive to parse. Without limits, each of them took
// minutes or overflowed the stack.
func TestMonsters(t *testing.T) {
	if testing.Short() {
		t.Skip("testing.Short: long documents in every dialect")
	}
	n := testkit.Size(0, 4_000, 20_000)
	var stairs strings.Builder
	for i := range 250 {
		stairs.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	all := dialects(t)
	for name, in := range map[string]string{
		"quotes": strings.Repeat(">", n) + " end", "quotes with spaces": strings.Repeat("> ", n) + "end",
		"lists": strings.Repeat("- ", n) + "end", "numbers": strings.Repeat("1. ", n) + "end", "both": strings.Repeat("> - ", n) + "end",
		"stairs": stairs.String() + "\nend", "empty lines in stairs": stairs.String() + strings.Repeat(" ", 400) + "```\n" + strings.Repeat("\n", n) + "\n```\n\nend",
		"containers": strings.Repeat(":::note\n", n/8) + "end", "admonitions": strings.Repeat("!!! note\n    ", 200) + "end",
		"emphasis": strings.Repeat("*a_ ", n/4) + "end", "links": strings.Repeat("[a](", n/4) + "end", "angles": strings.Repeat("[a](<", n/5) + "end",
		"references": "[a]: " + strings.Repeat("b", n/2) + "\n\n" + strings.Repeat("[a]", n/6) + "end", "definitions": strings.Repeat("[a]: b\n", n/7) + "\nend",
		"table":     "|" + strings.Repeat("a|", 200) + "\n|" + strings.Repeat("-|", 200) + "\n" + strings.Repeat("|\n", n/2) + "\nend",
		"footnotes": strings.Repeat("[^a]: x\n\n", n/9) + "end", "ticks": strings.Repeat("`a``b", n/5) + "end", "dollars": strings.Repeat("$$a\n", n/4) + "\nend",
		"shortcodes": strings.Repeat("{{< a ", n/6) + "end", "tags": strings.Repeat("{% a {{ b ", n/10) + "end", "components": strings.Repeat("<A {b ", n/6) + "\n\nend",
		"raw": "a " + strings.Repeat("<b>", n/3) + "end", "videos": "a " + strings.Repeat("<video>", n/7) + "end",
	} {
		for _, s := range all {
			blocks, err := convertIn(t, s, "a.md", in)
			if err != nil {
				t.Fatalf("%s in %s: %v", name, s.kind, err)
			}
			check(t, blocks, 0)
			if text := millrace.Text(blocks); !utf8.ValidString(text) || !strings.Contains(text, "end") {
				t.Errorf("%s in %s: the end is lost", name, s.kind)
			}
		}
	}
}

// Without a limit, many lists nested in one line took minutes.
func TestDeepYAML(t *testing.T) {
	for in, ok := range map[string]bool{
		"a:\n" + strings.Repeat("- ", 500_000) + "x\n": false, "a: " + strings.Repeat("- ", 500_000) + "x\n": false,
		strings.Repeat("? ", 500_000) + "x\n": false, strings.Repeat("  - -\n", 30): true, "a:\n" + strings.Repeat("- ", 40) + "x\n": true,
	} {
		_, err := decodeYAML([]byte(in))
		if deep := millrace.ErrorCode(err) == "front-matter-depth"; deep == ok {
			t.Errorf("%.20q: %v", in, err)
		}
	}
}

func TestLimits(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"big.md": strings.Repeat("x", 3000), "lines.md": strings.Repeat("\n", 1_000_001), "a.md": "x"})
	f := open(t, dir, &Options{MaxFile: 2000})
	if w := walkAll(t, f); !errors.Is(w.skipped["/big.md"], millrace.ErrTooLarge) {
		t.Errorf("skipped %v", w.skipped)
	}
	f = open(t, dir, nil)
	if _, err := f.Page(t.Context(), millrace.Ref{URL: "/lines.md"}); !errors.Is(err, millrace.ErrTooLarge) {
		t.Errorf("a million lines: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Page(ctx, millrace.Ref{URL: "/a.md"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a page whose context has ended: %v", err)
	}
}
