package canon

import (
	"html"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// The vectors of draft-01, Appendix A. The text file wraps its lines; the inputs of 2,
// 3, 17 and 19 have the spaces and quotes that match the hashes.
func TestNormalizeVectors(t *testing.T) {
	const helloWorld = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for _, v := range []struct{ name, in, want, hash string }{
		{"1", "Hello World", "hello world", helloWorld},
		{"2", "  Hello World  ", "hello world", helloWorld},
		{"3", "Hello    World", "hello world", helloWorld},
		{"4", "Hello &amp; goodbye", "hello & goodbye", "da73536eaa9c427f3189de5b6371d798193e98f3c31df8bef710bba835e8c621"},
		{"5", "&lt;tag&gt;", "<tag>", "c81ef880af0fcfef49e1b45c3690a1666c47d9e064b7eaead2af09bb78884dcd"},
		{"6", "&quot;quoted&quot;", `"quoted"`, "272fca25899893eeb27b89583d5c81b8a4ac5af4d1e37e3909d879947303c1c5"},
		{"7", "Caf\u00e9", "caf\u00e9", "850f7dc43910ff890f8879c0ed26fe697c93a067ad93a7d50f466a7028a9bf4e"},
		{"7b", "Cafe\u0301", "caf\u00e9", "850f7dc43910ff890f8879c0ed26fe697c93a067ad93a7d50f466a7028a9bf4e"},
		{"8", "ＨＥＬＬＯ", "hello", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},
		{"9", "Straße", "strasse", "16d96952087774fee069b7585d3991b24d90c181c09b2129b4908c35baa7f0c0"},
		{"10", "İstanbul", "i\u0307stanbul", "4a4df120f7d1f3c286f58651abfcec2aade892ace635f96f02b946c96e6e1f86"},
		{"11", "Hello\tWorld", "hello world", helloWorld},
		{"12", "Hello\nWorld", "hello world", helloWorld},
		{"13", "Hello\u0007World", "helloworld", "936a185caaa266bb9cbe981e9e05cb78cd732b0b3280eb944412bb6f8f8f07af"},
		{"14", "Hello\u00a0World", "hello world", helloWorld},
		{"15", "Hello \t\n World", "hello world", helloWorld},
		{"16", "", "", empty},
		{"17", "   ", "", empty},
		{"18", "A", "a", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
		{"19", `The café's "special" offer: 50% off!`, `the café's "special" offer: 50% off!`, "25cdbe2315674d38ddaf1df6fe7ccd494ce89efebe8a3b5285742e57e7367545"},
		{"20", "Cliché &amp; résumé", "cliché & résumé", "7d56f360edd22f7be0bc0f126d45481df83e8afc68b83788cf37544c4ee6ce21"},
	} {
		got := Normalize(html.UnescapeString(v.in))
		if got != v.want {
			t.Errorf("vector %s: Normalize(%q) = %q, want %q", v.name, v.in, got, v.want)
		}
		if h := SHA256Hex([]byte(got)); h != v.hash {
			t.Errorf("vector %s: hash %s, want %s", v.name, h, v.hash)
		}
	}
}

func TestNormalize(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"references stay unchanged", "&amp; &lt;", "&amp; &lt;"},
		{"delete and C1 controls", "a\x7fb\u0085c\u009fd é", "abcd é"},
		{"control between spaces", "a \u0007 b \u0085 é", "a b é"},
		{"controls at the ends", "\u0000 a \u0001", "a"},
		{"NBSP runs", "\u00a0\u00a0é\u00a0 \u00a0x\u00a0", "é x"},
		{"ideographic and em space", "a\u3000b\u2003c", "a b c"},
		{"line separator stays", "a\u2028b", "a\u2028b"},
		{"not UTF-8", "A\xff\xfeB", "a\ufffd\ufffdb"},
		{"cut character", "é\xe2\x82", "é\ufffd\ufffd"},
		{"upper-case Cherokee stays", "\u13a0\u13f5x\u13a1", "\u13a0\u13f5x\u13a1"},
		{"lower-case Cherokee folds to it", "\uab70\uabbf\u13f8\u13fd", "\u13a0\u13ef\u13f0\u13f5"},
		{"Cherokee among others", "STRASSE ß \u13a0 É \uab70", "strasse ss \u13a0 é \u13a0"},
		{"final sigma", "ΣΑΣ", "σασ"},
		{"ligature", "ﬁn", "fin"},
		{"ASCII and other folding agree", "AZ[`az{@", "az[`az{@"},
	} {
		if got := Normalize(c.in); got != c.want {
			t.Errorf("%s: Normalize(%q) = %q, want %q", c.name, c.in, got, c.want)
		}
	}
}

