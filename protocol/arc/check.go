package arc

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// Rules returns one rule for each requirement of the specification on publishers that a client
// can check, in the order of its sections. The specification does not use the key words of RFC
// 2119. A MUST is a requirement of its schema (E.9) or its table of fields (E.4), or a
// prohibition. A SHOULD is a recommendation, an encouragement or an option.
//
// A rule checks only data that earlier rules accepted, so one fault causes one finding.
//
// The following statements have no rule:
//
//	E.2    reasons to have a list: not a requirement
//	E.4    ai_tags, ai_checksum, ai_snapshot, crawl_priority are optional:
//	       E.9 defines them
//	E.6    authenticated endpoints for partners: not visible without a key
//	E.7    polite crawling: a rule for clients
//	E.8    ai_checksum to detect changes server-side: not visible
//	E.10   an example
//	E.11   caches, validation, preferences: rules for clients; see the reader's tests
//	E.12   access control, monitoring, tokens: not visible
func Rules() []check.Rule {
	const must, should = check.Must, check.Should
	rules := []check.Rule{
		rule("E.3", "json", must, "The list is one JSON object, or its equivalent in YAML.", checkJSON),
		rule("E.3", "content-type", should, "A list in JSON has Content-Type: application/json. The specification does not make this a requirement.", checkContentType),
		rule("E.3.1", "snapshot", should, "A snapshot is an object with page, and its sections, groups, subgroups, blocks, fields and actions are arrays of objects (the convention's shape).", onEntries(checkShape)),
		rule("E.3.2", "json-ld", should, "JSON-LD on the home page that describes the list contains its URL.", checkPointer),
		rule("E.3.3", "parity", should, "The list in YAML names the pages of the list in JSON, with the same checksums and dates.", checkParity),

		rule("E.4", "url", must, "Each page has a url.", onEntries(checkHas("url", nil))),
		rule("E.4", "ai-indexable", must, "Each page has ai_indexable.", onEntries(checkHas("ai_indexable", nil))),
		rule("E.4", "lastmod", should, "Each page that may be indexed has lastmod.", onEntries(checkHas("lastmod", (*seenEntry).open))),
		rule("E.4", "lastmod-past", should, "lastmod is the time of the page's last change: not after generated_at.", checkPast),
		rule("E.4", "ai-summary", should, "Each page that may be indexed has ai_summary.", onEntries(checkHas("ai_summary", (*seenEntry).open))),
		rule("E.4", "same-site", should, "The pages are on the site.", checkSameSite),
		rule("E.4", "once", should, "Each page is listed once.", checkOnce),
		rule("E.4", "canonical-url", must, "url is the canonical URL of an existing page.", onPages(checkCanonical)),
		rule("E.4", "auth-required", should, "auth_required is true for pages that need authentication to view, and only for them.", onPages(checkAuth)),
		rule("E.4", "robots", should, "ai_indexable and robots_directive allow no more than the page itself does.", onPages(checkRobots)),

		rule("E.5", "well-known", should, "The list is at /arc-sitemap.json or /.well-known/arc-sitemap.json.", checkPlace),
		rule("E.5", "same", should, "Both locations have the same list.", checkSame),
		rule("E.5", "robots", should, "robots.txt names the list.", checkNamed),
		rule("E.5", "validator", should, "The list has an ETag or Last-Modified.", onList(checkValidator)),
		rule("E.5", "if-none-match", should, "The response to If-None-Match with the current tag is 304.", askProbe(kit.IfNoneMatch)),
		rule("E.5", "if-modified-since", should, "The response to If-Modified-Since with the current date is 304.", askProbe(kit.IfModifiedSince)),
		rule("E.5", "modified", should, "The response to If-None-Match with another tag is 200 with the list.", askProbe(kit.OtherTag)),
		rule("E.5", "gzip", should, "A list of 1,400 bytes or more supports gzip.", checkGzip),

		rule("E.6", "closed-minimal", should, "A page that must not be indexed is listed without summary, tags and snapshot.", onEntries(checkClosedSnapshot)),
		rule("E.6", "auth-snapshot", must, "The public list has no snapshot for a page with auth_required: true.", inPublic(onEntries(checkAuthSnapshot))),
		rule("E.6", "sensitive", must, "No snapshot of the public list has a sensitive or personal node.", inPublic(onEntries(checkSensitive))),
		rule("E.6", "policy", should, "The policy is at /.well-known/arc-policy.json.", checkPolicy),
		rule("E.6", "policy-json", should, "The policy is one JSON object: it is machine-readable.", checkPolicyJSON),
		rule("E.6", "policy-says", should, "The policy describes retention, access and approved AI consumers.", checkPolicyFacts),

		rule("E.7", "crawl-rate", should, `The list suggests a rate, such as "1/s".`, onList(checkRate)),
		rule("E.7", "robots-txt", should, "robots.txt allows the list, and the pages that the list allows to index.", checkRobotsTxt),
		rule("E.7", "contact", should, "The list names a contact (ai-crawl-contact).", onList(checkContact)),

		rule("E.8", "version", must, "arc_sitemap_version is the string 2.1, or another version 2.", onList(checkVersionMember)),
		rule("E.8", "deltas", should, "A large list has deltas.", checkDeltas),
		rule("E.8", "delta", should, "The delta of the day when the list was generated conforms to the schema of lists.", checkDelta),
		rule("E.8", "delta-parity", should, "An entry of that delta equals the page's entry in the list, and reports a change on that day or a deleted page.", checkDeltaParity),

		rule("E.9", "site", must, "site is an absolute URI.", onList(checkSite)),
		rule("E.9", "generated-at", must, "generated_at is a date-time (RFC 3339).", onList(checkGenerated)),
		rule("E.9", "pages", must, "pages is an array of objects.", onList(checkPages)),
		rule("E.9", "null", must, "No member is null.", checkNull),
	}
	for _, m := range memberTypes {
		rules = append(rules, rule("E.9", m.word, must, m.name+" is "+m.is.Want+".", onEntries(m.check)))
	}
	return append(rules,
		rule("E.11", "drift", should, "The page contains the titles and summaries of its snapshot.", onPages(checkDrift)),
		rule("E.11", "checksum", should, "ai_checksum, if it is the hash of a public document, matches the current page.", checkChecksum),
		rule("E.12", "pii", should, "No summary, tag or snapshot contains an e-mail address or a telephone number.", onEntries(checkPII)),
	)
}

