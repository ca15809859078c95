package tct

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/internal/kit"
)

// rules03 returns the rules of the draft by subject: the root, a list, a page. The text of the
// draft was not available. A rule is a MUST if the reference rejects a violation, or if its
// documentation calls the rule required. It is a SHOULD if both validators require or recommend it,
// because the draft may allow more. A list of draft-02 is checked with the rules that both drafts
// have in common.
//
// A rule checks only documents that earlier rules accepted, so one fault causes one finding. No
// rule checks that a document that is no longer listed returns 404, because this needs two states
// of the site.
func rules03(rule newRule) []check.Rule {
	const must, should = check.Must, check.Should
	out := []check.Rule{
		rule("root", "index-link", must, "The final response of the root has a Link with rel=index and type=application/json that leads to the M-Sitemap.", checkIndexLink),
		rule("root", "no-profile-param", must, "No Link of the root has a parameter profile.", own(checkNoProfileParam)),
		rule("root", "absolute-target", should, "The target of the root's Link is absolute.", own(checkAbsoluteTarget)),
		rule("list", "status", must, "The root's link leads to the M-Sitemap: 200 and a JSON object.", checkExposed),
	}
	for _, k := range []struct{ section, what, profile string }{{"list", "The M-Sitemap", listProfile03}, {"page", "An M-URL", pageProfile03}} {
		on := func(f func(a *answer, fail check.Fail) bool) siteRule {
			return askAnswers(k.section, func(_ context.Context, _ *siteContext, a *answer, fail check.Fail) (bool, error) {
				return f(a, fail), nil
			})
		}
		out = append(out,
			rule(k.section, "content-type", must, k.what+" has Content-Type: application/json, without parameters.", on(checkBareType)),
			rule(k.section, "utf-8", must, k.what+" is UTF-8 without a byte order mark.", on(checkAnswerUTF8)),
			rule(k.section, "profile", must, "profile is "+k.profile+".", on(checkProfile03(k.profile))),
			rule(k.section, "jcs", must, k.what+" is in the canonical form of RFC 8785.", on(checkCanonical)),
			rule(k.section, "etag-is-body-hash", must, "The ETag is strong: sha256- and the SHA-256 of the body.", on(checkBodyHash)),
			rule(k.section, "digest", must, "Content-Digest is the SHA-256 of the body.", on(checkDigest)),
			rule(k.section, "length", must, "Content-Length is the length of the body.", on(checkLength)),
			rule(k.section, "profile-link", must, "A Link with rel=profile leads to "+k.profile+".", on(checkProfileLink(k.profile))),
			rule(k.section, "vary", should, k.what+" has Vary: Accept-Encoding.", on(checkAnswerVary)),
			rule(k.section, "no-transform", should, "Cache-Control has no-transform.", on(checkNoTransform)),
			rule(k.section, "no-coding", should, k.what+" has no content coding.", on(checkNoCoding)),
			rule(k.section, "gzip-advertised", should, "A request with Accept-Encoding: gzip gets the same bytes, ETag and Content-Digest.", askAnswers(k.section, checkGzip)),
			rule(k.section, "head", must, "A HEAD has the fields of the GET.", askAnswers(k.section, checkHead)),
		)
	}
	return append(out,
		rule("list", "version-2", must, "version is the integer 2.", own(onLists(checkVersion))),
		rule("list", "items", must, "items is an array of objects.", onLists(checkItems)),
		rule("list", "no-sitemaps", must, "The member sitemaps is absent.", own(onLists(checkNoSitemaps))),
		rule("list", "c-url", must, "cUrl is an absolute http or https URI.", checkCURL),
		rule("list", "m-url", must, "mUrl is an absolute http or https URI, whose response is 200.", checkMURL),
		rule("list", "etag-form", must, "etag, if present, is sha256- and 64 lower-case hexadecimal digits.", own(onLists(checkItemTag(lower, true)))),
		rule("list", "last-modified", must, "lastModified, if present, is a timestamp of RFC 3339.", own(onLists(checkLastModified))),
		rule("list", "unique-c-urls", must, "No two items have the same cUrl.", onLists(checkUnique("cUrl"))),
		rule("list", "unique-m-urls", must, "No two items have the same mUrl.", onLists(checkUnique("mUrl"))),
		rule("list", "same-origin", should, "Items are on the origin of the list, without userinfo and fragment.", onLists(checkSameOrigin)),
		rule("list", "no-leak", must, "The M-Sitemap lists only public documents.", onPages(checkLeak)),
		rule("list", "identity-refused", should, "A request with Accept-Encoding: identity;q=0 gets a 406.", askAnswers("list", checkIdentityRefused)),
		rule("list", "if-none-match", must, "If-None-Match with the current tag gets a 304 with the tag.", askAnswers("list", checkListNotModified)),
		rule("list", "post", should, "The response to a POST is 405, with an Allow field that lists GET and HEAD.", askAnswers("list", checkPost)),
		rule("list", "stable", must, "Two requests get the same bytes and the same ETag.", askAnswers("list", checkStable)),

		rule("page", "json", must, "An M-URL is valid JSON.", onPages(checkJSON)),
		rule("page", "object", must, "An M-URL is a JSON object.", onPages(checkObject(false))),
		rule("page", "canonical-url", must, "canonical_url is a string: the C-URL.", onPages(checkCanonicalURL)),
		rule("page", "title", must, "title is a string.", onPages(checkString("title"))),
		rule("page", "content", must, "content is a string.", onPages(checkString("content"))),
		rule("page", "language", must, "language, if present, is a well-formed language tag (RFC 5646).", onPages(checkMember("language", languageTag, "a language tag, such as en-GB"))),
		rule("page", "content-media-type", must, "content_media_type, if present, is a media type.", onPages(checkMember("content_media_type", mediaTypeForm, "a media type, such as text/plain; charset=utf-8"))),
		rule("page", "canonical-link", must, "A Link with rel=canonical leads to the C-URL.", onPages(checkCanonicalLink)),
		rule("page", "alternate-link", should, "The C-URL links to its M-URL with rel=alternate and type=application/json.", checkAlternate(false)),
		rule("page", "hint", must, "The etag of an item, if present, is the ETag of its M-URL.", own(checkParity(
			func(p *seenPage) bool { return isLowerHash(p.Item.Tag) && isLowerHash(p.Tag) },
			func(p *seenPage) bool { return p.Item.Tag == p.Tag }))),
		rule("page", "if-none-match", must, "If-None-Match with the current tag gets a 304.", askProbes(kit.IfNoneMatch)),
		rule("page", "if-none-match-list", must, "If-None-Match is a list of tags (RFC 9110, 13.1.2).", askProbes(kit.TagForms(kit.TagList))),
		rule("page", "if-none-match-any", must, "If-None-Match: * matches any representation (RFC 9110, 13.1.2).", askProbes(kit.TagForms(kit.AnyTag))),
		rule("page", "if-none-match-weak", must, "If-None-Match compares weakly (RFC 9110, 13.1.2).", askProbes(kit.TagForms(kit.WeakTag))),
		rule("page", "if-none-match-other", must, "If-None-Match with other tags gets a 200 with the JSON.", askProbes(kit.OtherTag)),
		rule("page", "not-modified-fields", must, "A 304 has the cache fields and the Links of the 200.", askProbes(kit.NotModifiedFields(false, "Cache-Control", "Vary", "Link"))),
		rule("page", "no-empty-object", should, "The JSON has no empty object, and no object whose first name is 0: the reference parses them as arrays.", own(onPages(checkNoEmptyObject))),
		rule("page", "no-u2028", should, "The JSON has no U+2028 and no U+2029: the reference does not write them as RFC 8785 requires.", own(onPages(checkNoSeparators))),
	)
}

