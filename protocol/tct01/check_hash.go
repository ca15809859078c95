package tct01

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/tct"
)

func checkHashForm(p *seenPage, fail check.Fail) bool {
	if p.fields == nil {
		return false
	}
	if !tct.IsHash(p.hash) {
		fail(p.murl, "hash: "+shown(p.fields["hash"]), "sha256- and 64 lower-case hexadecimal digits")
	}
	return true
}

func checkStrongTag(p *seenPage, fail check.Fail) bool {
	if !p.ok() {
		return false
	}
	got := p.resp.Header.Get("ETag")
	if got == "" || strings.HasPrefix(got, "W/") {
		want := p.hash
		if !tct.IsHash(want) {
			want = "sha256-…"
		}
		fail(p.murl, "ETag: "+got, `ETag: "`+want+`"`)
	}
	return true
}

func checkQuotedTag(p *seenPage, fail check.Fail) bool {
	if !p.ok() || p.tag == "" {
		return false
	}
	got := strings.TrimPrefix(p.resp.Header.Get("ETag"), "W/")
	if got != `"`+p.tag+`"` || strings.ContainsAny(p.tag, "\" \t") {
		fail(p.murl, "ETag: "+got, `ETag: "`+p.tag+`"`)
	}
	return true
}

func checkTagForm(p *seenPage, fail check.Fail) bool {
	if !p.ok() || p.tag == "" {
		return false
	}
	if !tct.IsHash(p.tag) {
		fail(p.murl, "ETag: "+p.resp.Header.Get("ETag"), "sha256- and 64 lower-case hexadecimal digits, in quotes")
	}
	return true
}

func checkHashEqualsTag(p *seenPage, fail check.Fail) bool {
	if !p.ok() || !tct.IsHash(p.hash) || !tct.IsHash(p.tag) {
		return false
	}
	if p.hash != p.tag {
		want := "one value for both"
		switch p.sumJCS {
		case p.hash:
			want += ": the hash is the right one"
		case p.tag:
			want += ": the ETag is the right one"
		}
		fail(p.murl, "hash "+p.hash+", ETag "+p.tag, want)
	}
	return true
}

// claims reports whether the page's hash or tag is sum.
func (p *seenPage) claims(sum string) bool { return sum != "" && (p.hash == sum || p.tag == sum) }

func checkHash(p *seenPage, fail check.Fail) bool {
	if p.fields == nil || !utf8.Valid(p.body) || !tct.IsHash(p.hash) && !tct.IsHash(p.tag) {
		return false
	}
	if p.claims(p.sumJCS) || p.claims(p.sumCut) {
		return true // if the other one differs, that is hash-equals-etag
	}
	want := p.sumJCS
	if p.jcsErr != nil {
		want = p.sumCut
	}
	got := p.hash
	if !tct.IsHash(got) {
		got = p.tag
	}
	fail(p.murl, got, want)
	return true
}

// compact gives the body without insignificant white space.
func (p *seenPage) compact() ([]byte, bool) {
	var b bytes.Buffer
	err := json.Compact(&b, p.body)
	return b.Bytes(), err == nil
}

func checkNoSpace(p *seenPage, fail check.Fail) bool {
	if !p.ok() {
		return false
	}
	compact, ok := p.compact()
	if ok && len(compact) != len(p.body) {
		fail(p.murl, fmt.Sprintf("%d bytes, %d of them white space between tokens", len(p.body), len(p.body)-len(compact)), "none")
	}
	return ok
}

// mixesForms reports whether the tag is over RFC 8785 and not over the form
// that the body has.
func (p *seenPage) mixesForms() bool { return p.claims(p.sumJCS) && !p.claims(p.sumCut) }

// checkWireForm leaves a tag over a form of the publisher's own to checkJCS.
func checkWireForm(p *seenPage, fail check.Fail) bool {
	if p.fields == nil || p.jcsErr != nil || !p.claims(p.sumJCS) {
		return false
	}
	if compact, _ := p.compact(); !bytes.Equal(compact, p.jcs) && p.mixesForms() {
		got, want := difference(compact, p.jcs)
		fail(p.murl, "tag over RFC 8785, body with "+got, want)
	}
	return true
}

func checkJCS(p *seenPage, fail check.Fail) bool {
	compact, ok := p.compact()
	if !p.ok() || !ok || !utf8.Valid(p.body) {
		return false
	}
	if p.jcsErr != nil {
		fail(p.murl, p.jcsErr.Error(), "JSON that has a canonical form")
	} else if !bytes.Equal(compact, p.jcs) && !p.mixesForms() {
		got, want := difference(compact, p.jcs)
		fail(p.murl, got, want)
	}
	return true
}

// difference gives where two byte strings part, with a little of either.
func difference(a, b []byte) (string, string) {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	from := max(at-20, 0)
	cut := func(s []byte) string {
		return fmt.Sprintf("%q at byte %d", s[min(from, len(s)):min(at+40, len(s))], from)
	}
	return cut(a), cut(b)
}
