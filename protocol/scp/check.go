package scp

import (
	"context"
	"iter"
	"slices"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// Rules returns one rule for each requirement of the specification on publishers or servers that a
// client can check, in the order of the sections. Statements about files, sitemaps or pages that
// contain no keyword are treated as a MUST.
//
// A rule checks only data that the rules it depends on accepted, so one fault causes one finding: a
// file that cannot be decompressed has no finding about its checksum. The rules read one snapshot
// and at most two deltas; see siteContext.choose.
//
// The following requirements have no rule:
//
//	Structure            Content-Type, Content-Encoding: same as http/content-type, http/content-encoding
//	Collection Metadata  parsers SHOULD, MUST ignore unknown fields, MUST reject other major versions,
//	                     SHOULD accept higher minor ones, MUST support 0.1: covered by the reader's tests
//	Collection Metadata  crawlers SHOULD verify, MUST reject, MUST NOT use: covered by the reader's tests
//	Schema.org           schema SHOULD be used where a type fits the content, SHOULD represent its
//	                     identity: a client cannot judge the content
//	Schema.org           author and published are REQUIRED there, optional in Page Fields and the schema:
//	                     treated as optional
//	Schema.org           crawlers SHOULD prefer, fall back, be consistent: covered by the reader's tests
//	Relationship to Content Blocks  crawlers SHOULD use either for its purpose: covered by the reader's tests
//	Content Block Types  attributedTo and partOf are strings in the schema, may be objects in the text:
//	                     both are accepted
//	Validation, Error Handling  parsers MUST: covered by the reader's tests; what parsers refuse causes
//	                     findings of page/*, blocks/* and format/*
//	Discovery            order of the elements: Appendix A defines none
//	Snapshot Collections contains ALL pages: the Content Inclusion Policy allows publishers to omit pages
//	Snapshot Collections updated as updateFreq declares: a section without changes looks the same
//	Delta Collections    contains ONLY pages modified or created: a page may be older than the day on which
//	                     the site published it; deltas/within-period checks what is visible
//	Delta Collections    much smaller than snapshots: the specification does not define how much
//	Delta Application, Recovery  crawlers MUST, SHOULD: covered by the reader's tests
//	Crawler-Side Requirements    covered by the reader's tests
//	Use with HTTP        ranges: the section does not name RFC 7233
//	Caching Directives   stale-while-revalidate: OPTIONAL
//	Message Modification publishers SHOULD include checksums: same as checksum/present; TLS 1.2: the client
//	                     refuses older versions; crawlers MUST, SHOULD: covered by the reader's tests
//	Replay Attacks       crawlers SHOULD: covered by the reader's tests; a time in the future is
//	                     metadata/generated-past
//	Information Disclosure  content review, consent, scrubbing, delta controls MUST: a client cannot know
//	                     what is confidential; privacy/public checks access control
//	Content Inclusion    publishers SHOULD omit pages: their choice
//	Resource Exhaustion  500 GB decompressed: more than a checker reads; streaming, timeouts, monitoring: parsers
//	Storage Exhaustion, Script Injection, Malicious URLs  for crawlers and systems that render
//	CDN Compromise       HTTPS SHOULD be required: same as security/https; publishers SHOULD monitor logs: not
//	                     visible to a client
//	Sitemap Compromise   protection of robots.txt and sitemap.xml: not visible to a client
//	Trust Model          publishers MUST NOT include confidential information: not visible to a client
//	Rate Limiting        publishers SHOULD limit: only abuse would show it
//	IANA Considerations  magic numbers, Content-Encoding: same as format/compression, http/content-encoding
//	Appendix A           version, compression and the schema's location are not required
func Rules() []check.Rule { return rules(nil) }

// rules returns the rules with the file limits of o, or if o is nil, those of the specification.
func rules(o *OpenOptions) []check.Rule {
	const must, should = check.Must, check.Should
	rule := check.RuleBuilder[*siteContext]{Name: Name, SiteContext: func(ctx context.Context, t *check.Target) (*siteContext, error) {
		s := &siteContext{SiteContext: kit.NewSiteContext(t), limits: o.resolve()}
		return s, s.run(ctx)
	}}.Rule
	line := func(id string, section, sentence string) check.Rule {
		return rule(id, must, section, sentence, onContent(id))
	}
	const (
		structure = "Structure"
		meta      = "Collection Metadata"
		fields    = "Page Fields"
		blocks    = "Content Block Types"
		schema    = "Page Object Schema"
		discovery = sectionDiscovery
		http      = "Content-Type and Encoding"
		server    = "Server-Side Requirements"
		caching   = "Caching Directives"
		limits    = "Threat: Memory and CPU Exhaustion"
		xsd       = "Appendix A. Sitemap XML Schema Definition"
	)
	// Rules for members and for blocks, from their schemas.
	lines := func(section string, of iter.Seq2[string, string]) (out []check.Rule) {
		for id, sentence := range of {
			out = append(out, line(id, section, sentence))
		}
		return out
	}
	ofBlocks := func(yield func(id, sentence string) bool) {
		for _, k := range blockKinds {
			if !yield(k.rule, k.says) {
				return
			}
		}
	}
	return slices.Concat([]check.Rule{
		rule("format/extension", must, structure, "The name of a file ends in .scp.gz, .scp.zst or .scp.", onReferences(".scp.gz, .scp.zst or .scp", checkSuffix)),
		line("format/compression", structure, "The whole file is compressed with the coding that its suffix names."),
		line("format/first-line", structure, "The first line contains the metadata of the collection."),
		line("format/json-lines", structure, "Each line is one JSON object, in UTF-8."),
		line("format/pages", structure, "The lines after the first are pages."),
		line("format/unique", structure, "Each line represents one page."),
	}, lines(meta, collectionObject.rules), []check.Rule{
		rule("metadata/id-unique", must, meta, "id is unique for a collection.", checkUniqueID),
		rule("metadata/generated-past", must, meta, "generated is the time at which the collection was created.", onReferences("a time in the past", checkFuture)),
		rule("checksum/matches", must, meta, "checksum contains the SHA-256 hash of the complete uncompressed file.", onFiles(checkSum)),
		rule("checksum/reading", should, meta, "checksum covers the entire file except its own member.", onFiles(checkReading)),
		rule("checksum/present", should, meta, "Publishers include checksums in all collections.", onContent("checksum/present")),

		line("page/required", fields, "A page has url, title, description, modified, language and content."),
	}, lines(fields, pageObject.rules), []check.Rule{
		line("blocks/type", blocks, "A block is an object with one of the types of the specification."),
		line("blocks/heading-level", blocks, "level is 1 to 6."),
	}, lines(blocks, ofBlocks), []check.Rule{
		line("blocks/url", schema, "The URLs of blocks are http or https URLs."),
	}, lines(schema, kindOf(videoBlock).rules), []check.Rule{
		rule("discovery/sitemap-xml", must, discovery, "Sites advertise collections in sitemap.xml.", checkSitemapName),
		rule("discovery/valid", must, discovery, "The sitemap is valid according to the sitemaps.org protocol.", checkSitemapValid),
		rule("discovery/namespace", must, discovery, "The elements are in the namespace of the extension.", onElements(namespace, checkNamespace)),
		rule("page/site", should, discovery, "The pages of a collection belong to the site of the sitemap.", onContent("page/site")),
		rule("snapshots/offered", must, "Snapshot Collections", "The full state of a section is generated periodically.", onElements("a snapshot of each section", checkSnapshot, "section")),
		line("snapshots/at-generation", "Snapshot Collections", "A snapshot is the state of its section when it was generated."),
		line("deltas/within-period", "Delta Collections", "A delta contains only pages that were modified or created during its period."),
		rule("deltas/since", must, "Delta Collections", "A delta contains the changes between since and generated.", onReferences("since before generated", checkSinceBefore)),
		line("deltas/monotonic", "Delta Application", "modified of a URL is monotonically increasing across snapshots and deltas."),
		rule("download/get", must, "Direct Download from Sitemap", "Collections are accessible with GET at their URLs, without credentials.", checkThere),

		rule("http/content-type", must, http, "Content-Type is application/scp.", onFiles(checkContentType)),
		rule("http/content-encoding", must, http, "Content-Encoding is gzip for .scp.gz, zstd for .scp.zst, and absent for .scp.", onFiles(checkContentEncoding)),
		rule("http/content-length", should, http, "Servers include Content-Length.", onFiles(checkContentLength)),
		rule("http/etag", should, server, "Servers provide ETag.", hasField("ETag", `"sha256:…"`)),
		rule("http/last-modified", should, server, "Servers provide Last-Modified.", hasField("Last-Modified", "when the collection was generated")),
		rule("http/etag-checksum", should, server, "The ETag is the checksum of the metadata.", onFiles(checkTagIsSum)),
		rule("http/last-modified-generated", should, server, "Last-Modified is the member generated, as an HTTP date.", onFiles(checkLastModified)),
		rule("conditional/if-none-match", must, server, "If-None-Match with the current tag gets a 304.", askProbes(true, kit.IfNoneMatch)),
		rule("conditional/if-modified-since", must, server, "If-Modified-Since with the current date gets a 304.", askProbes(true, kit.IfModifiedSince)),
		rule("conditional/both", must, server, "Both conditions together, as crawlers send them, get a 304.", askProbes(true, kit.BothConditions)),
		rule("conditional/forms", should, server, "Conditional requests are supported as RFC 7232 defines them: lists of tags, weak tags, *.", askProbes(false, kit.TagForms(kit.TagList, kit.WeakTag, kit.AnyTag))),
		rule("conditional/changed", should, server, "Conditional requests are supported as RFC 7232 defines them: other validators get a 200.", allOf(askProbes(false, kit.OtherTag), askProbes(false, kit.OtherDate))),
		rule("conditional/precedence", should, server, "Conditional requests are supported as RFC 7232 defines them: If-None-Match takes precedence over If-Modified-Since.", askProbes(false, checkPrecedence)),
		rule("conditional/fields", should, server, "Conditional requests are supported as RFC 7232 defines them: a 304 has the validators and cache fields of the 200.", askProbes(true, kit.NotModifiedFields(false, "Cache-Control", "Content-Location", "Expires", "Vary"))),
		rule("caching/cache-control", should, caching, "Servers include Cache-Control.", hasField("Cache-Control", "public, max-age=86400")),
		rule("caching/public", should, caching, "Any cache may store collections.", onFiles(checkPublic)),
		rule("caching/max-age", should, caching, "max-age of a snapshot matches or exceeds the update interval of its section.", onFiles(checkMaxAge)),
		rule("caching/delta-max-age", should, caching, "max-age of a delta is shorter than that of a snapshot.", onFiles(checkDeltaMaxAge)),
		rule("caching/must-revalidate", should, caching, "A delta has must-revalidate.", onFiles(checkMustRevalidate)),

		rule("security/https", should, "Threat: Message Modification and Insertion", "Collections are served over https.", checkHTTPS),
		rule("privacy/public", must, "Information Disclosure Risks", "All pages in collections are intended for public access.", checkAccess),
		line("limits/ratio", limits, "The decompressed file is at most 100 times as large as the file."),
		rule("limits/file", must, limits, "The size of a file is at most 50 GB.", onReferences("at most 50 GB", checkFileSize)),
		line("limits/page", limits, "The size of a page is at most 100 MB."),
		line("limits/blocks", limits, "A page has at most 1000 blocks."),
		rule("security/sitemap-https", must, "Threat: Sitemap Compromise", "The sitemap is served over https.", checkSitemapHTTPS),

		rule("sitemap/position", must, xsd, "The SCP elements are children of urlset.", onElements("a child of urlset", checkParent)),
		rule("sitemap/declared", must, xsd, "The schema defines all elements, attributes and content.", onElements("only names and content of the schema", checkDeclared)),
		rule("sitemap/required", must, xsd, "Elements have all attributes that the schema requires.", onElements("all required attributes", checkRequired)),
		rule("sitemap/version", must, xsd, "version is MAJOR.MINOR.", onElements(version, checkVersion, "version")),
		rule("sitemap/compression", must, xsd, "compression is a list of lower-case names, separated by commas.", onElements("zstd,gzip", checkCompression, "compression")),
		rule("sitemap/compression-offered", must, xsd, "compression lists the formats that are supported.", onElements("the codings of all collections", checkOffered, "compression")),
		rule("sitemap/update-freq", must, xsd, "updateFreq is hourly, daily, weekly or monthly.", onAttribute("updateFreq", "hourly, daily, weekly or monthly", func(s string) bool { return interval(s) > 0 }, "section")),
		rule("sitemap/section-pages", should, xsd, "pages of a section is a number, with ~ if it is an estimate.", onAttribute("pages", "such as 5000 or ~5000", isEstimate, "section")),
		rule("sitemap/type", must, xsd, "type of a collection is snapshot.", onAttribute("type", "snapshot", func(s string) bool { return s == "snapshot" }, "collection")),
		rule("sitemap/url", must, xsd, "url is the URL of the file.", onAttribute("url", "an absolute http or https URL", isAbsolute)),
		rule("sitemap/date-time", must, xsd, "generated, expires and since have the type dateTime.", allOf(
			onAttribute("generated", "such as 2025-01-15T23:00:00Z", isDateTime),
			onAttribute("expires", "such as 2025-01-15T23:00:00Z", isDateTime),
			onAttribute("since", "such as 2025-01-15T23:00:00Z", isDateTime),
		)),
		rule("sitemap/integer", must, xsd, "pages and size are integers.", allOf(
			onAttribute("pages", "a whole number", isCount, "collection", "delta"),
			onAttribute("size", "a whole number", isCount),
		)),
		rule("sitemap/section-declared", must, xsd, "The section of a collection is declared.", onElements("the name of an scp:section", checkKnownSection, "collection", "delta")),
		rule("sitemap/section", must, xsd, "section is the section of the file.", asDeclared(declaredSection)),
		rule("sitemap/kind", must, xsd, "An scp:collection is a snapshot, and an scp:delta is a delta.", asDeclared(declaredKind)),
		rule("sitemap/generated", must, xsd, "generated is the time at which the collection was generated.", asDeclared(declaredGenerated)),
		rule("sitemap/since", must, xsd, "since is the start of the changes of a delta.", asDeclared(declaredSince)),
		rule("sitemap/pages", must, xsd, "pages is the number of pages in the collection.", asDeclared(declaredPages)),
		rule("sitemap/size", must, xsd, "size is the compressed size of the file in bytes.", asDeclared(declaredSize)),
		rule("sitemap/expires", must, xsd, "A URL expires after its collection was generated.", onReferences("expires after generated", checkExpires)),
		rule("sitemap/not-expired", should, xsd, "The sitemap does not list expired URLs.", onReferences("collections that have not expired", checkExpired)),
	})
}

// siteCheck is a rule's function over the shared site context.
type siteCheck = check.SiteCheck[*siteContext]
