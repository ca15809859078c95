package tct

import (
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// rules01 returns one rule for each requirement on publishers that a client can check, in the order
// of the draft's sections.
//
// A rule checks only documents that earlier rules accepted, so one fault causes one finding: an
// M-URL with invalid JSON has no finding about its hash.
//
// The following sentences have no rule:
//
//	1.4.1  clients SHOULD follow redirects, MUST discover by Link, MUST NOT
//	       guess, MAY choose: see the reader's tests
//	1.4.2  clients MUST discover M-URLs by links, MUST NOT assume a pattern:
//	       see the reader's tests
//	1.4.3  a new template SHOULD NOT need a new M-URL: needs two states of the site
//	1.4.3  equal tags MUST imply equal bodies: same as 1.6.2/same-tag-same-body
//	1.5.2  content SHOULD exclude template text: a client cannot recognize it
//	1.5.3  another body MUST have another tag: same as 1.6.2/same-tag-same-body
//	1.6.1  another algorithm MUST be unique, ordered, deterministic: the visible part
//	       is 1.5.3/deterministic, 1.6.1/no-whitespace, 1.6.2/hash-recomputed
//	1.6.1  the same algorithm MUST make tag and body: same as 1.6.2/wire-form
//	1.6.2  another body MUST change the tag: same as 1.6.2/same-tag-same-body
//	1.6.4, A  text normalization: optional, and documents do not declare it
//	1.7.3  etag MUST be computed as 1.6.2 says: an outdated list looks the
//	       same; the visible part is 1.7.1/etag-form and 1.7.3/parity
//	1.7.3  clients SHOULD take etag as a hint, MUST NOT take mismatches as errors:
//	       see the reader's tests
//	1.8.1  zero-fetch: a rule for clients
//	1.8.2  a 304 has no body: HTTP ends a 304 at its header, so no client sees one
//	1.8.3  HEAD is optional; conditional GET SHOULD be primary: rules for clients
//	1.9.1  CDNs SHOULD honor tags and 304: covered by 1.8.2 and 1.10/etag-intact
//	1.9.2, 1.9.3, 1.9.4  no keyword that binds a publisher
//	1.10   clients SHOULD validate TLS, MUST treat JSON as untrusted: see the reader's tests
//	1.10   some publishers SHOULD limit entries: a client cannot tell which
func rules01(rule newRule) []check.Rule {
	const must, should = check.Must, check.Should
	return []check.Rule{
		rule("1.4.1", "index-link", must, "The final response of the origin's root has a Link with rel=index and type=application/json that leads to the M-Sitemap.", checkIndexLink),
		rule("1.4.1", "m-sitemap", must, "The publisher exposes an M-Sitemap at the URL to which the root links.", checkExposed),
		rule("1.4.2", "alternate-link", should, "The C-URL's response advertises its M-URL, in a Link field or a link element, with rel=alternate and type=application/json.", checkAlternate(false)),
		rule("1.4.2", "canonical-link", must, "The M-URL's response has a Link with rel=canonical to its C-URL.", onPages(checkCanonicalLink)),

		rule("1.5.1", "content-type", must, "An M-URL has Content-Type: application/json; charset=utf-8.", checkContentType(true)),
		rule("1.5.1", "valid-json", must, "An M-URL is valid JSON (RFC 8259).", onPages(checkJSON)),
		rule("1.5.1", "utf-8", must, "An M-URL is UTF-8 without a byte order mark.", onPages(checkUTF8)),
		rule("1.5.2", "object", must, "An M-URL is a JSON object.", onPages(checkObject(false))),
		rule("1.5.2", "canonical-url", must, "canonical_url is a string: the C-URL.", onPages(checkCanonicalURL)),
		rule("1.5.2", "title", must, "title is a string.", onPages(checkString("title"))),
		rule("1.5.2", "content", must, "content is a string.", onPages(checkString("content"))),
		rule("1.5.2", "plain-text", must, "content is plain text without raw HTML markup.", askPages(checkPlainText)),
		rule("1.5.2", "hash-form", must, "hash is a string: sha256- and 64 lower-case hexadecimal digits.", onPages(checkHashForm(lower))),
		rule("1.5.2", "hash-equals-etag", must, "hash equals the strong ETag without its quotes.", onPages(checkHashEqualsTag(lower, lower, rightIn01))),
		rule("1.5.2", "profile", should, "profile names the TCT profile, such as tct-1.", onPages(checkPageProfile)),
		rule("1.5.3", "deterministic", must, "The same state of a resource has the same JSON body for every request.", askPages(checkDeterministic)),
		rule("1.5.3", "no-randomness", must, "The JSON does not vary from request to request.", askPages(checkNoRandomness)),

		rule("1.6.1", "no-whitespace", must, "The serialization has no insignificant white space.", onPages(checkNoSpace)),
		rule("1.6.1", "jcs", should, "The serialization is the JSON Canonicalization Scheme (RFC 8785).", onPages(checkJCS)),
		rule("1.6.2", "strong-etag", must, "An M-URL has a strong ETag.", onPages(checkStrongTag01)),
		rule("1.6.2", "quoted-etag", must, "The ETag is a quoted string (RFC 9110, 8.8.3).", onPages(checkQuotedTag)),
		rule("1.6.2", "etag-form", must, "The ETag is sha256- and 64 lower-case hexadecimal digits.", onPages(checkTagForm)),
		rule("1.6.2", "hash-recomputed", must, "The tag is the SHA-256 of the canonical JSON without its hash member.", onPages(checkHash)),
		rule("1.6.2", "wire-form", must, "The sent body is in the canonical form over which the tag is computed.", onPages(checkWireForm)),
		rule("1.6.2", "same-tag-same-body", must, "Two responses with the same strong ETag have the same body.", askPages(checkSameTagSameBody)),
		rule("1.6.3", "tag-per-request", must, "The ETag does not vary per request while the JSON stays the same.", askPages(checkTagPerRequest)),

		rule("1.7.1", "version", must, "version is the integer 1.", onLists(checkVersion)),
		rule("1.7.1", "profile", should, "profile names the TCT profile, such as tct-1.", onLists(checkListProfile)),
		rule("1.7.1", "items", must, "items is an array of objects.", onLists(checkItems)),
		rule("1.7.1", "c-url", must, "cUrl is a string: the canonical URL of the item.", checkCURL),
		rule("1.7.1", "m-url", must, "mUrl is a string: the URL of the item's JSON representation.", checkMURL),
		rule("1.7.1", "etag-form", must, "etag is a string: sha256- and 64 lower-case hexadecimal digits.", onLists(checkItemTag(lower, false))),
		rule("1.7.2", "content-type", must, "The M-Sitemap has Content-Type: application/json; charset=utf-8.", onLists(checkListContentType)),
		rule("1.7.2", "cache-control", should, "The M-Sitemap's Cache-Control encourages timely revalidation.", onLists(checkListCacheControl)),
		rule("1.7.2", "vary", should, "The M-Sitemap has Vary: Accept-Encoding.", onLists(checkListVary)),
		rule("1.7.3", "parity", should, "An item's etag is the current ETag of its M-URL.", checkParity(
			func(p *seenPage) bool { return isLowerHash(p.Item.Tag) && (isLowerHash(p.Tag) || isLowerHash(p.Hash)) },
			func(p *seenPage) bool { return claims(p, p.Item.Tag) })),

		rule("1.8.2", "if-none-match", must, "If-None-Match with the current tag gets a 304.", askProbes(kit.IfNoneMatch)),
		rule("1.8.2", "if-none-match-list", must, "If-None-Match is a list of tags (RFC 9110, 13.1.2).", askProbes(kit.TagForms(kit.TagList))),
		rule("1.8.2", "if-none-match-any", must, "If-None-Match: * matches any representation (RFC 9110, 13.1.2).", askProbes(kit.TagForms(kit.AnyTag))),
		rule("1.8.2", "if-none-match-weak", must, "If-None-Match compares weakly (RFC 9110, 13.1.2).", askProbes(kit.TagForms(kit.WeakTag))),
		rule("1.8.2", "if-none-match-other", must, "If-None-Match with other tags gets a 200 with the JSON.", askProbes(kit.OtherTag)),
		rule("1.8.2", "precedence", must, "If-None-Match takes precedence over If-Modified-Since.", askProbes(kit.Precedence)),
		rule("1.8.2", "not-modified-fields", must, "A 304 has the validators and cache fields of the 200 (RFC 9110, 15.4.5).", askProbes(kit.NotModifiedFields(false, "Cache-Control", "Content-Location", "Expires", "Vary"))),
		rule("1.8.2", "cache-control", should, "An M-URL's Cache-Control encourages revalidation.", onPages(checkCacheControl01)),

		rule("1.10", "https", should, "M-URLs and M-Sitemaps are served over https.", checkHTTPS),
		rule("1.10", "access-control", should, "A page that requires authentication at its C-URL also requires it at its M-URL.", askPages(checkAccess)),
		rule("1.10", "no-leak", must, "The M-Sitemap lists only public documents.", onPages(checkLeak)),
		rule("1.10", "etag-intact", should, "No intermediary strips or rewrites strong ETags.", checkTagIntact),
		rule("G.1.1", "vary", should, "An M-URL has Vary: Accept-Encoding.", checkVary("Accept-Encoding")),
	}
}

// isOwn01 reports whether the hash of a document has this draft's form.
func isOwn01(p *seenPage) bool {
	return p.Fields["canonical_url"] != nil && strings.HasPrefix(p.Hash, hashPrefix)
}
