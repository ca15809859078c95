package extract

import (
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/millrace/millrace"
)

// TestListAddress classifies addresses that common programs use for lists, and addresses that only
// look like them.
func TestListAddress(t *testing.T) {
	for address, want := range map[string]evidence{
		// WordPress: with and without permalinks, also in a subfolder
		"/tag/corn/": likeList, "/category/corn": likeList, "/author/ann/": likeList, "/blog/category/corn/page/3/": likeList,
		"/2024/05/": likeList, "/2024/05/06/": likeList, "/blog/2024/05": likeList, "/2024/05/page/2/": likeList, "/archives/date/2024": likeList,
		"/?s=corn": likeList, "/blog/?s=corn": likeList, "/?cat=3": likeList, "/?tag=corn": likeList, "/?author=1": likeList, "/?m=202405": likeList, "/search/corn/": likeList,
		"/page/2/": pageOf, "/blog/page/12": pageOf, "/?paged=2": pageOf, "/blog/?paged=3": pageOf,
		"/2024/05/a-title/": noList, "/2024/05/06/a-title/": noList, "/2024/05/06/a-title/2/": noList, "/?p=12": noList, "/?page_id=2": noList, "/?s=": noList, "/archives/12": noList,
		"/a-title-of-words/2022/12": noList, "/page/": noList, "/page/about/": noList, "/page/2/about": noList, "/2024/": noList, "/2024/13/": noList, "/1066/10/": noList, "/2024/05/123": noList,
		// MediaWiki
		"/wiki/Category:Mills": likeList, "/wiki/Special:RecentChanges": likeList, "/index.php?title=Special:AllPages": likeList, "/w/index.php?title=Category:Mills&from=B": likeList,
		"/wiki/Category_theory": noList, "/index.php?title=Category_theory": noList, "/wiki/Help:Special_pages": noList, "/wiki/Mill": noList,
		// Hugo and Jekyll
		"/tags/": likeList, "/tags/corn/": likeList, "/categories.html": likeList, "/posts/page/2/": pageOf, "/page2/": pageOf, "/blog/page-3/": pageOf, "/archive.html": likeList, "/archives/": likeList,
		"/blog/2024/": likeList, "/posts/": noList, "/2024/05/06/a-title.html": noList, "/page2vec/": noList, "/tags/corn/list/all/": noList,
		// Ghost and Drupal
		"/tag/news/page/2/": likeList, "/taxonomy/term/7": likeList, "/blog?page=3": pageOf, "/search/node?keys=x": likeList, "/node/7": noList, "/blog?page=0": noList, "/?page=contact": noList,
		// documentation
		"/docs/category-theory": noList, "/book/category-theory/functors.html": noList, "/docs/guide/search/": likeList, "/docs/search/ranking.html": noList,
		"/": noList, "": noList, "//": noList, "/.": noList,
	} {
		u, err := url.Parse("https://example.com" + address)
		if err != nil {
			t.Fatal(err)
		}
		if got := listEvidence(nil, u); got != want {
			t.Errorf("%s: %d, want %d", address, got, want)
		}
	}
}

func TestListBody(t *testing.T) {
	for class, want := range map[string]evidence{
		"archive category category-corn category-3 wp-theme-x": isList, "archive tag": isList, "archive author author-ann": isList, "archive date": isList, "search search-results": isList,
		"archive post-type-archive woocommerce": likeList, "archive tax-product_cat": likeList, "search search-no-results": likeList, "home blog paged paged-2": likeList,
		"home blog": noList, "post-template-default single single-post": noList, "single paged": noList, "page page-id-2 paged": noList, "page-template-default page": noList,
		"mediawiki ltr ns--1 ns-special": isList, "mediawiki ns-14 ns-subject": likeList, "mediawiki ns-0 page-Archive": noList,
		"tag-template tag-corn": isList, "author-template paged": isList, "home-template": noList, "post-template tag-corn": noList, "page-template page-about": noList,
		"path-taxonomy": likeList, "html page-taxonomy-term": likeList, "path-node page-node-type-article": noList, "search": noList, "archive": likeList, "": noList,
	} {
		if got := bodyEvidence(&html.Node{Type: html.ElementNode, Attr: []html.Attribute{{Key: "class", Val: class}}}); got != want {
			t.Errorf("%q: %d, want %d", class, got, want)
		}
	}
}

func TestArchives(t *testing.T) {
	links := "<main><ul>" + strings.Repeat(`<li><a href=/post>A post with a title</a></li>`, 12) + "</ul></main>"
	paragraphs := strings.Repeat("<p>Many words of plain text stand here, one after the other, without any link.</p>", 12)
	prose := "<main><h1>Title</h1>" + paragraphs + "</main>"
	posts := "<main>" + strings.Repeat("<article><h2><a href=/post>A post</a></h2>"+paragraphs+"</article>", 5) + "</main>"
	chapters := "<main>" + strings.Repeat("<section><h2 id=a>A part <a href='#a'>¶</a></h2>"+paragraphs+"</section>", 5) + "</main>"
	article := `<script type="application/ld+json">{"@type":"BlogPosting","headline":"Title"}</script>`
	for _, c := range []struct {
		url, doc string
		want     millrace.PageKind
	}{
		{"/2024/05/", links, millrace.Archive},
		{"/2024/05/", posts, millrace.Archive}, // posts in full
		{"/2024/05/title/", prose, millrace.Article},
		{"/2024/05/07", article + prose, millrace.Article}, // an article whose address is a number
		{"/?page=2", posts, millrace.Archive},
		{"/?page=2", prose, millrace.Article},
		{"/blog/page/2/", article + posts, millrace.Archive},
		{"/blog/a?page=2", article + chapters, millrace.Article}, // the second part of an article
		{"/forum/a-thread?page=2", posts, millrace.Forum},
		{"/collections/stones?page=2", links, millrace.Archive},
		{"/collections/stones", links, millrace.Collection},
		{"/blog/", posts, millrace.Listing},
		{"/en/News", links, millrace.Listing},
		{"/news/", prose, millrace.Article}, // not a list, despite its name
		{"/docs/blog/", links, millrace.Documentation},
		{"/docs/category/theory.html", chapters, millrace.Documentation},
		{"/docs/category-theory/", prose, millrace.Documentation},
		{"/x", "<body class='archive category'>" + prose, millrace.Archive},
		{"/x", "<body class='archive'>" + prose, millrace.Article}, // a single class word is not sufficient
		{"/x", "<body class='mediawiki ns-special'>" + prose, millrace.Archive},
		{"/wiki/Kategorie:X", "<body class='mediawiki ns-14'>" + links, millrace.Archive},
		{"/wiki/Kategorie:X", "<body class='mediawiki ns-14'>" + prose, millrace.Article},
	} {
		if got := extractPage(t, "https://example.com"+c.url, c.doc).Page.Kind; got != c.want {
			t.Errorf("%s %.60s: %q, want %q", c.url, c.doc, got, c.want)
		}
	}
	// The address of the page is classified, not its base element.
	if got := extractPage(t, "https://example.com/tag/corn/", "<base href=/>"+links).Page.Kind; got != millrace.Archive {
		t.Errorf("with a base: %q", got)
	}
}
