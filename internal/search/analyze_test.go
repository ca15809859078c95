package search

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// formatTerms returns the terms of a text, with "*" after an extra form and "." after a stop word.
func formatTerms(a *Analyzer, text, lang string) string {
	var out []string
	for t := range a.Tokens(text, lang) {
		s := t.Term
		if t.Extra {
			s += "*"
		}
		if t.Stop {
			s += "."
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestTokens(t *testing.T) {
	for _, c := range []struct{ lang, text, want string }{
		{"en", "", ""},
		{"en", " \t\n\x00\x1b[2J ", "2j"},
		{"en", "The running dogs' owners don't run.", "the. run dog owner dont. run"},
		{"en-GB", "Running", "run"},
		{"", "Running", "run"},
		{"und", "dog's DOG’S", "dog dog"},
		// Names in programs are found as a whole and by their parts.
		{"en", "max_connections", "max connect maxconnect*"},
		{"en", "foo.Bar()", "foo bar foobar*"},
		{"en", "std::vector Foo\\Bar", "std vector stdvector* foo bar foobar*"},
		{"en", "C++ and C# or c++.", "c cplusplus and. c csharp or. c cplusplus"},
		{"en", "a+b page#top", "a. b page top"},
		{"en", "getElementById HTTPServerError", "get element by. id getelementbyid* http server error httpservererror*"},
		{"en", "JavaScript iPhone URLs", "javascript iphon url"},
		{"en", "__init__ --help", "init help"},
		// Numbers: 1.23 is not 12.3, but 1,000,000 is one number.
		{"en", "v1.2.3 v12.3", "v1 2 3 v1ꞏ2ꞏ3* v12 3 v12ꞏ3*"},
		{"en", "1,000,000 3.14 10,20", "1000000 3 14 3ꞏ14* 10 20 10ꞏ20*"},
		{"en", "2024-01-15 12:30", "2024 01 15 20240115* 12 30 1230*"},
		{"en", "x² ½ Ⅷ ①", "x2 12 viii 1"},
		// Compounds.
		{"en", "e-mail email", "e mail email* email"},
		{"en", "state-of-the-art", "state of. the. art"},
		{"en", "AT&T O'Brien", "at. t att* o brien obrien*"},
		{"en", "me@example.com", "me. exampl com meexamplecom*"},
		{"en", "see https://example.com/docs/a.html.", "see exampl com examplecom* doc a. html ahtml* examplecomdocsahtml*"},
		{"en", "https:// http://localhost", "localhost"},
		{"en", "wait...what and/or", "wait what. and. or."},
		// Compatible letters are equal, and accents are ignored.
		{"en", "Ｆｕｌｌ ﬁle CAFÉ cafe\u0301", "full file cafe cafe"},
		{"en", "co\u00adop\u00aderate zero\u200bwidth", "cooper zero width"},
		{"de", "Häuser Straße STRASSE Übergrößen", "haus strass strass ubergross"},
		{"fr", "L'homme qu’il aime l’hiver", "l. homm qu. il. aim l. hiv"},
		{"it", "dell'acqua", "dell. acqua"},
		{"es", "canción canciones", "cancion cancion"},
		{"pt", "informação informações", "inform inform"},
		{"nl", "lopende honden", "lopend hond"},
		{"tr", "IŞIK İstanbul'da", "isik istanbul da. istanbul*"},
		{"pl", "książka książkami", "ksiazk ksiazk"},
		{"vi", "tiếng Việt", "tieng viet"},
		{"ru", "книги книгами ёлка Python", "книг книг елк python"},
		{"uk", "книги книгами", "книг книг"},
		{"el", "άνθρωπος ανθρώπου", "ανθρωπ ανθρωπ"},
		{"ar", "الكتاب كتاب", "كتاب كتاب"},
		{"he", "צה״ל שָׁלוֹם", "צהל שלום"},
		{"fa", "می\u200cخواهم", "ميخواهم"},
		{"hi", "हिन्दी भाषा", "हिन्दी भाषा"},
		{"ta", "தமிழ்", "தமிழ்"},
		// Scripts without spaces: pairs of letters.
		{"ja", "東京タワー", "東京 京タ タワ ワー ー*"},
		{"ja", "Python入門", "python 入門 門*"},
		{"ja", "ｶﾞｲﾄﾞ", "ガイ イド ド*"},
		{"zh", "水。水", "水 水"},
		{"ko", "안녕 세계", "안녕 녕* 세계 계*"},
		{"th", "ง่าย ๑๒", "ง่า าย ย* ๑๒"},
		{"km", "ខ្មែរ", "ខ្មែរ រ*"},
		{"my", "မြန်မာ", "မြန် န်မာ မာ*"},
		{"en", "😀 ❤️ 👩\u200d👩\u200d👧", ""},
		{"en", "a\xffb \xf0\x9f", "a. b"},
	} {
		if got := formatTerms(NewAnalyzer(), c.text, c.lang); got != c.want {
			t.Errorf("%s %q:\n got %s\nwant %s", c.lang, c.text, got, c.want)
		}
	}
}

// The term of a word does not depend on the words analyzed before.
func TestTokensAgain(t *testing.T) {
	a := NewAnalyzer()
	text := "The running of C++ programs, e-mail"
	first := formatTerms(a, text, "en")
	var words strings.Builder
	for i := range 3 * maxLexicon {
		fmt.Fprintf(&words, "word%d ", i)
	}
	for range a.Tokens(words.String(), "en") {
	}
	if n := len(a.lexicon("en").young) + len(a.lexicon("en").old); n > 2*maxLexicon {
		t.Errorf("%d words are cached", n)
	}
	if d := cmp.Diff(first, formatTerms(a, text, "en")); d != "" {
		t.Error(d)
	}
	if a.lexicon("tlh") != a.lexicon("qya") || a.lexicon("ja") != a.lexicon("zh-Hant") {
		t.Error("unknown languages do not share a lexicon")
	}
}

// A single word may be as long as the page.
func TestTokensLong(t *testing.T) {
	a := NewAnalyzer()
	long := strings.Repeat("x", 5<<20)
	var terms []string
	for _, text := range []string{long + "1", long + "2", long[:MaxTerm+1], long[:MaxTerm], strings.Repeat("é", 600)} {
		for tok := range a.Tokens(text, "en") {
			terms = append(terms, tok.Term)
			if len(tok.Term) > MaxTerm || tok.Start != 0 || tok.End != len(text) {
				t.Errorf("term of %d bytes from %d to %d of %d", len(tok.Term), tok.Start, tok.End, len(text))
			}
		}
	}
	for i, term := range terms {
		for _, o := range terms[:i] {
			if term == o {
				t.Errorf("two long words have the same term %s", term)
			}
		}
	}
	n := 0
	for range a.Tokens(strings.Repeat("a.", 1<<20), "en") {
		n++
	}
	if want := 1<<20 + 1<<20/maxParts; n != want {
		t.Errorf("%d terms of a long chain, want %d", n, want)
	}
}

// The caller may stop at any term, even inside a compound.
func TestTokensStop(t *testing.T) {
	a := NewAnalyzer()
	const text = "https://example.com/getElementById foo_bar 東京タワー C++ O'Brien 1,000"
	var all []Token
	for tok := range a.Tokens(text, "en") {
		all = append(all, tok)
	}
	for n := range all {
		var got []Token
		for tok := range a.Tokens(text, "en") {
			if got = append(got, tok); len(got) == n+1 {
				break
			}
		}
		if d := cmp.Diff(all[:n+1], got); d != "" {
			t.Fatal(d)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, s := range []string{"foo.Bar() C++ 東京タワー", "L'homme \xff qu’", "https://a.b/c?d=é", "ខ្មែរ ｶﾞ صلى", "İIıi ß ς"} {
		for _, lang := range []string{"en", "fr", "tr", "ja", "xx-YY"} {
			f.Add(s, lang)
		}
	}
	f.Fuzz(func(t *testing.T, text, lang string) {
		a := NewAnalyzer()
		var first []Token
		for tok := range a.Tokens(text, lang) {
			first = append(first, tok)
			if tok.Start < 0 || tok.Start >= tok.End || tok.End > len(text) {
				t.Fatalf("%q from %d to %d of %d", tok.Term, tok.Start, tok.End, len(text))
			}
			if tok.Term == "" || len(tok.Term) > MaxTerm || !utf8.ValidString(tok.Term) {
				t.Fatalf("term %q", tok.Term)
			}
			for _, r := range tok.Term {
				if !unicode.In(r, unicode.L, unicode.M, unicode.N) {
					t.Fatalf("%U in the term %q", r, tok.Term)
				}
			}
		}
		var again []Token
		for tok := range a.Tokens(text, lang) {
			again = append(again, tok)
		}
		if d := cmp.Diff(first, again); d != "" {
			t.Fatal(d)
		}
	})
}

func BenchmarkTokens(b *testing.B) {
	text := strings.Repeat(`When a client connects, the server's max_connections setting is looked at (see runtime.Config in v1.2.3).
		It might be that all of them are busy; then an error is returned to the caller, who should try again after 3.5 seconds. `, 100)
	a := NewAnalyzer()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		for range a.Tokens(text, "en") {
		}
	}
}
