package arc

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/weblink"
)

// refused reports whether the response for the page denies access.
func (p *seenPage) refused() bool {
	return p.err == nil && (p.resp.Status == http.StatusUnauthorized || p.resp.Status == http.StatusForbidden)
}

func (p *seenPage) auth() bool { return string(p.fields["auth_required"]) == "true" }

func checkCanonical(p *seenPage, fail check.Fail) bool {
	const want = "200 OK with the page"
	switch {
	case p.refused():
		return false // the rule "auth-required" reports this page
	case p.err != nil:
		fail(p.url, p.err.Error(), want)
	case p.resp.Status != http.StatusOK:
		fail(p.url, p.resp.StatusText(), want)
	case p.resp.BodyErr != nil:
		fail(p.url, p.resp.BodyErr.Error(), want)
	default:
		if own := canonical(p.resp); own != "" && own != p.url && !p.onTestHost(own) {
			fail(p.list, p.at+"/url: "+p.url, own+", the canonical URL of the page")
		}
	}
	return true
}

// onTestHost reports whether the site is being tested on a temporary host, so that the page
// declares a canonical URL on the future host. The future host is the one that the home page
// declares. If the home page declares no canonical URL, the future host may be any other host, and
// the path must be the same.
func (p *seenPage) onTestHost(own string) bool {
	if canon.Origin(own) == canon.Origin(p.url) {
		return false
	}
	home, root := p.home, canon.Origin(p.url)+"/"
	if home == "" {
		home = canon.Origin(own) + "/"
	}
	rest, ok := strings.CutPrefix(own, home[:strings.LastIndexByte(home, '/')+1])
	return ok && root+rest == p.url
}

// canonical returns the canonical URL that a page declares, or "".
func canonical(resp *check.Response) string {
	for _, l := range kit.HeadOf(resp).Links {
		if l.Is("canonical", "") {
			return l.URL
		}
	}
	return ""
}

func checkAuth(p *seenPage, fail check.Fail) bool {
	if p.err != nil {
		return false
	}
	switch {
	case p.refused() && !p.auth():
		fail(p.list, p.at+": "+p.resp.StatusText()+", without auth_required: true", "auth_required: true")
	case p.ok() && p.auth():
		fail(p.list, p.at+": auth_required: true, but the page is public", "auth_required: false")
	}
	return true
}

func checkRobots(p *seenPage, fail check.Fail) bool {
	if !p.ok() {
		return false
	}
	directives := slices.Clone(p.resp.Header.Values("X-Robots-Tag"))
	for _, m := range kit.HeadOf(p.resp).Metas {
		if m.Name == "robots" {
			directives = append(directives, m.Content)
		}
	}
	for _, directive := range directives {
		if d := restriction(directive); d != "" && !strings.Contains(directive, ":") {
			fail(p.list, p.at+": ai_indexable is true, but the page has "+d, "ai_indexable: false")
		}
	}
	return true
}

// words returns the words of a text in lower case, without punctuation.
func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
}

// pageWords returns the words in the text of an HTML page, and those in its head, from which
// summaries are often taken.
func pageWords(resp *check.Response) map[string]bool {
	out := map[string]bool{}
	add := func(s string) {
		for _, w := range words(s) {
			out[w] = true
		}
	}
	z := html.NewTokenizer(bytes.NewReader(resp.Body))
	raw := atom.Atom(0) // current element whose text is invisible, or 0
	for tt := z.Next(); tt != html.ErrorToken; tt = z.Next() {
		switch t := z.Token(); tt {
		case html.TextToken:
			if raw == 0 || raw == atom.Title {
				add(t.Data)
			}
		case html.EndTagToken:
			raw = 0
		case html.StartTagToken, html.SelfClosingTagToken:
			if raw = 0; t.DataAtom == atom.Script || t.DataAtom == atom.Style {
				raw = t.DataAtom
			}
			for _, a := range t.Attr {
				if a.Key == "content" || a.Key == "alt" || a.Key == "title" || a.Key == "aria-label" || a.Key == "value" && t.DataAtom == atom.Input {
					add(a.Val)
				}
			}
		}
	}
	return out
}

// minWords is the percentage of the words of a title or summary that the page must contain. It is
// below 100 because a summary may also use other words.
const minWords = 50

