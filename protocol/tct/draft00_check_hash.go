package tct

import (
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
)

func checkTag(p *seenPage, fail check.Fail) bool {
	if !p.OK() {
		return false
	}
	if p.Tag == "" {
		fail(p.MURL, "ETag: "+p.Resp.Header.Get("ETag"), `ETag: "`+wantedTag(p)+`"`)
	}
	return true
}

// wantedTag returns the tag that the page should have. If it is unknown, wantedTag returns the
// prefix of a tag and "…".
func wantedTag(p *seenPage) string {
	if content, ok := check.JSONText(p.Fields["content"]); ok {
		return hashPrefix + fingerprintOf(content)
	}
	return hashPrefix + "…"
}

func checkStrongTag00(p *seenPage, fail check.Fail) bool {
	if !p.OK() || p.Tag == "" {
		return false
	}
	if got := p.Resp.Header.Get("ETag"); got != `"`+p.Tag+`"` || strings.ContainsAny(p.Tag, "\" \t") {
		fail(p.MURL, "ETag: "+got, `ETag: "`+p.Tag+`"`)
	}
	return true
}

func checkTagPrefix(p *seenPage, fail check.Fail) bool {
	if !p.OK() || p.Tag == "" {
		return false
	}
	if !strings.HasPrefix(p.Tag, hashPrefix) {
		fail(p.MURL, "ETag: "+p.Resp.Header.Get("ETag"), `ETag: "`+hashPrefix+`…"`)
	}
	return true
}

func checkTagDigits(p *seenPage, fail check.Fail) bool {
	digits, ok := strings.CutPrefix(p.Tag, hashPrefix)
	if !p.OK() || !ok {
		return false
	}
	if !isDigits(digits) {
		fail(p.MURL, "ETag: "+p.Resp.Header.Get("ETag"), "64 hexadecimal digits after "+hashPrefix)
	}
	return true
}

// checkFingerprint checks the hash of a document's content. It also accepts the results of two bugs
// in the draft's example, which publishers may have copied: in some programming languages, the
// example lowercases only ASCII, and it replaces only the first quotation marks.
func checkFingerprint(p *seenPage, fail check.Fail) bool {
	content, ok := check.JSONText(p.Fields["content"])
	digits := strings.TrimPrefix(p.Hash, hashPrefix)
	if !ok || !isDigits(digits) && !isHash(p.Tag) {
		return false
	}
	for _, text := range []string{canon.NormalizeLower(content), lowASCII(content), firstQuotes(content)} {
		want := canon.SHA256Hex([]byte(text))
		if strings.EqualFold(digits, want) || strings.EqualFold(p.Tag, hashPrefix+want) {
			return true // hash-equals-etag reports whether the other hash differs
		}
	}
	got := p.Hash
	if got == "" {
		got = p.Tag
	}
	fail(p.MURL, got, fingerprintOf(content)+", the hash of the normalized content")
	return true
}

// lowASCII normalizes s and lowercases only its ASCII letters.
func lowASCII(s string) string {
	s = strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
	return quotes.Replace(strings.Join(strings.Fields(s), " "))
}

// firstQuotes normalizes s and replaces only its first quotation marks.
func firstQuotes(s string) string {
	s = strings.Join(strings.Fields(strings.ToLower(s)), " ")
	for _, pair := range [][2]string{{"\u201C\u201D", `"`}, {"\u2018\u2019", "'"}} {
		if i := strings.IndexAny(s, pair[0]); i >= 0 {
			s = s[:i] + pair[1] + s[i+len("\u201C"):]
		}
	}
	return s
}

var quotes = strings.NewReplacer("\u201C", `"`, "\u201D", `"`, "\u2018", "'", "\u2019", "'")

// Forms of a document's hash, which may start with "sha256-", and of its ETag.
var (
	hashes00 = hashForm{func(s string) bool { return isDigits(strings.TrimPrefix(s, hashPrefix)) }, "64 hexadecimal digits"}
	tags00   = hashForm{isHash, "sha256- and 64 hexadecimal digits"}
)

func rightIn00(p *seenPage, value string) bool {
	return isFingerprint(kit.Text(p.Fields["content"]), value)
}
