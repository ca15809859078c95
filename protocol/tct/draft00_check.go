package tct

import (
	"context"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// rules00 returns one rule for each requirement on publishers that a client can check, in the order
// of the draft's sections. A sentence with "required" counts as MUST, and one with RECOMMENDED as
// SHOULD. A few rules go beyond the requirements of the draft, and their text says so.
//
// A rule checks only documents that earlier rules accepted, so one fault causes one finding.
//
// The following sentences have no rule:
//
//	3.4   M-URLs SHOULD be provided only for content pages: same as
//	      3.4/no-archives and 3.4/content-pages
//	4.2   the ETag MUST contain the fingerprint: the visible part is
//	      4.1/fingerprint and 8.2/hash-equals-etag
//	5.2   a 304 MUST NOT have a body: HTTP ends a 304 at its header, so no client
//	      sees one
//	6.2   zero-fetch: a rule for clients
//	7     purposes, requirements, rates: the owner chooses their content
//	7.3   agents SHOULD fetch, honor, respect, review: rules for clients
//	9.2   SHOULD use robots.txt if needed: a client cannot see the need
//	9.3   agents SHOULD limit rates and sizes: see the reader's tests
//	10.8  publishers SHOULD monitor, report, promote: not visible to a client
//	10.8  payloads SHOULD be small: the draft defines no limit
func rules00(rule newRule) []check.Rule {
	const must, should = check.Must, check.Should
	return []check.Rule{
		rule("3.1", "alternate-element", must, "The C-URL's HTML has in its head a link element with rel=alternate and type=application/json to the M-URL.", checkAlternate(true)),
		rule("3.2", "canonical-link", must, "The M-URL's response has a Link with rel=canonical to its C-URL.", onPages(checkCanonicalLink)),
		rule("3.3", "pattern", should, "M-URLs follow one pattern from their C-URLs, or the patterns in the manifest.", checkPattern),
		rule("3.3", "manifest", must, "A pattern other than C-URL path + llm/ is documented in a site-level manifest (checked at /llm-manifest.json).", checkManifest),
		rule("3.4", "content-pages", should, "The list has content pages only: no category, tag, author, date or search archives, which the draft names.", checkContentPages),
		rule("3.4", "no-archives", should, "The M-URL of an archive page that the home page links to returns 404.", checkNoArchives),

		rule("4.1", "fingerprint", should, "The fingerprint is the SHA-256 of the normalized content (the draft uses no keyword here).", onPages(checkFingerprint)),
		rule("4.2", "etag", must, "The M-URL's response has an ETag.", onPages(checkTag)),
		rule("4.2", "strong-etag", must, "The ETag is in quotes and strong.", onPages(checkStrongTag00)),
		rule("4.2", "etag-prefix", must, "The ETag starts with sha256-.", onPages(checkTagPrefix)),
		rule("4.2", "etag-digits", must, "The ETag has 64 hexadecimal digits.", onPages(checkTagDigits)),

		rule("5.1", "precedence", must, "If-None-Match takes precedence over If-Modified-Since.", askProbes(kit.Precedence)),
		rule("5.2", "not-modified", must, "If-None-Match with the current tag gets a 304.", askProbes(kit.IfNoneMatch)),
		rule("5.2", "not-modified-list", must, "If-None-Match is a list of tags (RFC 9110, 13.1.2).", askProbes(kit.TagForms(kit.TagList))),
		rule("5.2", "not-modified-any", must, "If-None-Match: * matches any representation (RFC 9110, 13.1.2).", askProbes(kit.TagForms(kit.AnyTag))),
		rule("5.2", "not-modified-weak", must, "If-None-Match compares weakly (RFC 9110, 13.1.2).", askProbes(kit.TagForms(kit.WeakTag))),
		rule("5.2", "modified", must, "If-None-Match with other tags gets a 200 with the JSON.", askProbes(kit.OtherTag)),
		rule("5.2", "not-modified-fields", must, "A 304 has ETag, Last-Modified and Cache-Control.", askProbes(kit.NotModifiedFields(true, "Last-Modified", "Cache-Control"))),
		rule("5.3", "cache-control", should, "The M-URL's Cache-Control has must-revalidate, and max-age=0 or private.", onPages(checkCacheControl00)),
		rule("5.4", "vary", should, "The M-URL's response has Vary: Accept.", checkVary("Accept")),

		rule("6.1", "sitemap", should, "The publisher provides a list in JSON at /llm-sitemap.json.", checkSitemap),
		rule("6.1", "version", must, "version is the integer 1.", onLists(checkVersion)),
		rule("6.1", "profile", should, "profile names the protocol version, such as tct-1.", onLists(checkListProfile)),
		rule("6.1", "items", must, "items is an array of objects.", onLists(checkItems)),
		rule("6.1", "c-url", must, "cUrl is a string: the canonical URL of the item.", checkCURL),
		rule("6.1", "m-url", must, "mUrl is a string: the machine URL of the item.", checkMURL),
		rule("6.1", "modified", should, "modified, if present, is an ISO 8601 timestamp (the draft uses no keyword here).", onLists(checkModified)),
		rule("6.1", "content-hash", must, "contentHash is a string: sha256- and 64 hexadecimal digits.", onLists(checkItemTag(tags00, false))),
		rule("6.1", "parity", must, "contentHash equals the ETag of the M-URL.", checkParity(
			func(p *seenPage) bool { return isHash(p.Item.Tag) && isHash(p.Tag) },
			func(p *seenPage) bool { return strings.EqualFold(p.Item.Tag, p.Tag) })),
		rule("6.1", "homepage-first", should, "The first item is the site's home page.", checkHomeFirst),

		rule("7.1", "policy-place", should, "The policy descriptor is at /llm-policy.json.", checkPolicyPlace),
		rule("7.2", "policy-schema", should, "The members of the policy descriptor have the defined types (the draft uses no keyword here).", checkPolicySchema),
		rule("7.3", "describedby-link", should, "The list has a Link with rel=describedby to the policy descriptor.", checkDescribedBy),

		rule("8.1", "content-type", must, "An M-URL has Content-Type: application/json.", checkContentType(false)),
		rule("8.2", "object", must, "An M-URL is one JSON object.", onPages(checkObject(true))),
		rule("8.2", "canonical-url", must, "canonical_url is a string: the C-URL.", onPages(checkCanonicalURL)),
		rule("8.2", "title", must, "title is a string.", onPages(checkString("title"))),
		rule("8.2", "content", must, "content is a string.", onPages(checkString("content"))),
		rule("8.2", "hash", must, "hash is a string: 64 hexadecimal digits.", onPages(checkHashForm(hashes00))),
		rule("8.2", "hash-equals-etag", must, "hash matches the ETag's value.", onPages(checkHashEqualsTag(hashes00, tags00, rightIn00))),
		rule("8.2", "profile", should, "profile names the protocol version, such as tct-1.", onPages(checkPageProfile)),
		rule("9.2", "no-leak", should, "The list names only public documents.", onPages(checkLeak)),
	}
}

// folderOf returns the folder of the list, or the folder where the list should be. It ends with
// "/".
func folderOf(s *siteContext) string {
	if len(s.Lists) > 0 {
		return strings.TrimSuffix(s.Lists[0].URL, listName00[1:])
	}
	return s.Root()
}

// in returns the URL of a site-wide document in folder.
func in(folder, name string) string { return strings.TrimSuffix(folder, "/") + name }

// homeOf00 returns the response of the home page.
func homeOf00(ctx context.Context, s *siteContext) (*check.Response, error) {
	return s.Get(ctx, folderOf(s))
}

// isOwn00 reports whether the hash of a document has this draft's form.
func isOwn00(p *seenPage) bool {
	content := kit.Text(p.Fields["content"])
	return isDigits(p.Hash) || isHash(p.Hash) && isFingerprint(content, p.Hash)
}
