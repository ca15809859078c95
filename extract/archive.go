package extract

import (
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// evidence is how strongly a page appears to be a list of other pages.
type evidence uint8

const (
	noList   evidence = iota
	pageOf            // the address has a page number: a further page of a list or an article
	likeList          // the address or the body looks like a list, unless the content contradicts it
	isList            // the program that generated the page marks it as a list
)

// listEvidence evaluates the body classes that programs set, and the addresses that they use
// for lists.
func listEvidence(body *html.Node, u *url.URL) evidence {
	seen := bodyEvidence(attr(body, "class"))
	if seen == isList {
		return seen
	}
	return max(seen, pathEvidence(u.Path), queryEvidence(u))
}

// bodyEvidence reads the classes that WordPress, MediaWiki, Ghost and Drupal set on the body
// element.
func bodyEvidence(class string) evidence {
	if class == "" {
		return noList
	}
	has := func(words ...string) bool {
		for _, w := range words {
			if hasToken(class, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("mediawiki"):
		if has("ns-special") {
			return isList
		}
		if has("ns-14") { // categories
			return likeList
		}
	case has("single", "page-template", "post-template"), has("page") && !has("archive"):
		return noList // one post or page, perhaps the second part of it
	case has("tag-template", "author-template"): // Ghost
		return isList
	case has("archive") && has("category", "tag", "author", "date"), has("search") && has("search-results"): // WordPress
		return isList
	case has("archive", "search-results", "search-no-results", "paged", "path-taxonomy", "page-taxonomy-term", "path-search"):
		return likeList
	}
	return noList
}

// pathEvidence recognises the paths of lists by tag, category, author and date, of search
// results, and of further pages of lists.
func pathEvidence(path string) evidence {
	segments := strings.Split(strings.Trim(strings.ToLower(path), "/"), "/")
	last := len(segments) - 1
	if name, ext, ok := strings.Cut(segments[last], "."); ok && (ext == "html" || ext == "htm" || ext == "php") {
		segments[last] = name
	}
	found := noList
	switch s := segments[last]; {
	case last > 0 && segments[last-1] == "page" && isDigits(s):
		found, last = pageOf, last-2
	case strings.HasPrefix(s, "page") && isDigits(strings.TrimPrefix(s[4:], "-")):
		found, last = pageOf, last-1
	}
	if last < 0 {
		return found
	}
	segments = segments[:last+1]
	for i, s := range segments {
		switch s {
		case "tag", "tags", "category", "categories", "author", "authors":
			if last-i <= 1 {
				return likeList
			}
		case "taxonomy": // Drupal: /taxonomy/term/7
			if last-i == 2 && segments[i+1] == "term" {
				return likeList
			}
		case "search":
			if i == last || i == 0 && last <= 2 {
				return likeList
			}
		case "archive", "archives":
			if i == last {
				return likeList
			}
		}
		if strings.HasPrefix(s, "special:") || strings.HasPrefix(s, "category:") { // MediaWiki
			return likeList
		}
	}
	if isDate(segments) {
		return likeList
	}
	return found
}

// isDate reports whether a path ends in a month or a day of a month: 2024/05 or 2024/05/06. A
// year alone is a date only below the name of a list. Below the name of an article, as in
// the-title/2024/05, nothing is a date.
func isDate(segments []string) bool {
	at := len(segments)
	for at > 0 && isDigits(segments[at-1]) {
		at--
	}
	date := segments[at:]
	if len(date) == 0 || len(date) > 3 || len(date[0]) != 4 || !between(date[0], 1970, 2099) {
		return false
	}
	if len(date) == 1 {
		if at == 0 {
			return false
		}
		switch segments[at-1] {
		case "blog", "news", "posts", "archive", "archives", "date":
			return true
		}
		return false
	}
	if at > 0 && strings.Count(segments[at-1], "-") > 1 {
		return false
	}
	return between(date[1], 1, 12) && (len(date) == 2 || between(date[2], 1, 31))
}

func between(s string, low, high int) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= low && n <= high
}

// queryEvidence recognises the query parameters that WordPress and MediaWiki use for lists
// without pretty addresses, and page numbers.
func queryEvidence(u *url.URL) evidence {
	if u.RawQuery == "" {
		return noList
	}
	q := u.Query()
	if strings.HasSuffix(u.Path, "/") || strings.HasSuffix(u.Path, "/index.php") {
		switch title := strings.ToLower(q.Get("title")); {
		case strings.HasPrefix(title, "special:"), strings.HasPrefix(title, "category:"),
			q.Get("s") != "", q.Get("tag") != "", isDigits(q.Get("cat")), isDigits(q.Get("author")), isDigits(q.Get("m")) && len(q.Get("m")) >= 4:
			return likeList
		}
	}
	for _, key := range []string{"paged", "page"} {
		if v := q.Get(key); isDigits(v) && len(v) < 6 && strings.Trim(v, "0") != "" {
			return pageOf
		}
	}
	return noList
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// listsPosts reports whether most headings of the content are links to other pages, as in a
// list that shows each post in full.
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
