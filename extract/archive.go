package extract

import (
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// evidence is how strongly a page appears to be a list of other pages.
type evidence uint8

const (
	noList   evidence = iota
	pageOf            // the URL has a page number: the page is a later page of a list or an article
	likeList          // the URL or the body looks like that of a list, but the content may contradict this
	isList            // the program that generated the page marks it as a list
)

// URLs that content management systems use for lists by tag, category, author and date, for search
// results, and for later pages of lists. In a URL with a date, no segment before the date has the
// form of a title.
var (
	listPath = regexp.MustCompile(`(?i)/(?:tags?|category|categories|authors?)(?:/[^/]+)?$|/(?:search|archives?)$|^/search(?:/[^/]+){0,2}$|/taxonomy/term/[^/]+$|/(?:special|category):|` +
		`^(?:/[^-/]*(?:-[^-/]*)?)*/(?:19[789]\d|20\d\d)/(?:0?[1-9]|1[0-2])(?:/(?:0?[1-9]|[12]\d|3[01]))?$|/(?:blog|news|posts|archives?|date)/(?:19[789]\d|20\d\d)$`)
	listQuery = regexp.MustCompile(`(?i)(?:/|/index\.php)\?(?:.*&)?(?:title=(?:special|category)(?::|%3A)|(?:s|tag)=[^&]|(?:cat|author)=\d+(?:&|$)|m=\d{4,}(?:&|$))`)
	pagePath  = regexp.MustCompile(`(?i)/page/\d+$|/page-?\d+$`)
	pageQuery = regexp.MustCompile(`[?&](?:paged|page)=0*[1-9]\d{0,4}(?:&|$)`)
)

// listEvidence evaluates the body classes and URLs that content management systems use for lists.
func listEvidence(body *html.Node, u *url.URL) evidence {
	seen := bodyEvidence(body)
	where := strings.TrimSuffix(u.Path, "/")
	for _, ext := range []string{".html", ".htm", ".php"} {
		where = strings.TrimSuffix(where, ext)
	}
	path := pagePath.ReplaceAllString(where, "")
	switch {
	case seen == isList:
	case listPath.MatchString(path), listQuery.MatchString(u.RequestURI()):
		seen = likeList
	case path != where, pageQuery.MatchString(u.RequestURI()):
		seen = max(seen, pageOf)
	}
	return seen
}

// bodyEvidence evaluates the classes that WordPress, MediaWiki, Ghost and Drupal set on the body
// element.
func bodyEvidence(body *html.Node) evidence {
	has := func(words ...string) bool { return hasClass(body, words...) }
	switch {
	case has("mediawiki"):
		if has("ns-special") {
			return isList
		}
		if has("ns-14") { // namespace of categories
			return likeList
		}
	case has("single", "page-template", "post-template"), has("page") && !has("archive"):
		return noList // one post or page, or its second part
	case has("tag-template", "author-template"): // Ghost
		return isList
	case has("archive") && has("category", "tag", "author", "date"), has("search") && has("search-results"): // WordPress
		return isList
	case has("archive", "search-results", "search-no-results", "paged", "path-taxonomy", "page-taxonomy-term", "path-search"):
		return likeList
	}
	return noList
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// listsPosts reports whether at least two headings of the content, and at least half of all, are
// links to other pages, as in a list that shows posts in full.
func listsPosts(c *collected, root *html.Node) bool {
	links, all := 0, 0
	for _, h := range c.headings {
		if h == c.titleNode || !isAncestor(root, h) {
			continue
		}
		all++
		a := findTag(h, atom.A)
		if a == nil && h.Parent != nil && h.Parent.DataAtom == atom.A {
			a = h.Parent
		}
		if href := attr(a, "href"); href != "" && href[0] != '#' && !isPermalink(a) && len(plainText(a))*5 >= len(headingText(h))*4 {
			links++
		}
	}
	return links >= 2 && links*2 >= all
}