// own restricts a rule to lists of draft-03.
func own(f siteRule) siteRule {
	return func(ctx context.Context, s *siteContext, fail check.Fail) error {
		if s.also {
			return check.ErrNotApplicable
		}
		return f(ctx, s, fail)
	}
}

// answer is the 200 response for a list or for a sampled page.
type answer struct {
	URL    string
	Resp   *check.Response
	Fields map[string]json.RawMessage // nil if the body is not an object
}

// Field returns all lines of a header field of the response.
func (a *answer) Field(name string) string { return a.Resp.Field(name) }

// Plain reports whether the response is complete and has no content coding.
func (a *answer) Plain() bool { return a.Field("Content-Encoding") == "" && a.Resp.CutErr == nil }

// askAnswers returns a rule that runs f on the responses for all lists, or for all sampled pages. f
// reports whether the rule applies.
func askAnswers(section string, f func(ctx context.Context, s *siteContext, a *answer, fail check.Fail) (bool, error)) siteRule {
	return own(check.Each(func(s *siteContext) (out []*answer) {
		if section == "list" {
			for _, l := range s.Lists {
				out = append(out, &answer{l.URL, l.Resp, l.Fields})
			}
			return out
		}
		for _, p := range s.Pages {
			if p.OK() {
				out = append(out, &answer{p.MURL, p.Resp, p.Fields})
			}
		}
		return out
	}, f))
}

