package search

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// marked returns the snippet of a text for a question, with the marks as brackets.
func marked(t testing.TB, text, lang, question string) string {
	t.Helper()
	a := NewAnalyzer()
	terms := map[string]float64{}
	for tok := range a.Tokens(question, lang) {
		if !tok.Stop {
			terms[tok.Term] = 1
		}
	}
	s, marks := a.Snippet(text, lang, terms)
	check(t, s, marks)
	for i := len(marks) - 1; i >= 0; i-- {
		s = s[:marks[i][0]] + "[" + s[marks[i][0]:marks[i][1]] + "]" + s[marks[i][1]:]
	}
	return s
}

// check verifies the documented properties of a snippet.
func check(t testing.TB, s string, marks [][2]int) {
	t.Helper()
	if n := utf8.RuneCountInString(s); n > SnippetLength+2 {
		t.Errorf("the snippet has %d characters", n)
	}
	if !utf8.ValidString(s) || strings.ContainsAny(s, "\n\t\x00\x1b") || strings.Contains(s, "  ") {
		t.Errorf("snippet %q", s)
	}
	last := 0
	for i, m := range marks {
		if m[0] < last || m[1] <= m[0] || m[1] > len(s) || i > 0 && m[0] == last {
			t.Fatalf("marks %v of %d bytes", marks, len(s))
		}
		if last = m[1]; !utf8.ValidString(s[m[0]:m[1]]) {
			t.Errorf("mark %v cuts a character of %q", m, s)
		}
	}
}

const processes = "The server keeps a number of processes ready. When a client connects, one of them takes the connection and " +
	"answers it.\n\nIf there are more clients than processes, the others wait. The limit is set by max_connections, and a restart " +
	"is needed after it was changed. Running out of places shows as an error. Then the log says so. Nothing else is affected by " +
	"this, and clients may try again."