// All letters of one orbit of simple case folding must fold to one string.
func TestFoldOrbits(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || r == 'ı' || r == 'İ' {
			continue
		}
		next := unicode.SimpleFold(r)
		a, b := fold(string(r)), fold(string(next))
		// U+1E9E folds to "ss" like ß: both orbits share it.
		if a != b {
			t.Errorf("U+%04X folds to %q, U+%04X of the same orbit to %q", r, a, next, b)
		}
		if again := fold(a); again != a {
			t.Errorf("U+%04X folds to %q, which folds to %q", r, a, again)
		}
	}
}

// The fast path for ASCII returns the same result as the slow path.
func TestNormalizeASCII(t *testing.T) {
	var all strings.Builder
	for c := range byte(0x80) {
		all.WriteString("x" + string(rune(c)) + " " + string(rune(c)) + "\t")
	}
	s := all.String()
	if got, want := Normalize(s), collapse(fold(norm.NFKC.String(s)), false); got != want {
		t.Errorf("fast path %q, slow path %q", got, want)
	}
}

func FuzzNormalize(f *testing.F) {
	for _, s := range []string{"", " A\u00a0b ", "\u13a0ß\uab70", "\xff\x00", "e\u0301\u0345", "&amp;&#x80;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Normalize(html.UnescapeString(s))
		if !utf8.ValidString(got) {
			t.Fatalf("%q: not UTF-8: %q", s, got)
		}
		for _, r := range got {
			if unicode.Is(unicode.Cc, r) || r == 0xA0 {
				t.Fatalf("%q: %U remains in %q", s, r, got)
			}
		}
		if strings.Contains(got, "  ") || strings.Trim(got, " ") != got {
			t.Fatalf("%q: spaces remain in %q", s, got)
		}
	})
}

func BenchmarkNormalize(b *testing.B) {
	for name, unit := range map[string]string{
		"ascii":  "The quick brown fox jumps over the Lazy dog. ",
		"polish": "Zażółć gęślą jaźń, a potem śpij Spokojnie. ",
	} {
		text := strings.Repeat(unit, 200)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Normalize(text)
			}
		})
	}
}

func TestNormalizeLower(t *testing.T) {
	for _, c := range [][2]string{
		{"", ""},
		{" \t\r\n\v\f", ""},
		{" Hello \t\n World ", "hello world"},
		{"A\u00a0\u2003B\u0085C\u2028D\u3000E\u200bF\ufeffG", "a b c d e\u200bf\ufeffg"},
		{"\u201cIt\u2019s\u201d \u2018so\u2019 \u201elow\u00bb", "\"it's\" 'so' \u201elow\u00bb"},
		{"ÄÖÜ Straße İ ＨＥＬＬＯ", "äöü straße i\u0307 ｈｅｌｌｏ"},
		{"ΟΔΥΣΣΕΥΣ ΣΑΣ.", "οδυσσευς σας."}, // full lower-casing handles the last letter of a word
		{"Ꭰ Ა", "ꭰ ა"},
		{"cafe\u0301 ﬁ", "cafe\u0301 ﬁ"}, // not in NFKC
		{"a\xffb", "a\ufffdb"},
		{"a\x00b\x1cc", "a\x00b\x1cc"},
	} {
		if got := NormalizeLower(c[0]); got != c[1] {
			t.Errorf("%q is %q, want %q", c[0], got, c[1])
		}
	}
	// The tables of the standard library and those of full lower-casing agree.
	full := cases.Lower(language.Und)
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || unicode.IsSpace(r) || 0x2018 <= r && r <= 0x201D {
			continue
		}
		s := "a" + string(r) + "B" + string(r)
		if got, want := NormalizeLower(s), full.String(s); got != want {
			t.Errorf("%U: %q is %q, want %q", r, s, got, want)
		}
	}
}

func FuzzNormalizeLower(f *testing.F) {
	f.Add("\u201cHello\u00a0 World\u201d \u03a3")
	f.Fuzz(func(t *testing.T, s string) {
		got := NormalizeLower(s)
		if !utf8.ValidString(got) || strings.Join(strings.Fields(got), " ") != got || strings.ContainsAny(got, "\u2018\u2019\u201c\u201d") {
			t.Errorf("%q is %q", s, got)
		}
		if full := cases.Lower(language.Und).String(ValidUTF8(s)); NormalizeLower(full) != got && !strings.ContainsAny(s, "\u03a3") {
			t.Errorf("%q is %q, but %q if it was lower-cased before", s, got, NormalizeLower(full))
		}
		if again := NormalizeLower(got); again != got && !strings.ContainsAny(got, "\u03c3\u03c2") {
			t.Errorf("%q is %q, but %q after a second call", s, got, again)
		}
	})
}

func TestFolderName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"docs": "Docs", "getting-started": "Getting started", "a_b--c": "A b c", "%C3%A9t%C3%A9": "Été", "v1.2": "V1.2", "-": "-", "": "", "%zz": "%zz",
	} {
		if got := FolderName(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