func checkNoProfileParam(_ context.Context, s *siteContext, fail check.Fail) error {
	if got := s.Home.Field("Link"); profileParam.MatchString(got) {
		fail(s.Home.URL, "Link: "+got, "no parameter profile")
	}
	return nil
}

// profileParam matches the parameter profile of a Link.
var profileParam = regexp.MustCompile(`(?i);\s*profile\s*=`)

func checkAbsoluteTarget(_ context.Context, s *siteContext, fail check.Fail) error {
	index := indexLinks(s)
	if len(index) == 0 {
		return check.ErrNotApplicable
	}
	got := s.Home.Field("Link")
	for _, u := range index {
		if strings.Contains(got, "<"+u+">") {
			return nil
		}
	}
	fail(s.Home.URL, "Link: "+got, "<"+index[0]+">")
	return nil
}

func checkBareType(a *answer, fail check.Fail) bool {
	if got := a.Field("Content-Type"); got != mediaType {
		fail(a.URL, "Content-Type: "+got, "Content-Type: "+mediaType)
	}
	return true
}

func checkAnswerUTF8(a *answer, fail check.Fail) bool {
	switch {
	case len(kit.TrimBOM(a.Resp.Body)) < len(a.Resp.Body):
		fail(a.URL, "a byte order mark", "UTF-8 without it")
	case !utf8.Valid(a.Resp.Body):
		fail(a.URL, "bytes that are not UTF-8", "UTF-8")
	}
	return true
}

func checkProfile03(want string) func(a *answer, fail check.Fail) bool {
	return func(a *answer, fail check.Fail) bool {
		if got := kit.Text(a.Fields["profile"]); a.Fields != nil && got != want {
			fail(a.URL, "profile: "+kit.ShortJSON(a.Fields["profile"]), want)
		}
		return a.Fields != nil
	}
}

// escaped escapes two line separators, which the reference escapes and RFC 8785 does not.
var escaped = strings.NewReplacer("\u2028", `\u2028`, "\u2029", `\u2029`)

func checkCanonical(a *answer, fail check.Fail) bool {
	body := a.Resp.Body
	if !json.Valid(body) || !utf8.Valid(body) {
		return false
	}
	want, err := jsonio.Canonical(body, &jsonLimits)
	switch {
	case err != nil:
		fail(a.URL, err.Error(), "JSON that has a canonical form")
	case !bytes.Equal(body, want) && string(body) != escaped.Replace(string(want)):
		got, should := difference(body, want)
		fail(a.URL, got, should)
	}
	return true
}

func checkBodyHash(a *answer, fail check.Fail) bool {
	if !a.Plain() {
		return false
	}
	if want := `"` + hashPrefix + canon.SHA256Hex(a.Resp.Coded) + `"`; a.Field("ETag") != want {
		fail(a.URL, "ETag: "+a.Field("ETag"), "ETag: "+want)
	}
	return true
}

func checkDigest(a *answer, fail check.Fail) bool {
	if !a.Plain() {
		return false
	}
	if want := canon.Digest(a.Resp.Coded); a.Field("Content-Digest") != want {
		fail(a.URL, "Content-Digest: "+a.Field("Content-Digest"), "Content-Digest: "+want)
	}
	return true
}

func checkLength(a *answer, fail check.Fail) bool {
	if !a.Plain() {
		return false
	}
	if want := strconv.Itoa(len(a.Resp.Coded)); a.Field("Content-Length") != want {
		fail(a.URL, "Content-Length: "+a.Field("Content-Length"), "Content-Length: "+want)
	}
	return true
}

func checkProfileLink(want string) func(a *answer, fail check.Fail) bool {
	return func(a *answer, fail check.Fail) bool {
		for _, l := range kit.FieldLinks(a.Resp) {
			if l.Is("profile", "") && strings.Contains(a.Field("Link"), "<"+want+">") {
				return true
			}
		}
		fail(a.URL, linkField(a.Resp), `Link: <`+want+`>; rel="profile"`)
		return true
	}
}

