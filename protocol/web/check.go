package web

import (
	"context"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// Rules returns one rule for each sentence that binds publishers and that a client can check,
// ordered by subject. A rule's section starts with its specification: llmstxt is llmstxt.org,
// version 2; rfc6721-3 is section 3 of RFC 6721. The rules for a document apply only if the site
// has that document. The rules for robots.txt and sitemaps apply only if the site also has another
// document of this protocol.
//
// The following sentences have no rule:
//
//	llmstxt      what belongs in the file: only the owner knows
//	rfc7763-2    variant: optional, and only its own readers need it
//	rfc4287-4.2  texts and persons: feed readers tolerate errors in them, and
//	             depend on ids, times and links instead
//	rfc4287-5    signatures and encryption: not in use
//	rfc6721-4    by, comment and source of a tombstone: optional
//	rfc9309-2.3  redirects, statuses and caches: rules for crawlers
//	rfc9727-5    what an API should publish about itself: other specifications
func Rules() []check.Rule {
	const must, should = check.Must, check.Should
	return []check.Rule{
		rule("llmstxt", "alternate", should, "A page that has Markdown links to it with rel=alternate and type=text/markdown.", askPages(checkAlternate)),
		rule("llmstxt", "describedby", should, "A page links with rel=describedby to the llms.txt that covers it.", askPages(checkDescribed)),
		rule("rfc7763-2", "media-type", must, "Markdown has Content-Type: text/markdown.", askPages(checkMarkdownType)),
		rule("rfc7763-2", "charset", must, "text/markdown has the parameter charset.", askPages(checkCharset)),
		rule("rfc7763-2", "utf-8", must, "The text is in the character set that charset names.", askPages(checkMarkdownUTF8)),
		rule("rfc6596-3", "canonical", should, "A document with a page's content at another URL links to the page with rel=canonical.", askPages(checkCanonical)),
		rule("rfc9110-8.8.3", "etag", should, "Markdown has a validator: an ETag or a Last-Modified.", askPages(checkValidator)),
		rule("rfc9110-13.1.2", "if-none-match", must, "If-None-Match with the current tag gets a 304.", askForms(kit.IfNoneMatch)),
		rule("rfc9110-12.5.5", "vary", should, "A response that depends on Accept has Vary: Accept, both as HTML and as Markdown.", askPages(checkVary)),
		rule("rfc9110-12.5.1", "q", should, "A page that exists as HTML and as Markdown is sent in the form with the higher q.", askPages(checkPreference)),
		rule("rfc9110-12.5.1", "q0", should, "A form with q=0 is not sent if another form exists.", askPages(checkNever)),
		rule("rfc9110-12.5.1", "any", should, "A client that accepts any type gets the page, not Markdown.", askPages(checkAnything)),
		rule("rfc9110-8.8.1", "other-tag", must, "Two forms of a page do not have the same strong tag.", askPages(checkOtherTag)),

		rule("llmstxt", "title", must, "llms.txt starts with the name of the site as a heading of level 1.", onLLMs(checkLLMsTitle)),
		rule("llmstxt", "one-title", must, "llms.txt has one heading of level 1.", onLLMs(problems("one-title", "one heading of level 1"))),
		rule("llmstxt", "no-other-headings", must, "The text before the sections has no headings.", onLLMs(problems("no-other-headings", "no heading before the first of level 2"))),
		rule("llmstxt", "file-list", must, "An entry of a list of files is a link, with optional notes after a colon.", onLLMs(problems("file-list", "- [name](url): notes"))),
		rule("llmstxt", "text", should, "llms.txt is text in UTF-8, not HTML.", onLLMs(checkLLMsText)),
		rule("llmstxt", "size", should, "llms.txt has fewer than 50,000 characters, which readers can process at once.", onLLMs(checkLLMsSize)),
		rule("llmstxt", "links", should, "The documents that llms.txt names exist.", checkLLMsLinks),

		rule("rfc4287-2", "well-formed", must, "An Atom feed is well-formed XML with the root feed.", onAtom(checkAtomXML)),
		rule("rfc4287-7", "media-type", should, "An Atom feed has Content-Type: application/atom+xml.", onAtom(checkAtomType)),
		rule("rfc4287-4.1.1", "id", must, "A feed has one id, an absolute IRI.", onFeed(checkFeedID)),
		rule("rfc4287-4.1.1", "title", must, "A feed has one title.", onFeed(checkFeedTitle)),
		rule("rfc4287-4.1.1", "updated", must, "A feed has one updated.", onFeed(checkFeedUpdated)),
		rule("rfc4287-4.1.1", "author", must, "A feed has an author, unless all of its entries have one.", onFeed(checkFeedAuthor)),
		rule("rfc4287-4.1.1", "self", should, "A feed has a link with rel=self.", onFeed(checkFeedSelf)),
		rule("rfc4287-4.1.1", "same-entry", should, "Entries with the same id have different times.", onFeed(checkSameEntry)),
		rule("rfc4287-4.1.2", "id", must, "An entry has one id, an absolute IRI.", onFeed(checkEntryID)),
		rule("rfc4287-4.1.2", "title", must, "An entry has one title.", onFeed(checkEntryTitle)),
		rule("rfc4287-4.1.2", "updated", must, "An entry has one updated.", onFeed(checkEntryUpdated)),
		rule("rfc4287-4.1.2", "link", must, "An entry without content has a link with rel=alternate.", onFeed(checkEntryLink)),
		rule("rfc4287-3.3", "date", must, "Times are as in RFC 3339, with T and Z in upper case.", onFeed(checkFeedDates)),
		rule("rfc6721-3", "ref", must, "A tombstone has ref: the id of the deleted entry.", onFeed(checkTombstoneRef)),
		rule("rfc6721-3", "when", must, "A tombstone has when, a time as in RFC 3339.", onFeed(checkTombstoneWhen)),

		rule("jsonfeed-top", "json", must, "A JSON Feed is a JSON object.", onJSONFeed(checkJSONFeedObject)),
		rule("jsonfeed-top", "version", must, "version is the URL of version 1 or 1.1.", onJSONFeed(checkJSONFeedVersion)),
		rule("jsonfeed-top", "title", must, "title is a string.", onJSONFeed(checkJSONFeedTitle)),
		rule("jsonfeed-top", "items", must, "items is an array of objects.", onJSONFeed(checkJSONFeedItems)),
		rule("jsonfeed-top", "feed-url", should, "feed_url is the URL of the feed.", onJSONFeed(checkJSONFeedURL)),
		rule("jsonfeed-items", "id", must, "An item has a unique id, a string.", onJSONFeed(checkJSONItemID)),
		rule("jsonfeed-items", "content", must, "An item has content_html or content_text.", onJSONFeed(checkJSONItemContent)),
		rule("jsonfeed-items", "date", must, "Dates are as in RFC 3339.", onJSONFeed(checkJSONItemDate)),
		rule("jsonfeed-discovery", "media-type", should, "A JSON Feed has Content-Type: application/feed+json.", onJSONFeed(checkJSONFeedType)),

		rule("sitemaps-format", "xml", must, "A sitemap is XML in UTF-8 with the root urlset or sitemapindex of the namespace.", onSitemaps(checkSitemapXML)),
		rule("sitemaps-format", "pages", should, "The pages that a sitemap names exist.", checkPagesThere),
		rule("sitemaps-format", "loc", must, "An entry has a loc: an absolute URL of fewer than 2,048 characters.", onSitemaps(checkLoc)),
		rule("sitemaps-format", "lastmod", must, "lastmod is a date or a time in W3C form.", onSitemaps(checkLastmod)),
		rule("sitemaps-format", "changefreq", must, "changefreq is one of the seven defined words.", onSitemaps(checkChangeFreq)),
		rule("sitemaps-format", "priority", must, "priority is a number from 0.0 to 1.0.", onSitemaps(checkPriority)),
		rule("sitemaps-index", "limits", must, "A sitemap has at most 50,000 URLs, and its size is at most 50 MB.", onSitemaps(checkSitemapLimits)),
		rule("sitemaps-location", "host", must, "The pages of a sitemap are on its own host, below its folder.", onSitemaps(checkSitemapHost)),
		rule("sitemaps-index", "there", must, "The sitemaps that an index or robots.txt names exist.", checkSitemapsThere),

		rule("rfc9309-2.3", "reachable", should, "The response for robots.txt is not a server error, which would block every robot.", checkRobotsReachable),
		rule("rfc9309-2.3", "media-type", must, "robots.txt has Content-Type: text/plain.", onRobots(checkRobotsType)),
		rule("rfc9309-2.3", "utf-8", must, "robots.txt is UTF-8.", onRobots(checkRobotsUTF8)),
		rule("rfc9309-2.2", "line", must, "A line of robots.txt is empty, a comment, or a name, a colon and a value.", onRobots(checkRobotsLine)),
		rule("rfc9309-2.2", "group", must, "Rules are in a group, after its user-agent lines.", onRobots(checkRobotsGroup)),
		rule("rfc9309-2.2.1", "product-token", must, "user-agent names * or a product, without a version, spaces and the like.", onRobots(checkRobotsToken)),
		rule("rfc9309-2.2.2", "path", must, "The path of a rule is empty, or starts with / or *.", onRobots(checkRobotsPath)),
		rule("rfc9309-2.5", "size", should, "robots.txt is no longer than the 500 KiB that every crawler reads.", onRobots(checkRobotsSize)),
		rule("sitemaps-robots", "absolute", must, "A Sitemap line of robots.txt has an absolute URL.", onRobots(checkRobotsSitemap)),

		rule("rfc9727-4", "linkset", must, "The API catalog is application/linkset+json.", onCatalog(checkCatalogType)),
		rule("rfc9264-4.2", "json", must, "A set of links is an object whose linkset is an array of objects with links, each with an href.", onCatalog(checkCatalogLinks)),
		rule("rfc9727-4", "profile", should, "The API catalog declares its profile.", onCatalog(checkCatalogProfile)),
		rule("rfc9727-2", "head", must, "The response to a HEAD for the API catalog has a Link field.", checkCatalogHead),
	}
}

// siteCheck is the function of a rule that reads the shared siteContext.
type siteCheck = check.SiteCheck[*siteContext]

var rule = kit.Rule(Name, func(ctx context.Context, t *check.Target) (*siteContext, error) {
	s := &siteContext{SiteContext: kit.NewSiteContext(t)}
	return s, s.run(ctx)
})

// askPages returns a check that runs f on every sampled page. f reports whether the rule applies to
// the page. A failed request does not prevent the checks of other pages.
func askPages(f func(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error)) siteCheck {
	return check.Each(func(s *siteContext) []*seenPage { return s.pages }, f)
}

func onLLMs(f func(l *seenLLMs, fail check.Fail)) siteCheck {
	return kit.On(func(s *siteContext) *seenLLMs { return s.llms }, f)
}

func onAtom(f func(a *seenAtom, fail check.Fail)) siteCheck {
	return kit.On(func(s *siteContext) *seenAtom { return s.atom }, f)
}

// onFeed is like onAtom, for feeds that could be parsed.
func onFeed(f func(a *seenAtom, fail check.Fail)) siteCheck {
	return kit.On(func(s *siteContext) *seenAtom {
		if s.atom == nil || s.atom.feed == nil {
			return nil
		}
		return s.atom
	}, f)
}

func onJSONFeed(f func(j *seenJSONFeed, fail check.Fail)) siteCheck {
	return kit.On(func(s *siteContext) *seenJSONFeed { return s.json }, f)
}

func onSitemaps(f func(m *seenSitemap, fail check.Fail)) siteCheck {
	return check.All(func(s *siteContext) []*seenSitemap { return s.sitemaps }, func(_ *siteContext, m *seenSitemap, fail check.Fail) bool {
		f(m, fail)
		return true
	})
}

func onRobots(f func(r *seenRobots, fail check.Fail)) siteCheck {
	return kit.On(func(s *siteContext) *seenRobots { return s.robots }, f)
}

func onCatalog(f func(c *seenCatalog, fail check.Fail)) siteCheck {
	return kit.On(func(s *siteContext) *seenCatalog { return s.catalog }, f)
}
