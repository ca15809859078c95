package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

func (l *located) boilerplate(b *box) string {
	if b.noAttrs && b.flags&hasPager == 0 {
		switch b.tag {
		case atom.Nav, atom.Header, atom.Footer, atom.Aside, atom.Form, atom.Dialog, atom.Menu:
		default:
			return "" // it has no mark of boilerplate
		}
	}
	n := b.n
	small := b.plain()*3 < l.total.plain() || b.plain() < 8 && l.total.plain() >= 8
	role := strings.ToLower(attr(n, "role"))
	switch role {
	case "navigation", "banner", "contentinfo", "search", "complementary", "dialog", "alertdialog", "menu", "menubar", "toolbar", "tooltip":
		if small || b.plain()*2 < l.total.plain() || strings.HasSuffix(role, "dialog") && l.total.plain()-b.plain() >= 30 {
			return "role " + role
		}
	}
	switch n.DataAtom {
	case atom.Nav:
		if b.plain()*2 <= l.total.plain() || b.links*2 > b.words {
			return "tag nav"
		}
	case atom.Header:
		if (small || b.flags&(inContent|hasTop|hasMain) == 0) && l.isBoilerplateHeader(b) {
			return "tag header"
		}
	case atom.Footer:
		if small || b.flags&(inContent|hasTop|hasMain) == 0 {
			return "tag footer"
		}
	case atom.Aside:
		if small && calloutKind(n) == "" && !l.holdsNotes(n) {
			return "tag aside"
		}
	case atom.Form:
		if small && b.prose < 40 {
			return formTag
		}
	case atom.Dialog:
		if small {
			return "tag dialog"
		}
	}
	if why := isHidden(n); why != "" && b.plain()*2 < l.total.plain()+1 && !l.holdsNotes(n) &&
		!(l.c.controlled[attr(n, "id")] && b.links*4 <= b.words) && !(why != "aria-hidden" && onStage(n)) {
		return why
	}
	if consentTools[attr(n, "id")] {
		l.consent = l.consent || b.words > 0 && l.total.words-b.words < 30
		return "consent"
	}
	if l.kind != millrace.Forum && !l.thread && isComments(n) {
		rest := l.total.plain() - b.plain()
		switch {
		case l.kind == "" && rest*3 < b.plain():
			l.kind = millrace.Forum // comments are the content of the page
		case rest < 100 && rest < b.plain():
			l.thread = true // comments inside this element are content, too
		default:
			return "comments"
		}
	}
	if l.kind == millrace.Product && l.total.plain()-b.plain() >= 30 && isReviews(n) {
		return "reviews"
	}
	if b.flags&hasPager != 0 && b.words <= 60 && b.flags&(hasHeading|hasTop|hasBlock) == 0 && b.prose < 8 && isContainer(n) {
		return "links to neighbors"
	}
	return ""
}

// onStage reports whether an element is a tab panel or a slide: a sibling of the same form is shown
// in its place. All panels and slides are content.
func onStage(n *html.Node) bool {
	for _, next := range []bool{false, true} {
		s := sibling(n, next)
		for steps := 0; s != nil && isAlike(n, s) && numberKind(n) != n.Data+"." && steps < 20; s, steps = sibling(s, next), steps+1 {
			if isHidden(s) == "" {
				return true
			}
		}
	}
	return false
}

// consentTools are the ids of the elements that common consent tools add to pages.
var consentTools = map[string]bool{
	"onetrust-consent-sdk": true, "onetrust-pc-sdk": true, "onetrust-banner-sdk": true, "CybotCookiebotDialog": true, "usercentrics-root": true,
	"didomi-host": true, "cookie-law-info-bar": true, "cookie-notice": true, "qc-cmp2-container": true, "iubenda-cs-banner": true,
	"cmplz-cookiebanner-container": true, "truste-consent-track": true, "BorlabsCookieBox": true, "moove_gdpr_cookie_info_bar": true,
	"cliSettingsPopup": true, "termsfeed-com---nb": true, "hs-eu-cookie-confirmation": true, "tarteaucitronRoot": true,
}