func checkAnswerVary(a *answer, fail check.Fail) bool {
	varies(a.URL, a.Resp, fail, "Accept-Encoding")
	return true
}

func checkNoTransform(a *answer, fail check.Fail) bool {
	if _, ok := kit.Directives(a.Resp)["no-transform"]; !ok {
		fail(a.URL, "Cache-Control: "+a.Field("Cache-Control"), "Cache-Control with no-transform")
	}
	return true
}

func checkNoCoding(a *answer, fail check.Fail) bool {
	if got := a.Field("Content-Encoding"); got != "" {
		fail(a.URL, "Content-Encoding: "+got, "no content coding")
	}
	return true
}

func checkGzip(ctx context.Context, s *siteContext, a *answer, fail check.Fail) (bool, error) {
	if !a.Plain() {
		return false, nil
	}
	resp, err := s.Do(ctx, http.MethodGet, a.URL, otherCoding.header)
	if err != nil || !resp.OK() || !bytes.Equal(resp.Body, a.Resp.Body) {
		return false, err // the document has changed
	}
	for _, name := range []string{"Content-Encoding", "ETag", "Content-Digest"} {
		if got := resp.Field(name); got != a.Field(name) {
			fail(a.URL, name+": "+got+" with "+otherCoding.name, name+": "+a.Field(name))
			return true, nil
		}
	}
	return true, nil
}

func checkHead(ctx context.Context, s *siteContext, a *answer, fail check.Fail) (bool, error) {
	resp, err := s.Do(ctx, http.MethodHead, a.URL, nil)
	if err != nil {
		return false, err
	}
	if resp.Status != http.StatusOK {
		fail(a.URL, resp.StatusText()+" to HEAD", "200")
		return true, nil
	}
	if resp.Header.Get("ETag") != a.Resp.Header.Get("ETag") {
		if now, err := s.DoUncached(ctx, http.MethodGet, a.URL, nil); err != nil || now.Header.Get("ETag") != a.Resp.Header.Get("ETag") {
			return false, err // the document has changed
		}
	}
	for _, name := range []string{"ETag", "Content-Type", "Content-Digest", "Content-Length", "Cache-Control", "Vary", "Link"} {
		if got := resp.Field(name); got != a.Field(name) {
			fail(a.URL, name+": "+got+" for HEAD", name+": "+a.Field(name))
			return true, nil
		}
	}
	return true, nil
}

func checkNoSitemaps(l *seenList, fail check.Fail) {
	if raw, there := l.Fields["sitemaps"]; there {
		fail(l.URL, "sitemaps: "+kit.Short(string(raw)), "no such member, which only an index of lists has")
	}
}

func checkLastModified(l *seenList, fail check.Fail) {
	l.Each(func(i int, it *seenItem) {
		raw, there := it.Fields["lastModified"]
		s := kit.Text(raw)
		if _, err := time.Parse(time.RFC3339, s); there && (err != nil || !timestamp.MatchString(s)) {
			fail(l.URL, fmt.Sprintf("items/%d/lastModified: %s", i, raw), "a timestamp, such as 2026-08-01T10:00:00Z")
		}
	})
}

// timestamp matches the format of RFC 3339, because time.Parse also accepts other formats.
var timestamp = regexp.MustCompile(`^[\d-]{10}T\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$`)

func checkUnique(name string) func(l *seenList, fail check.Fail) {
	return func(l *seenList, fail check.Fail) {
		seen := map[string]int{}
		l.Each(func(i int, it *seenItem) {
			u := kit.Text(it.Fields[name])
			if first, twice := seen[u]; twice && u != "" {
				fail(l.URL, fmt.Sprintf("items/%d/%s: %s", i, name, u), fmt.Sprintf("a different value than in items/%d", first))
				return
			}
			seen[u] = i
		})
	}
}

func checkSameOrigin(l *seenList, fail check.Fail) {
	here := canon.Origin(l.Resp.URL)
	l.Each(func(i int, it *seenItem) {
		for name, raw := range map[string]string{"cUrl": it.CURL, "mUrl": it.MURL} {
			u, err := canon.URL(raw)
			if err != nil {
				continue // rules c-url and m-url report this
			}
			parsed, err := url.Parse(raw)
			if canon.Origin(u) != here || err != nil || parsed.User != nil || strings.Contains(raw, "#") {
				fail(l.URL, fmt.Sprintf("items/%d/%s: %s", i, name, raw), "a URL of "+here)
			}
		}
	})
}

