package extract

import (
	"path"
	"strings"

	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// generators are the first words of the names of programs that generate manuals and forums.
var generators = map[millrace.PageKind]string{
	millrace.Documentation: "docbook publican sphinx docutils mkdocs docusaurus vitepress vuepress gitbook mdbook doxygen javadoc antora asciidoc makeinfo texi2any gtk-doc rustdoc latex2html pdoc starlight nextra docsy mintlify",
	millrace.Forum:         "discourse phpbb vbulletin xenforo flarum nodebb mybb smf invision",
}

// guessKind returns the kind that the page declares by its metadata, its generator or its URL, or "".
func (m *meta) guessKind() millrace.PageKind {
	for i := range m.ldObjects {
		t := &m.ldObjects[i]
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
		for kind, names := range generators {
			for name := range strings.FieldsSeq(names) {
				if strings.HasPrefix(g, name) {
					return kind
				}
			}
		}
	}
	if len(m.c.html.Attr) > 0 && (hasAttr(m.c.html, "data-content_root") || hasAttr(m.c.body, "data-md-color-scheme")) || m.c.isManual() {
		return millrace.Documentation
	}
	host, where := strings.ToLower(m.url.Hostname()), strings.ToLower(m.url.Path)
	label, _, _ := strings.Cut(host, ".")
	switch label {
	case "docs", "doc", "documentation", "developer", "developers", "devdocs":
		return millrace.Documentation
	case "forum", "forums", "discuss", "community", "discourse":
		return millrace.Forum
	}
	for segment := range strings.SplitSeq(strings.Trim(where, "/"), "/") {
		switch segment {
		case "docs", "documentation", "manual", "reference", "handbook":
			return millrace.Documentation
		case "forum", "forums", "threads", "topic", "viewtopic.php", "showthread.php", "discussion", "discussions", "questions":
			return millrace.Forum
		}
	}
	if m.list == pageOf {
		return millrace.Archive
	}
	for segment := range strings.SplitSeq(strings.Trim(where, "/"), "/") {
		switch segment {
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

// isManual reports whether a document without a generator has the layout of Sphinx, mdBook,
// RDoc, DocBook or the tool of Node's own manual.
func (c *collected) isManual() bool {
	if hasClass(c.body, "apidoc") && strings.HasPrefix(attr(c.body, "id"), "api-section-") {
		return true // Node
	}
	for _, e := range c.heads {
		if e.DataAtom != atom.Link || !strings.Contains(attr(e, "rel"), "stylesheet") {
			continue
		}
		href, _, _ := strings.Cut(attr(e, "href"), "?")
		dir, name := path.Split(href)
		if strings.HasSuffix(dir, "_static/") && name == "pygments.css" || // Sphinx
			strings.HasPrefix(name, "ayu-highlight") || // mdBook
			strings.HasSuffix(dir, "css/") && name == "rdoc.css" {
			return true
		}
	}
	for _, h := range c.headings[:min(len(c.headings), 3)] {
		box := h.Parent
		for steps := 0; box != nil && steps < 2; steps++ {
			box = box.Parent
		}
		if box != nil && hasClass(h, "title") && hasClass(box, "titlepage") {
			return true // DocBook
		}
	}
	for i := range c.boxes {
		b := &c.boxes[i]
		switch {
		case b.flags&hasMain != 0 && b.tag == atom.Div && attr(b.n, "role") == "main" && hasClass(b.n, "body"):
			return true // older themes of Sphinx
		case b.tag == atom.Dl && hasClass(b.n, "py") && hasClass(b.n, "function", "class", "method", "data", "attribute", "exception", "module"):
			return true // Python domain of Sphinx
		}
	}
	return false
}

// kind returns the kind of a page and the source of the kind, or "" for both if unknown. l is the
// located content.
func (m *meta) kind(l *located, blocks []millrace.Block) (millrace.PageKind, string) {
	root := &l.c.boxes[l.at]
	if m.list == isList {
		return millrace.Archive, "declared"
	}
	index := false // index page of a blog or a news section
	if name := path.Base(strings.ToLower(m.url.Path)); m.list == noList && (m.guess == "" || m.guess == millrace.Article) {
		index = name == "blog" || name == "news"
	}
	if index || m.list == likeList || m.guess == millrace.Archive {
		// A list of links, or of texts with links. If there are fewer than three links, the page
		// must contain little else.
		long := root.anchors >= 3 && (root.links*4 > root.words || root.prose < 40*root.anchors)
		switch {
		case !long && (root.anchors == 0 || root.words >= 60*root.anchors) && !listsPosts(l.c, l.root):
		case index:
			return millrace.Listing, "structure"
		default:
			return millrace.Archive, "structure"
		}
	}
	if m.list == pageOf && m.guess == millrace.Article && listsPosts(l.c, l.root) {
		return millrace.Archive, "structure" // the declared articles are the posts in the list
	}
	if m.guess != "" && m.guess != millrace.Archive {
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
