package search

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

func TestParse(t *testing.T) {
	word := func(s string) Part { return Part{Text: s} }
	words := func(s string) (out []Part) {
		for w := range strings.FieldsSeq(s) {
			out = append(out, word(w))
		}
		return out
	}
	for _, c := range []struct {
		text string
		want []Part
	}{
		{"", nil},
		{" \t\n\u3000", nil},
		{"- -- * \" \"\" () 😀 ❤️ \x00\x1b \u0301", nil},
		{"a", words("a")},
		{"how how how", words("how how how")},
		{"foo -bar", []Part{word("foo"), {Text: "bar", Not: true}}},
		{`"two words" one`, []Part{{Text: "two words", Phrase: true}, word("one")}},
		{`-"two  words" one`, []Part{{Text: "two words", Phrase: true, Not: true}, word("one")}},
		{"„zwei Wörter“ «deux mots» “two words”", []Part{
			{Text: "zwei Wörter", Phrase: true}, {Text: "deux mots", Phrase: true}, {Text: "two words", Phrase: true},
		}},
		{"title:install url:/docs/ x", []Part{{Text: "install", Field: TitleField}, {Text: "/docs/", Field: URLField}, word("x")}},
		{`Title:"how to" -url:blog x`, []Part{
			{Text: "how to", Field: TitleField, Phrase: true}, {Text: "blog", Field: URLField, Not: true}, word("x"),
		}},
		// Text that is not valid syntax is read as words.
		{"title: url: x", words("title: url: x")},
		{`title:: -url:"" x`, []Part{word("title:"), {Text: "url:", Not: true}, word("x")}},
		{"author:me http://a.b/c", words("author:me http://a.b/c")},
		{"a AND b OR NOT c NEAR(d, 3) e*", words("a AND b OR NOT c NEAR(d, 3) e*")},
		{`say "hello world`, words(`say "hello world`)},
		{`5" and 3" disks`, words(`5" and 3" disks`)},
		{"x - y", words("x y")},
		{"git --help", words("git --help")},
		{"well-known", words("well-known")},
		{"{title} : x", words("{title} x")},
		{`'; DROP TABLE pages; --`, words("DROP TABLE pages;")},
		{`" OR 1=1 --`, words("OR 1=1")},
		// A query of exclusions alone searches for the word.
		{"-Wall", words("Wall")},
		{`-"a b" -title:c`, []Part{{Text: "a b", Phrase: true}, {Text: "c", Field: TitleField}}},
		{"-Wall 😀", words("Wall")},
		{"a\x00b\xffc", words("a b c")},
	} {
		if d := cmp.Diff(c.want, Parse(c.text).Parts); d != "" {
			t.Errorf("%q: %s", c.text, d)
		}
		if got := Parse(c.text).Empty(); got != (c.want == nil) {
			t.Errorf("%q is empty: %v", c.text, got)
		}
	}
}

// The limit is in characters, not bytes.
func TestParseLong(t *testing.T) {
	n := 0
	for _, p := range Parse(strings.Repeat("wört ", 10_000)).Parts {
		n += utf8.RuneCountInString(p.Text) + 1
	}
	if n != millrace.MaxQuery {
		t.Errorf("%d characters are read, want %d", n, millrace.MaxQuery)
	}
	if q := Parse(strings.Repeat(`"`, 100_000)); !q.Empty() {
		t.Errorf("punctuation is part of the query: %v", q)
	}
	if q := Parse(strings.Repeat(" ", millrace.MaxQuery) + "late"); !q.Empty() {
		t.Errorf("text after the limit is read: %v", q)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`foo -bar "a b" title:x -url:"/docs x"`, "title: - \" '", "“a” «b» „c“ 「d」", "NEAR/3 (x) ^y * -", "\x00 \xff -\xff", "-a -b", "title:title:x -",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q := Parse(text)
		wanted := 0
		for _, p := range q.Parts {
			if p.Text == "" || !utf8.ValidString(p.Text) || strings.ContainsFunc(p.Text, func(r rune) bool { return isGap(r) && r != ' ' }) {
				t.Fatalf("part %q", p.Text)
			}
			if !p.Phrase && strings.Contains(p.Text, " ") {
				t.Fatalf("word %q", p.Text)
			}
			if !p.Not {
				wanted++
			}
		}
		if wanted == 0 && !q.Empty() {
			t.Fatal("only exclusions")
		}
		if utf8.ValidString(text) && !q.Empty() != strings.ContainsFunc(head(text, millrace.MaxQuery), isStart) {
			t.Fatalf("empty: %v", q.Empty())
		}
	})
}