func TestSnippet(t *testing.T) {
	japanese := strings.Repeat("東京は日本の首都である。", 30) + "新幹線は速い。" + strings.Repeat("京都も古い都市です。", 30)
	for _, c := range []struct{ name, text, lang, question, want string }{
		{"empty", "", "en", "run", ""},
		{"whole", "I was\nrunning \t home. ", "en", "run", "I was [running] home."},
		{
			"forms of a word", processes, "en", "run error",
			"…The limit is set by max_connections, and a restart is needed after it was changed. [Running] out of places shows as an " +
				"[error]. Then the log says so. Nothing else is affected by this, and clients may try again.",
		},
		{
			"the best window", processes, "en", "max_connections restart",
			"…The limit is set by [max_connections], and a [restart] is needed after it was changed. Running out of places shows as an " +
				"error. Then the log says so. Nothing else is affected by this, and clients may try again.",
		},
		{
			"nothing found", processes, "en", "zebra",
			"The server keeps a number of processes ready. When a client connects, one of them takes the connection and answers it. " +
				"If there are more clients than processes, the others wait.…",
		},
		{
			"no spaces", japanese, "ja", "新幹線",
			"…[新幹線]は速い。" + strings.Repeat("京都も古い都市です。", 23) + "…",
		},
		{
			"right to left", strings.Repeat("هذا نص طويل. ", 30) + "هنا كتاب جديد.", "ar", "الكتاب",
			"…" + strings.TrimSpace(strings.Repeat("هذا نص طويل. ", 17)) + " هنا [كتاب] جديد.",
		},
		{"accents", "Un café, des cafés.", "fr", "CAFE", "Un [café], des [cafés]."},
		{"one long word", strings.Repeat("x", 1000) + " y", "en", strings.Repeat("x", 1000), "[" + strings.Repeat("x", 240) + "]…"},
	} {
		if got := marked(t, c.text, c.lang, c.question); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// One rare term outweighs several common ones.
func TestSnippetWeights(t *testing.T) {
	text := "common words here. " + strings.Repeat("filler text follows. ", 30) + "rare"
	s, marks := NewAnalyzer().Snippet(text, "en", map[string]float64{"common": 1, "word": 1, "rare": 3})
	if len(marks) != 1 || s[marks[0][0]:marks[0][1]] != "rare" {
		t.Errorf("snippet %q %v", s, marks)
	}
}

// The time is linear in the length of the text.
func TestSnippetLong(t *testing.T) {
	size := 5 << 20
	if testing.Short() {
		size = 1 << 19
	}
	start := time.Now()
	for _, unit := range []string{"word ", "a. ", "x", "東", "foo_bar.", "\n"} {
		text := strings.Repeat(unit, size/len(unit))
		s, marks := NewAnalyzer().Snippet(text, "en", map[string]float64{"word": 1, "a": 1, "東東": 1, "foobar": 1})
		check(t, s, marks)
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("six texts of %d bytes took %v", size, d)
	}
}

func FuzzSnippet(f *testing.F) {
	f.Add(processes, "en", "max_connections restart")
	f.Add("東京タワー。水", "ja", "京")
	f.Add("a\xff\x00b foo.Bar-baz", "en", "bar foo")
	f.Add(strings.Repeat("é ", 300), "fr", "e")
	f.Fuzz(func(t *testing.T, text, lang, question string) {
		marked(t, text, lang, question)
	})
}

func TestFingerprint(t *testing.T) {
	words := strings.Fields(processes)
	edit := func(n int) string {
		w := slices.Clone(words)
		for i := range n {
			w[i*13+5] = "other"
		}
		return strings.Join(w, " ")
	}
	a := Fingerprint(processes)
	for _, c := range []struct {
		name, text string
		near       bool
	}{
		{"itself", processes, true},
		{"different capitals and punctuation", strings.ToUpper(strings.ReplaceAll(processes, ".", " -")), true},
		{"one word of seventy", edit(1), true},
		{"five words of seventy", edit(5), false},
		{"another order", strings.Join(sorted(words), " "), false},
		{"its beginning", processes[:len(processes)/2], false},
		{"empty", "", false},
	} {
		if got := Near(a, Fingerprint(c.text)); got != c.near {
			t.Errorf("%s: near %v", c.name, got)
		}
	}
	for _, c := range []struct {
		a, b string
		near bool
	}{
		{"", "", false},
		{"!!", "", false},
		{"See also", "see ALSO:", true},
		{"See also", "See below", false},
		{"Returns the name of the file.", "Returns the size of the file.", false},
		{"東京は日本の首都である", "東京は日本の首都である。", true},
		{"東京は日本の首都である", "京都は日本の都市である", false},
	} {
		if got := Near(Fingerprint(c.a), Fingerprint(c.b)); got != c.near {
			t.Errorf("%q and %q: near %v", c.a, c.b, got)
		}
	}
}

func sorted(words []string) []string {
	return slices.Sorted(slices.Values(words))
}

// Unrelated texts of a few hundred words are never near. Texts that differ in one word of a
// hundred usually are.
func TestFingerprintSpread(t *testing.T) {
	text := func(seed, n, changed int) string {
		var b strings.Builder
		x := uint64(seed)
		for i := range n {
			x = spread(x)
			w := x % 500
			if changed > 0 && i%100 == changed {
				w += 500
			}
			b.WriteString("w" + strings.Repeat("o", int(w%7)) + string(rune('a'+w%26)) + string(rune('a'+w/26)) + " ")
		}
		return b.String()
	}
	var prints []uint64
	near := 0
	for seed := range 300 {
		a := Fingerprint(text(seed, 200, 0))
		prints = append(prints, a)
		if Near(a, Fingerprint(text(seed, 200, 50))) {
			near++
		}
	}
	for i, a := range prints {
		for _, b := range prints[:i] {
			if Near(a, b) {
				t.Fatalf("unrelated texts are near: %x and %x", a, b)
			}
		}
	}
	if near < 200 {
		t.Errorf("%d of 300 texts with two different words are near", near)
	}
}

func BenchmarkFingerprint(b *testing.B) {
	b.SetBytes(int64(len(processes)))
	for b.Loop() {
		Fingerprint(processes)
	}
}
