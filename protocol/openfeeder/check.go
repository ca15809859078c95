package openfeeder

import (
	"context"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// Rules returns one rule for each requirement, parameter, field, error and header of the
// specification that a client can check. A member that a schema requires, or whose type it defines,
// is a MUST.
//
// A rule checks only data that earlier rules accepted, so one fault causes one finding.
//
// The following requirements have no rule:
//
//	3.4  clients SHOULD save the token: covered by the reader's tests
//	3.4  added and updated differ by dates that a client cannot see; servers MAY
//	     place all changes in updated
//	3.4  the index without since MUST work: the rules of 3.3 check it
//	3.4  the number of tombstones is recommended and not visible
//	4    advertisements, menus, banners, sidebars, footers, widgets and comments: a
//	     client cannot recognize them in text; scripts and pixels are visible
//	5    recommended, but not visible to a client
//	6    servers SHOULD cache responses: X-OpenFeeder-Cache reports this (9)
//	7    sites MAY require authentication: rules check sites that do
//	10   options of the implementation; drafts and personal data: not visible to a client
//	12   the analytics events exist only on the server
func Rules() []check.Rule {
	const must, should = check.Must, check.Should
	return []check.Rule{
		rule("2", "well-known", must, "The discovery document is at /.well-known/openfeeder.json.", checkWellKnown),
		rule("2", "public", must, "The discovery document is publicly accessible.", checkPublic),
		rule("2", "status", must, "The response for the discovery document is 200.", checkStatus),
		rule("2", "content-type", must, "The discovery document has Content-Type: application/json.", checkContentType),
		rule("2.1", "object", must, "The discovery document is a JSON object.", checkObject),
		rule("2.1", "version", must, "version is 1.0.", aboutField(isVersion, "version")),
		rule("2.1", "site-name", must, "site.name is a string.", aboutField(isFullText, "site", "name")),
		rule("2.1", "site-url", must, "site.url is the canonical base URL.", aboutField(isURL, "site", "url")),
		rule("2.1", "site-origin", should, "site.url has the origin where the feed was found.", checkSiteOrigin),
		rule("2.1", "site-language", must, "site.language is a BCP 47 language tag.", aboutField(isTag, "site", "language")),
		rule("2.1", "site-description", must, "site.description, if present, is a string.", aboutField(kit.IsText.Optional(), "site", "description")),
		rule("2.1", "feed-endpoint", must, "feed.endpoint is a relative or absolute URL.", aboutField(isReference, "feed", "endpoint")),
		rule("2.1", "feed-type", must, "feed.type is paginated, stream or static.", aboutField(kit.OneOf("paginated", "stream", "static").Optional(), "feed", "type")),
		rule("2.1", "capabilities", must, "capabilities is an array of strings.", aboutField(kit.IsTexts.Optional(), "capabilities")),
		rule("2.1", "contact", must, "contact, if present, is an e-mail address or a URL.", aboutField(isContact.Optional(), "contact")),

		rule("3", "endpoint", must, "The discovery document contains the URL of the content endpoint.", checkEndpoint),
		rule("3.1", "url", must, "url returns the page with the given path.", checkURLParameter),
		rule("3.1", "q", must, "q returns content that is relevant to a question.", checkQuestion),
		rule("3.1", "q-later", should, "q searches the whole site, including pages at the end of the index.", checkQuestionLater),
		rule("3.1", "page", must, "page selects a page of the index, 1 by default.", checkPageParameter),
		rule("3.1", "limit", must, "limit is the maximum number of chunks.", checkLimit),
		rule("3.1", "limit-index", should, "limit is the maximum number of items on a page of the index.", checkIndexLimit),
		rule("3.1", "limit-default", must, "limit is 10 by default.", checkLimitDefault),
		rule("3.1", "limit-max", must, "limit is at most 50.", checkLimitMax),
		rule("3.1", "min-score", must, "min_score excludes chunks with a lower relevance.", checkMinScore),
		rule("3.1", "min-score-alone", must, "min_score applies only with q.", checkMinScoreAlone),

		rule("3.2", "schema", must, "schema is openfeeder/1.0.", pageField(isSchema, "schema")),
		rule("3.2", "canonical-url", must, "url is the canonical URL of the content.", checkPageURL),
		rule("3.2", "title", must, "title is a string.", pageField(kit.IsText, "title")),
		rule("3.2", "author", must, "author, if present, is a string or null.", pageField(kit.IsText.Optional(), "author")),
		rule("3.2", "author-there", should, "author is present, null if unknown.", pageField(there, "author")),
		rule("3.2", "published", must, "published is an ISO 8601 datetime or null.", pageField(isDate.OrNull(), "published")),
		rule("3.2", "updated", must, "updated, if present, is an ISO 8601 datetime or null.", pageField(isDate.Optional(), "updated")),
		rule("3.2", "updated-there", should, "updated is present, null if unknown.", pageField(there, "updated")),
		rule("3.2", "language", must, "language is a BCP 47 language tag.", pageField(isTag, "language")),
		rule("3.2", "summary", must, "summary is a string of 1 to 3 sentences.", pageField(kit.IsText, "summary")),
		rule("3.2", "chunks", must, "chunks is an array of objects.", pageField(isObjects, "chunks")),
		rule("3.2", "chunk-id", must, "A chunk's id is a string, unique within the response.", checkChunkID),
		rule("3.2", "chunk-text", must, "A chunk's text is a string of clean text.", chunkField(kit.IsText, "text")),
		rule("3.2", "chunk-type", must, "A chunk's type is paragraph, heading, list, code or quote.", chunkField(kit.OneOf("paragraph", "heading", "list", "code", "quote"), "type")),
		rule("3.2", "no-relevance", must, "relevance is null without q.", chunkField(nothing.Optional().OrNull(), "relevance")),
		rule("3.2", "relevance", must, "relevance is a number from 0 to 1 with q.", checkRelevance),
		rule("3.2", "total-chunks", must, "meta.total_chunks is the total number of chunks.", checkTotal),
		rule("3.2", "returned-chunks", must, "meta.returned_chunks is the number of chunks in the response.", checkReturned),

		rule("3.3", "schema", must, "An index's schema is openfeeder/1.0.", indexField(isSchema, "schema")),
		rule("3.3", "type", must, "An index's type is index.", indexField(kit.OneOf("index"), "type")),
		rule("3.3", "page", must, "page is the number of this page of the index.", indexField(kit.IsNumber, "page")),
		rule("3.3", "total-pages", must, "total_pages is the number of pages of the index.", indexField(kit.IsNumber, "total_pages")),
		rule("3.3", "items", must, "items is an array of objects.", indexField(isObjects, "items")),
		rule("3.3", "item-url", must, "An item's url is the URL of its page, which belongs to the site.", checkItemURL),
		rule("3.3", "item-title", must, "An item's title is a string.", itemField(kit.IsText, "title")),
		rule("3.3", "item-published", must, "An item's published is an ISO 8601 datetime, or null.", itemField(isDate.OrNull(), "published")),
		rule("3.3", "item-summary", must, "An item's summary is a string.", itemField(kit.IsText, "summary")),

		rule("3.4", "since-date", must, "since accepts an RFC 3339 datetime.", checkSinceDate),
		rule("3.4", "since-updated", must, "since lists the pages that were updated after it, even those published before it.", checkSinceUpdated),
		rule("3.4", "since-token", must, "since accepts a sync_token.", checkSinceToken),
		rule("3.4", "openfeeder-version", must, "openfeeder_version is 1.0.", syncField(isVersion, "openfeeder_version")),
		rule("3.4", "sync-since", must, "sync.since is the lower bound.", syncField(isDate, "sync", "since")),
		rule("3.4", "as-of", must, "sync.as_of is an RFC 3339 datetime.", syncField(isDate, "sync", "as_of")),
		rule("3.4", "sync-token", must, "sync.sync_token is base64 of a JSON object with t, a datetime.", checkToken),
		rule("3.4", "counts", must, "sync.counts are the numbers of added, updated and deleted pages.", checkCounts),
		rule("3.4", "added", must, "added is an array of page objects.", checkChanged("added")),
		rule("3.4", "updated", must, "updated is an array of page objects.", checkChanged("updated")),
		rule("3.4", "deleted", must, "deleted is an array of objects.", syncField(isObjects, "deleted")),
		rule("3.4", "tombstone-url", must, "A tombstone's url is the canonical URL of the page.", checkTombstones("url", isURL)),
		rule("3.4", "tombstone-deleted-at", must, "A tombstone's deleted_at is an RFC 3339 datetime.", checkTombstones("deleted_at", isDate)),
		rule("3.4", "until", must, "until is the end of the window.", checkUntil),
		rule("3.4", "until-alone", must, "With until but no since, the reply has no since.", checkUntilAlone),
		rule("3.4", "until-deleted", must, "With until but no since, deleted is empty.", checkUntilDeleted),
		rule("3.4", "until-token", must, "until does not accept a sync_token.", checkUntilToken),
		rule("3.4", "until-before-since", should, "until before since gets a 400 INVALID_PARAM.", checkUntilBefore),
		rule("3.4", "q-wins", must, "since and until are ignored with q.", checkQWins),
		rule("3.4", "deleted-tracking", must, "sync.deleted_tracking, if present, is true or false.", syncField(kit.IsBool.Optional(), "sync", "deleted_tracking")),

		rule("4", "no-scripts", must, "Content has no tracking scripts or pixels.", checkScripts),
		rule("6", "invalidated", must, "The response for a changed page is not older than the change.", checkInvalidated),
		rule("6", "cached", should, "meta.cached reports whether the response was cached.", pageField(kit.IsBool, "meta", "cached")),
		rule("6", "cache-age-seconds", should, "meta.cache_age_seconds is a number or null.", pageField(kit.IsNumber.OrNull(), "meta", "cache_age_seconds")),
		rule("7", "capability", must, "A site whose endpoint needs authentication lists auth in capabilities.", checkAuth),
		rule("7", "bearer", should, "An endpoint that needs authentication uses Bearer tokens.", checkBearer),
		rule("8", "not-found", must, "The response for a missing page is an error.", checkNotFound),
		rule("8", "schema", must, "An error's schema is openfeeder/1.0.", errorField(isSchema, "schema")),
		rule("8", "code", must, "error.code identifies the error.", errorField(isCode, "error", "code")),
		rule("8", "message", must, "error.message describes the error.", errorField(isFullText, "error", "message")),
		rule("9", "x-openfeeder", should, "Responses have X-OpenFeeder: 1.0.", checkVersionField),
		rule("9", "x-openfeeder-cache", should, "Responses have X-OpenFeeder-Cache: HIT or MISS.", checkCacheField),
		rule("10", "author", must, "Authors are display names without e-mail addresses.", checkAuthor),
		rule("10", "exclusions", should, "Account, checkout and admin pages are not exposed.", checkExclusions),
		rule("12", "intent", should, "X-OpenFeeder-Intent does not change responses.", checkIntent),
		rule("12", "cookies", should, "Analytics need no cookies: no response sets one.", checkCookies),
		rule("11", "robots-txt", should, "robots.txt allows the discovery document and the endpoint.", checkRobots),
	}
}

// siteCheck is a rule's function over the shared site context.
type siteCheck = check.SiteCheck[*siteContext]

var rule = kit.Rule(Name, func(ctx context.Context, t *check.Target) (*siteContext, error) {
	s := &siteContext{SiteContext: kit.NewSiteContext(t)}
	return s, s.run(ctx)
})
