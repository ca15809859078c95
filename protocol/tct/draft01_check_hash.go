package tct

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
)

func checkStrongTag01(p *seenPage, fail check.Fail) bool {
	if !p.OK() {
		return false
	}
	got := p.Resp.Header.Get("ETag")
	if got == "" || strings.HasPrefix(got, "W/") {
		want := p.Hash
		if !isLowerHash(want) {
			want = "sha256-…"
		}
		fail(p.MURL, "ETag: "+got, `ETag: "`+want+`"`)
	}
	return true
}

func checkQuotedTag(p *seenPage, fail check.Fail) bool {
	if !p.OK() || p.Tag == "" {
		return false
	}
	got := strings.TrimPrefix(p.Resp.Header.Get("ETag"), "W/")
	if got != `"`+p.Tag+`"` || strings.ContainsAny(p.Tag, "\" \t") {
		fail(p.MURL, "ETag: "+got, `ETag: "`+p.Tag+`"`)
	}
	return true
}

func checkTagForm(p *seenPage, fail check.Fail) bool {
	if !p.OK() || p.Tag == "" {
		return false
	}
	if !isLowerHash(p.Tag) {
		fail(p.MURL, "ETag: "+p.Resp.Header.Get("ETag"), "sha256- and 64 lower-case hexadecimal digits, in quotes")
	}
	return true
}

// claims reports whether sum is the page's hash or tag.
func claims(p *seenPage, sum string) bool { return sum != "" && (p.Hash == sum || p.Tag == sum) }

// forms are the byte strings over which the tag of a document may be computed (1.6.2).
type forms struct {
	jcs    []byte // canonical form of the body (RFC 8785)
	jcsErr error  // why the body has no such form
	sumJCS string // hash of jcs without the hash member; "" if jcs is nil
	sumCut string // hash of the body without its hash member, otherwise unchanged
}

func formsOf(p *seenPage) (f forms) {
	f.jcs, f.jcsErr = jsonio.Canonical(p.Body, &jsonLimits)
	if p.Fields == nil {
		return f
	}
	if f.jcsErr == nil {
		rest := maps.Clone(p.Fields)
		delete(rest, "hash")
		if b, err := json.Marshal(rest); err == nil {
			if c, err := jsonio.Canonical(b, &jsonLimits); err == nil {
				f.sumJCS = hashPrefix + canon.SHA256Hex(c)
			}
		}
	}
	member := append([]byte(`"hash":`), p.Fields["hash"]...)
	if before, after, ok := bytes.Cut(p.Body, member); ok {
		if bytes.HasSuffix(before, []byte(",")) {
			before = before[:len(before)-1]
		} else {
			after = bytes.TrimPrefix(after, []byte(","))
		}
		f.sumCut = hashPrefix + canon.SHA256Hex(slices.Concat(before, after))
	}
	return f
}

// mixes reports whether the tag is the hash of the RFC 8785 form, and not of the body as sent.
func (f *forms) mixes(p *seenPage) bool { return claims(p, f.sumJCS) && !claims(p, f.sumCut) }

func checkHash(p *seenPage, fail check.Fail) bool {
	if p.Fields == nil || !utf8.Valid(p.Body) || !isLowerHash(p.Hash) && !isLowerHash(p.Tag) {
		return false
	}
	f := formsOf(p)
	if claims(p, f.sumJCS) || claims(p, f.sumCut) {
		return true // hash-equals-etag reports whether the other hash differs
	}
	want := f.sumJCS
	if f.jcsErr != nil {
		want = f.sumCut
	}
	got := p.Hash
	if !isLowerHash(got) {
		got = p.Tag
	}
	fail(p.MURL, got, want)
	return true
}

// compacted returns the body without insignificant white space.
func compacted(p *seenPage) ([]byte, bool) {
	var b bytes.Buffer
	err := json.Compact(&b, p.Body)
	return b.Bytes(), err == nil
}

func checkNoSpace(p *seenPage, fail check.Fail) bool {
	if !p.OK() {
		return false
	}
	compact, ok := compacted(p)
	if ok && len(compact) != len(p.Body) {
		fail(p.MURL, fmt.Sprintf("%d bytes, %d of them white space between tokens", len(p.Body), len(p.Body)-len(compact)), "none")
	}
	return ok
}

// checkWireForm checks documents whose tag is the hash of the canonical form (RFC 8785). checkJCS
// reports other documents that do not have this form.
func checkWireForm(p *seenPage, fail check.Fail) bool {
	f := formsOf(p)
	if p.Fields == nil || f.jcsErr != nil || !claims(p, f.sumJCS) {
		return false
	}
	if compact, _ := compacted(p); !bytes.Equal(compact, f.jcs) && f.mixes(p) {
		got, want := difference(compact, f.jcs)
		fail(p.MURL, "tag over RFC 8785, body with "+got, want)
	}
	return true
}

func checkJCS(p *seenPage, fail check.Fail) bool {
	compact, ok := compacted(p)
	if !p.OK() || !ok || !utf8.Valid(p.Body) {
		return false
	}
	if f := formsOf(p); f.jcsErr != nil {
		fail(p.MURL, f.jcsErr.Error(), "JSON that has a canonical form")
	} else if !bytes.Equal(compact, f.jcs) && !f.mixes(p) {
		got, want := difference(compact, f.jcs)
		fail(p.MURL, got, want)
	}
	return true
}

// difference returns the first differing bytes of two strings, with some context.
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

// lower is the form of hashes and tags in draft-01 and later.
var lower = hashForm{isLowerHash, "sha256- and 64 lower-case hexadecimal digits"}

func rightIn01(p *seenPage, value string) bool { return formsOf(p).sumJCS == value }