// isComments reports whether an element contains readers' comments, by its class or id.
func isComments(n *html.Node) bool {
	for t := range strings.FieldsSeq(attr(n, "class")) {
		switch strings.ToLower(t) {
		case "comments", "comments-area", "comment-list", "commentlist", "comment-respond", "entry-comments", "comments-section", "comment-section",
			"comments-wrapper", "post-comments", "comments-container", "comments-list", "article-comments", "wpdiscuz", "disqus":
			return true
		}
	}
	switch attr(n, "id") {
	case "disqus_thread", "wpdcom", "comments", "respond":
		return true
	}
	return false
}

// isBoilerplateHeader reports whether a header belongs to the page or its title, and not to a part of
// the text.
func (l *located) isBoilerplateHeader(b *box) bool {
	if b.flags&inContent == 0 {
		return b.prose < 60
	}
	if b.flags&hasTop != 0 || b.flags&hasHeading == 0 {
		return b.prose < 60
	}
	return l.c.titleNode != nil && isAncestor(b.n, l.c.titleNode)
}

// noteLists are the classes of footnote lists.
var noteLists = []string{"footnotes", "footnote", "endnotes", "footnotes-list"}

// holdsNotes reports whether a subtree contains footnotes of the text.
func (l *located) holdsNotes(n *html.Node) bool {
	if hasClass(n, noteLists...) {
		return true
	}
	if len(l.c.refs) == 0 {
		return false
	}
	steps := 0
	return find(n, func(e *html.Node) bool {
		steps++
		return steps < 50 && (hasClass(e, "footnotes", "footnote-backref", "footnote") || strings.HasPrefix(attr(e, "role"), "doc-endnote") ||
			strings.HasPrefix(attr(e, "role"), "doc-backlink"))
	}) != nil
}

// boilerplateWords are parts of class names that mark boilerplate. They only break ties: the structure
// of the subtree must confirm them. Words with the value true mark regions of a page. Words with the
// value false mark small elements; trim ignores them if they would remove a large part of the text.
var boilerplateWords = map[string]bool{
	"share": true, "sharing": true, "social": true, "related": true, "newsletter": true, "subscribe": true, "signup": true,
	"breadcrumb": true, "breadcrumbs": true, "pager": true, "cookie": true, "cookies": true, "consent": true,
	"advertisement": true, "sponsored": true, "sidebar": true, "recommended": true, "recommendations": true, "trending": true,
	"menu": true, "navigation": true, "nav": true, "skip": true, "login": true, "toolbar": true, "copyright": true,
	"prevnext": true, "editsection": true, "printfooter": true, "navbox": true, "catlinks": true, "noprint": true, "toc": true,
	"pagination": false, "ad": false, "ads": false, "advert": false, "promo": false, "popup": false, "modal": false, "byline": false, "author": false, "authors": false,
	"meta": false, "postmeta": false, "tags": false, "taglist": false, "disclaimer": false, "cta": false,
}

func boilerplateClass(n *html.Node) string {
	for t := range strings.FieldsSeq(attr(n, "class")) {
		if len(t) > 60 {
			continue
		}
		for len(t) > 0 {
			i := strings.IndexAny(t, "-_:")
			word := t
			if i >= 0 {
				word, t = t[:i], t[i+1:]
			} else {
				t = ""
			}
			if word = strings.ToLower(word); isBoilerplate(word) {
				return word
			}
		}
	}
	return ""
}

func isBoilerplate(word string) bool {
	_, ok := boilerplateWords[word]
	return ok
}

// isReviews reports whether an element contains customer reviews.
func isReviews(n *html.Node) bool {
	return strings.Contains(strings.ToLower(attr(n, "class")+" "+attr(n, "id")), "reviews")
}