func checkIdentityRefused(ctx context.Context, s *siteContext, a *answer, fail check.Fail) (bool, error) {
	resp, err := s.Do(ctx, http.MethodGet, a.URL, http.Header{"Accept-Encoding": {"identity;q=0"}})
	if err == nil && resp.Status != http.StatusNotAcceptable {
		fail(a.URL, resp.StatusText()+" to Accept-Encoding: identity;q=0", "406")
	}
	return err == nil, err
}

func checkListNotModified(ctx context.Context, s *siteContext, a *answer, fail check.Fail) (bool, error) {
	tag := a.Field("ETag")
	if !strings.HasPrefix(tag, `"`) {
		return false, nil
	}
	resp, err := s.Do(ctx, http.MethodGet, a.URL, http.Header{"If-None-Match": {tag}})
	switch {
	case err != nil:
		return false, err
	case resp.Status == http.StatusOK && resp.Header.Get("ETag") != tag:
		return false, nil // the document has changed
	case resp.Status != http.StatusNotModified || resp.Header.Get("ETag") != tag || len(resp.Coded) > 0:
		fail(a.URL, resp.StatusText()+" with ETag: "+resp.Header.Get("ETag")+" to If-None-Match: "+tag, "304, with the same ETag, and nothing else")
	}
	return true, nil
}

func checkPost(ctx context.Context, s *siteContext, a *answer, fail check.Fail) (bool, error) {
	resp, err := s.Do(ctx, http.MethodPost, a.URL, nil)
	if err != nil {
		return false, err
	}
	allow := resp.Field("Allow")
	if resp.Status != http.StatusMethodNotAllowed || !strings.Contains(allow, http.MethodGet) || !strings.Contains(allow, http.MethodHead) {
		fail(a.URL, resp.StatusText()+" with Allow: "+allow+" to POST", "405 with Allow: GET, HEAD")
	}
	return true, nil
}

func checkStable(ctx context.Context, s *siteContext, a *answer, fail check.Fail) (bool, error) {
	again := func() (*check.Response, error) { return s.DoUncached(ctx, http.MethodGet, a.URL, nil) }
	second, err := again()
	if err != nil || !second.OK() || bytes.Equal(second.Body, a.Resp.Body) && kit.OpaqueTag(second) == kit.OpaqueTag(a.Resp) {
		return err == nil, err
	}
	third, err := again()
	if err != nil || bytes.Equal(third.Body, second.Body) && kit.OpaqueTag(third) == kit.OpaqueTag(second) {
		return false, err // the document may have changed once
	}
	got, want := difference(second.Body, a.Resp.Body)
	fail(a.URL, "the second response has "+got+" and ETag: "+second.Header.Get("ETag"), "the same as in the first, "+want+" and ETag: "+a.Field("ETag"))
	return true, nil
}

// checkMember checks an optional member of a document.
func checkMember(name string, form *regexp.Regexp, want string) func(p *seenPage, fail check.Fail) bool {
	return func(p *seenPage, fail check.Fail) bool {
		raw, there := p.Fields[name]
		if there && !form.MatchString(kit.Text(p.Fields[name])) {
			fail(p.MURL, name+": "+kit.ShortJSON(raw), want)
		}
		return there
	}
}

// mediaTypeForm matches a media type with its parameters (RFC 9110, section 8.3.1).
var mediaTypeForm = regexp.MustCompile("^" + token + "/" + token + `(?:[ \t]*;[ \t]*` + token + `=(?:` + token + `|"(?:[^"\\]|\\.)*"))*$`)

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"

func checkNoEmptyObject(p *seenPage, fail check.Fail) bool {
	for name, raw := range p.Fields {
		if hasArrayObject(raw) {
			fail(p.MURL, name+": "+kit.Short(string(raw)), "no empty object, and none whose first name is 0")
		}
	}
	return p.Fields != nil
}

func checkNoSeparators(p *seenPage, fail check.Fail) bool {
	if c, err := jsonio.Canonical(p.Body, &jsonLimits); err == nil && bytes.ContainsAny(c, "\u2028\u2029") {
		fail(p.MURL, "U+2028 or U+2029", "a line feed in its place")
	}
	return p.Fields != nil
}