func checkDrift(p *seenPage, fail check.Fail) bool {
	snapshot := p.snapshot()
	if !p.ok() || snapshot == nil || !weblink.IsHTML(p.resp.Header) {
		return false
	}
	there := pageWords(p.resp)
	about := false
	for _, claimed := range claims(snapshot, "ai_snapshot") {
		list := words(claimed.text)
		if len(list) == 0 {
			continue
		}
		about = true
		n := 0
		for _, w := range list {
			if there[w] {
				n++
			}
		}
		if n*100 < len(list)*minWords {
			fail(p.list, fmt.Sprintf("%s/%s: %s: %d of %d words are on %s", p.at, claimed.at, kit.Short(claimed.text), n, len(list), p.url), "text of the page")
		}
	}
	return about
}

// claim is a text of a snapshot that the page must contain.
type claim struct{ at, text string }

// maxClaims limits the texts of a snapshot that are compared.
const maxClaims = 100

// claims returns the titles, headings and summaries of a node and its descendants.
func claims(n node, at string) []claim {
	var out []claim
	for _, name := range []string{"title", "heading", "summary"} {
		if s := n.text(name); s != "" {
			out = append(out, claim{at + "/" + name, s})
		}
	}
	for _, name := range containers {
		for i, c := range n.children(name) {
			if len(out) < maxClaims {
				out = append(out, claims(c, fmt.Sprintf("%s/%s/%d", at, name, i))...)
			}
		}
	}
	return out
}

// sources lists the known inputs of a checksum. Checksums of other inputs are opaque.
var sources = []struct {
	name string
	of   func(p *seenPage) []byte
}{
	{"the page's bytes", func(p *seenPage) []byte { return p.resp.Body }},
	{"the page's text", func(p *seenPage) []byte { return []byte(visible(p.resp.Body)) }},
	{"the canonical form of its snapshot", func(p *seenPage) []byte {
		if c := canonicalObject(p.fields["ai_snapshot"]); c != nil {
			return c
		}
		return nil
	}},
}

// visible returns the text of an HTML page with its white space unchanged.
func visible(page []byte) string {
	var b strings.Builder
	z := html.NewTokenizer(bytes.NewReader(page))
	hidden := false
	for tt := z.Next(); tt != html.ErrorToken; tt = z.Next() {
		switch t := z.Token(); tt {
		case html.TextToken:
			if !hidden {
				b.WriteString(t.Data)
			}
		case html.StartTagToken:
			hidden = t.DataAtom == atom.Script || t.DataAtom == atom.Style
		case html.EndTagToken:
			hidden = false
		}
	}
	return strings.TrimSpace(b.String())
}

// source returns the index in sources of the input of the page's checksum, or -1 if it is unknown.
func (p *seenPage) source() int {
	sum := strings.ToLower(p.text("ai_checksum"))
	for i, s := range sources {
		if b := s.of(p); len(b) > 0 && sum == checksumPrefix+canon.SHA256Hex(b) {
			return i
		}
	}
	return -1
}

// checkChecksum determines from which known input the checksums were computed. If there is one, it
// reports each checksum that matches no input: the page has changed since the checksum was
// computed.
func checkChecksum(_ context.Context, s *siteContext, fail check.Fail) error {
	count := make([]int, len(sources))
	var none []*seenPage
	for _, p := range s.pages {
		switch {
		case !p.ok() || p.text("ai_checksum") == "":
		case p.source() >= 0:
			count[p.source()]++
		default:
			none = append(none, p)
		}
	}
	best := 0
	for i := range count {
		if count[i] > count[best] {
			best = i
		}
	}
	switch {
	case count[best] > 0:
		for _, p := range none {
			fail(p.list, p.at+"/ai_checksum: "+kit.Short(p.text("ai_checksum")), fmt.Sprintf("the SHA-256 of %s, as on %d of the sampled pages", sources[best].name, count[best]))
		}
		return nil
	case len(none) > 0:
		return fmt.Errorf("%w: the checksums match no public document (tried: %s)", check.ErrNotApplicable, strings.Join([]string{sources[0].name, sources[1].name, sources[2].name}, ", "))
	}
	return check.ErrNotApplicable
}