// siteCheck is a rule's function over the shared site context.
type siteCheck = check.SiteCheck[*siteContext]

var rule = kit.Rule(Name, func(ctx context.Context, t *check.Target) (*siteContext, error) {
	s := &siteContext{SiteContext: kit.NewSiteContext(t)}
	return s, s.run(ctx)
})

// onList returns a check that runs f on the list of the site.
func onList(f func(l *seenList, fail check.Fail)) siteCheck {
	return kit.On(func(s *siteContext) *seenList {
		if s.list.fields == nil {
			return nil
		}
		return s.list
	}, f)
}

// onEntries returns a check that runs f on every entry of the list. f returns the fault and the
// requirement, both "" for a valid entry, and reports whether the rule applies to the entry.
func onEntries(f func(e *seenEntry) (got, want string, about bool)) siteCheck {
	return check.All(func(s *siteContext) []*seenEntry { return s.list.entries }, func(s *siteContext, e *seenEntry, fail check.Fail) bool {
		got, want, about := f(e)
		if about && got != "" {
			fail(s.list.url, e.at+": "+kit.Short(got), want)
		}
		return about
	})
}

// inPublic returns a check that runs f on a public list only. The check does not apply to a list
// that was fetched with a key (E.6).
func inPublic(f siteCheck) siteCheck {
	return func(ctx context.Context, s *siteContext, fail check.Fail) error {
		if s.Target.Restricted(s.list.resp) {
			return fmt.Errorf("the list was fetched with a key; check again without a key: %w", check.ErrNotApplicable)
		}
		return f(ctx, s, fail)
	}
}

// onPages returns a check that runs f on every sampled page. f reports whether the rule applies to
// the page. A failed request does not prevent the checks of other pages.
func onPages(f func(p *seenPage, fail check.Fail) bool) siteCheck {
	return check.Each(func(s *siteContext) []*seenPage { return s.pages }, func(_ context.Context, _ *siteContext, p *seenPage, fail check.Fail) (bool, error) {
		if check.IsInconclusive(p.err) {
			return false, p.err
		}
		return f(p, fail), nil
	})
}
