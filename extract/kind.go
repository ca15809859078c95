package extract

import (
	"net/url"
	"strings"

	"github.com/millrace/millrace"
)

// generators say by their name what they make.
var generators = []struct {
	prefix string
	kind   millrace.PageKind
}{
	{"docbook", millrace.Documentation},
	{"sphinx", millrace.Documentation},
	{"mkdocs", millrace.Documentation},
	{"docusaurus", millrace.Documentation},
	{"vitepress", millrace.Documentation},
	{"vuepress", millrace.Documentation},
	{"gitbook", millrace.Documentation},
	{"mdbook", millrace.Documentation},
	{"doxygen", millrace.Documentation},
	{"javadoc", millrace.Documentation},
	{"antora", millrace.Documentation},
	{"asciidoctor", millrace.Documentation},
	{"starlight", millrace.Documentation},
	{"nextra", millrace.Documentation},
	{"docsy", millrace.Documentation},
	{"mintlify", millrace.Documentation},
	{"discourse", millrace.Forum},
	{"phpbb", millrace.Forum},
	{"vbulletin", millrace.Forum},
	{"xenforo", millrace.Forum},
	{"flarum", millrace.Forum},
	{"nodebb", millrace.Forum},
	{"mybb", millrace.Forum},
	{"smf", millrace.Forum},
	{"invision", millrace.Forum},
}

// guessKind gives the kind that the page declares, by its data, its generator
// or its address; "" if it declares none.
func (m *meta) guessKind() millrace.PageKind {
	if isArchive(m) {
		return millrace.Archive
	}
	for i := range m.things {
		t := &m.things[i]
		switch {
		case t.is("DiscussionForumPosting", "QAPage", "Question"):
			return millrace.Forum
		case t.is("TechArticle", "APIReference"):
			return millrace.Documentation
		case t.isArticle():
			return millrace.Article
		case t.is("Product", "ProductGroup"):
			return millrace.Product
		case t.is("CollectionPage") && m.firstNamed("og:type") != "article":
			return millrace.Collection
		case t.is("SearchResultsPage"):
			return millrace.Archive
		}
	}
	for _, g := range m.named["generator"] {
		g = strings.ToLower(g)
		for _, known := range generators {
			if strings.HasPrefix(g, known.prefix) {
				return known.kind
			}
		}
	}
	if len(m.c.html.Attr) > 0 && (hasAttr(m.c.html, "data-content_root") || hasAttr(m.c.body, "data-md-color-scheme")) {
		return millrace.Documentation
	}
	host, path := strings.ToLower(m.url.Hostname()), strings.ToLower(m.url.Path)
	label, _, _ := strings.Cut(host, ".")
	switch label {
	case "docs", "doc", "documentation", "developer", "developers", "devdocs":
		return millrace.Documentation
	case "forum", "forums", "discuss", "community", "discourse":
		return millrace.Forum
	}
	for segment := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		switch segment {
		case "docs", "documentation", "manual", "reference", "handbook":
			return millrace.Documentation
		case "forum", "forums", "threads", "topic", "viewtopic.php", "showthread.php", "discussion", "discussions", "questions":
			return millrace.Forum
		case "products", "product", "dp":
			return millrace.Product
		case "collections", "collection":
			return millrace.Collection
		}
	}
	switch t := strings.ToLower(m.firstNamed("og:type")); {
	case strings.HasSuffix(t, "article"), strings.HasPrefix(t, "article"):
		return millrace.Article
	case strings.HasPrefix(t, "product"), strings.HasPrefix(t, "og:product"):
		return millrace.Product
	}
	return ""
}

// isArchive reports whether the page is a list of other pages by the address
// that tools give such lists, or by what WordPress says of its body.
func isArchive(m *meta) bool {
	if hasClass(m.c.body, "archive", "search-results", "paged") && !hasClass(m.c.body, "single", "page-template") {
		return true
	}
	return archivePath(m.url)
}

func archivePath(u *url.URL) bool {
	segments := strings.Split(strings.Trim(strings.ToLower(u.Path), "/"), "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case "tag", "tags", "category", "categories", "author", "authors":
			if len(segments)-i <= 2 || segments[len(segments)-2] == "page" {
				return true
			}
		case "page":
			if !last && isDigits(segments[i+1]) {
				return true
			}
		case "search":
			if last {
				return true
			}
		}
	}
	return u.Query().Get("s") != "" && u.Path == "/"
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// kind gives the kind of a page once its content is known, and its source.
func (m *meta) kind(l *located, blocks []millrace.Block) (millrace.PageKind, string) {
	root := &l.c.boxes[l.at]
	switch m.guess {
	case millrace.Archive:
		// A list of links, or of short texts with links; with less than three
		// of them only if there is hardly anything else.
		long := root.anchors >= 3 && (root.links*4 > root.words || root.prose < 40*root.anchors)
		if long || root.anchors > 0 && root.words < 60*root.anchors {
			return millrace.Archive, "structure"
		}
	case "":
	default:
		return m.guess, "declared"
	}
	switch {
	case len(blocks) == 0:
		return "", ""
	case l.kind == millrace.Forum:
		return millrace.Forum, "structure"
	case root.links*2 > root.words && root.anchors >= 10:
		return millrace.Listing, "structure"
	case root.prose >= 150:
		return millrace.Article, "structure"
	}
	return "", ""
}
