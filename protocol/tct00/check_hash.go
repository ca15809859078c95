package tct00

import (
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tct"
)

func checkTag(p *seenPage, fail check.Fail) bool {
	if !p.ok() {
		return false
	}
	if p.tag == "" {
		fail(p.murl, "ETag: "+p.resp.Header.Get("ETag"), `ETag: "`+p.wanted()+`"`)
	}
	return true
}

// wanted gives the tag that the page should have, as far as it is known.
func (p *seenPage) wanted() string {
	if content, ok := jsonText(p.fields["content"]); ok {
		return tct.HashPrefix + tct.Fingerprint(content)
	}
	return tct.HashPrefix + "…"
}

func checkStrongTag(p *seenPage, fail check.Fail) bool {
	if !p.ok() || p.tag == "" {
		return false
	}
	if got := p.resp.Header.Get("ETag"); got != `"`+p.tag+`"` || strings.ContainsAny(p.tag, "\" \t") {
		fail(p.murl, "ETag: "+got, `ETag: "`+p.tag+`"`)
	}
	return true
}

func checkTagPrefix(p *seenPage, fail check.Fail) bool {
	if !p.ok() || p.tag == "" {
		return false
	}
	if !strings.HasPrefix(p.tag, tct.HashPrefix) {
		fail(p.murl, "ETag: "+p.resp.Header.Get("ETag"), `ETag: "`+tct.HashPrefix+`…"`)
	}
	return true
}

func checkTagDigits(p *seenPage, fail check.Fail) bool {
	digits, ok := strings.CutPrefix(p.tag, tct.HashPrefix)
	if !p.ok() || !ok {
		return false
	}
	if !isDigits(digits) {
		fail(p.murl, "ETag: "+p.resp.Header.Get("ETag"), "64 hexadecimal digits after "+tct.HashPrefix)
	}
	return true
}

func checkHashForm(p *seenPage, fail check.Fail) bool {
	if p.fields == nil {
		return false
	}
	if !isDigits(p.digits()) {
		fail(p.murl, "hash: "+shown(p.fields["hash"]), "64 hexadecimal digits")
	}
	return true
}

// digits gives the hash without its prefix, which some write and some do not.
func (p *seenPage) digits() string { return strings.TrimPrefix(p.hash, tct.HashPrefix) }

func checkHashEqualsTag(p *seenPage, fail check.Fail) bool {
	if !isDigits(p.digits()) || !isHash(p.tag) {
		return false
	}
	if !strings.EqualFold(tct.HashPrefix+p.digits(), p.tag) {
		want := "one value for both"
		switch content, _ := jsonText(p.fields["content"]); {
		case tct.IsFingerprint(content, p.hash):
			want += ": the hash is the right one"
		case tct.IsFingerprint(content, p.tag):
			want += ": the ETag is the right one"
		}
		fail(p.murl, "hash "+p.hash+", ETag "+p.tag, want)
	}
	return true
}

// checkFingerprint takes the content as the document has it. The draft's
// example hides two slips that others may have repeated: it lowers no more
// than ASCII in some languages, and replaces only the first quotation marks.
func checkFingerprint(p *seenPage, fail check.Fail) bool {
	content, ok := jsonText(p.fields["content"])
	if !ok || !isDigits(p.digits()) && !isHash(p.tag) {
		return false
	}
	for _, text := range []string{canon.NormalizeLower(content), lowASCII(content), firstQuotes(content)} {
		want := canon.SHA256Hex([]byte(text))
		if strings.EqualFold(p.digits(), want) || strings.EqualFold(p.tag, tct.HashPrefix+want) {
			return true // if the other one differs, that is hash-equals-etag
		}
	}
	got := p.hash
	if got == "" {
		got = p.tag
	}
	fail(p.murl, got, tct.Fingerprint(content)+", of the normalized content")
	return true
}

// lowASCII is the normalization with letters lowered in ASCII alone.
func lowASCII(s string) string {
	s = strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
	return quotes.Replace(strings.Join(strings.Fields(s), " "))
}

// firstQuotes is the normalization with the first quotation marks replaced.
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
