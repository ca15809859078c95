package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

func (l *located) furniture(b *box) string {
	if b.noAttrs && b.flags&(hasPager|saysPager) == 0 {
		switch b.tag {
		case atom.Nav, atom.Header, atom.Footer, atom.Aside, atom.Form, atom.Dialog, atom.Menu:
		default:
			return "" // not marked as furniture
		}
	}
	n := b.n
	small := b.plain()*3 < l.total.plain() || b.plain() < 8 && l.total.plain() >= 8
	role := strings.ToLower(attr(n, "role"))
	switch role {
	case "navigation", "banner", "contentinfo", "search", "complementary", "dialog", "alertdialog", "menu", "menubar", "toolbar", "tooltip":
		if (role == "banner" || role == "contentinfo" || role == "complementary") && b.flags&inContent != 0 && !small {
			break
		}
		if role == "complementary" && b.flags&inContent != 0 && l.isCallout(b) {
			break
		}
		if small || b.plain()*2 < l.total.plain() || strings.HasSuffix(role, "dialog") && l.total.plain()-b.plain() >= 30 {
			return "role " + role
		}
	case "note", "doc-endnotes", "doc-footnote", "doc-tip":
		return ""
	}
	switch n.DataAtom {
	case atom.Nav:
		if b.plain()*2 <= l.total.plain() || b.links*2 > b.words {
			return "tag nav"
		}
	case atom.Header:
		if (small || b.flags&(inContent|hasTop|hasMain) == 0) && l.isFurnitureHeader(b) {
			return "tag header"
		}
	case atom.Footer:
		if (small || b.flags&(inContent|hasTop|hasMain) == 0) && !within(n, 2, atom.Blockquote, atom.Figure) && !l.holdsNotes(n) {
			return "tag footer"
		}
	case atom.Aside:
		if small && !l.isCallout(b) && !l.holdsNotes(n) {
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
	case atom.Menu:
		if b.links*2 > b.words {
			return "tag menu"
		}
	}
	if why := isHidden(n); why != "" && b.plain()*2 < l.total.plain()+1 && !l.holdsNotes(n) &&
		!(l.c.controlled[attr(n, "id")] && b.links*4 <= b.words) && !(why != "aria-hidden" && l.onStage(n)) {
		return why
	}
	if consentTools[attr(n, "id")] {
		l.consent = l.consent || b.words > 0 && l.total.words-b.words < 30
		return "consent"
	}
	if b.words > 0 && b.words <= maxAdvert && b.flags&(hasTop|hasHeading) == 0 && b.plain() < l.total.plain() && isAdvert(n) {
		return "advertisement"
	}
	if l.total.plain()-b.plain() >= 30 {
		if small && hasAttr(n, "data-nosnippet") {
			return "data-nosnippet"
		}
	}
	if l.kind != millrace.Forum && !l.thread && isComments(n) {
		rest := l.total.plain() - b.plain()
		switch {
		case l.kind == "" && rest*3 < b.plain():
			l.kind = millrace.Forum // comments are the content of the page
		case rest < 100 && rest < b.plain():
			l.thread = true // so are the comments inside them
		default:
			return "comments"
		}
	}
	if l.kind == millrace.Product && l.total.plain()-b.plain() >= 30 && isReviews(n) {
		return "reviews"
	}
	if (b.flags&hasPager != 0 || b.flags&saysPager != 0 && b.links*4 >= b.words*3) && b.words <= 60 && b.flags&(hasHeading|hasTop|hasBlock) == 0 && b.prose < 8 && isContainer(n) {
		return "links to neighbours"
	}
	return ""
}

// onStage reports whether an element alternates with its siblings: a panel of tabs or a slide.
// One of them is shown, and all are content.
func (l *located) onStage(n *html.Node) bool {
	on, known := l.stages[n.Parent]
	if !known {
		on = isStage(n.Parent)
		if l.stages == nil {
			l.stages = map[*html.Node]bool{}
		}
		l.stages[n.Parent] = on
	}
	return on
}

// isStage reports whether all children of an element look the same and only some of them are
// shown.
func isStage(n *html.Node) bool {
	var first *html.Node
	hidden, count := 0, 0
	for e := range children(n) {
		if isNothing(e) {
			continue
		}
		if first == nil {
			first = e
		}
		if e.DataAtom != first.DataAtom || firstClass(e) != firstClass(first) {
			return false
		}
		count++
		if isHidden(e) != "" {
			hidden++
		}
	}
	return hidden > 0 && hidden < count && firstClass(first) != ""
}

func firstClass(n *html.Node) string {
	class, _, _ := strings.Cut(strings.TrimLeft(attr(n, "class"), " \t\n"), " ")
	return class
}

// consentTools are the ids of the elements that the common consent tools add
// to pages.
var consentTools = map[string]bool{
	"onetrust-consent-sdk": true, "onetrust-pc-sdk": true, "onetrust-banner-sdk": true, "CybotCookiebotDialog": true, "usercentrics-root": true,
	"didomi-host": true, "cookie-law-info-bar": true, "cookie-notice": true, "qc-cmp2-container": true, "iubenda-cs-banner": true,
	"cmplz-cookiebanner-container": true, "truste-consent-track": true, "BorlabsCookieBox": true, "moove_gdpr_cookie_info_bar": true,
	"cliSettingsPopup": true, "termsfeed-com---nb": true, "hs-eu-cookie-confirmation": true, "tarteaucitronRoot": true,
}

// maxAdvert is the number of words of the longest advertisement. A longer element with such a
// class is a text.
const maxAdvert = 60

// isAdvert reports whether an element is a slot for advertisements: its class is one that
// themes use for slots, or an ad server has marked it.
func isAdvert(n *html.Node) bool {
	class := strings.ToLower(attr(n, "class"))
	if class == "ad" || class == "ads" { // among other classes they also have other meanings
		return true
	}
	for t := range strings.FieldsSeq(class) {
		switch strings.ReplaceAll(t, "_", "-") {
		case "advert", "adverts", "advertisement", "advertising", "adsbygoogle", "ad-slot", "ad-unit", "ad-container", "ad-wrapper", "ad-banner",
			"ad-block", "ad-box", "advert-box", "banner-ad", "google-ad", "google-ads", "dfp-ad", "sponsored-content":
			return true
		}
	}
	id := attr(n, "id")
	return strings.HasPrefix(id, "google_ads_") || strings.HasPrefix(id, "div-gpt-ad") || hasAttr(n, "data-ad-slot") || hasAttr(n, "data-google-query-id")
}

// isComments reports whether an element contains readers' comments: its class is one for
// comments, or its id and the classes of its children are.
func isComments(n *html.Node) bool {
	for t := range strings.FieldsSeq(attr(n, "class")) {
		switch strings.ToLower(t) {
		case "comments", "comments-area", "comment-list", "commentlist", "comment-respond", "entry-comments", "comments-section", "comment-section",
			"comments-wrapper", "post-comments", "comments-container", "comments-list", "article-comments", "wpdiscuz", "disqus":
			return true
		}
	}
	switch attr(n, "id") {
	case "disqus_thread", "wpdcom":
		return true
	case "comments", "respond":
		steps := 0
		return find(n, func(e *html.Node) bool {
			steps++
			return steps < 200 && (hasClass(e, "comment", "comment-body", "comment-content", "comment-respond", "comment-form", "comment-author") || strings.HasSuffix(attr(e, "itemtype"), "/Comment"))
		}) != nil
	}
	return false
}

// isFurnitureHeader reports whether a header belongs to the page or its title, and not to a
// part of the text.
func (l *located) isFurnitureHeader(b *box) bool {
	if b.flags&inContent == 0 {
		return b.prose < 60
	}
	if b.flags&hasTop != 0 || b.flags&hasHeading == 0 {
		return b.prose < 60
	}
	return l.c.titleNode != nil && isAncestor(b.n, l.c.titleNode)
}

// isCallout reports whether a box is a callout inside the text.
func (l *located) isCallout(b *box) bool {
	if calloutKind(b.n) != "" {
		return true
	}
	return b.flags&inContent != 0 && b.links*4 <= b.words && b.words <= 120 && b.prose*2 >= b.words && b.flags&(hasHeading|hasTop) == 0 &&
		(isProse(sibling(b.n, false)) && isProse(sibling(b.n, true)))
}

func isProse(n *html.Node) bool {
	if n == nil {
		return false
	}
	switch n.DataAtom {
	case atom.P, atom.Pre, atom.Ul, atom.Ol, atom.Blockquote, atom.Dl, atom.Figure:
		return true
	}
	return headingLevel(n) > 1
}

// noteLists are the classes of lists of footnotes.
var noteLists = []string{"footnotes", "footnote", "endnotes", "footnotes-list"}

// holdsNotes reports whether a subtree contains footnotes of the text.
func (l *located) holdsNotes(n *html.Node) bool {
	if hasClass(n, noteLists...) {
		return true
	}
	if isContinued(n) {
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

// isContinued reports whether an element is only a numbered list that sets its first number,
// as a note next to its paragraph does.
func isContinued(n *html.Node) bool {
	found := false
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode && strings.TrimSpace(c.Data) != "", c.Type == html.ElementNode && (found || c.DataAtom != atom.Ol || !hasAttr(c, "start")):
			return false
		case c.Type == html.ElementNode:
			found = true
		}
	}
	return found
}

// furnitureWords are parts of class names that mark furniture. They only break ties: the
// structure of the subtree must support them. True marks regions of a page; false marks small
// elements, which count only if they are small.
var furnitureWords = map[string]bool{
	"share": true, "sharing": true, "social": true, "related": true, "newsletter": true, "subscribe": true, "signup": true,
	"breadcrumb": true, "breadcrumbs": true, "pager": true, "cookie": true, "cookies": true, "consent": true,
	"advertisement": true, "sponsored": true, "sidebar": true, "recommended": true, "recommendations": true, "trending": true,
	"menu": true, "navigation": true, "nav": true, "skip": true, "login": true, "toolbar": true, "copyright": true,
	"prevnext": true, "editsection": true, "printfooter": true, "navbox": true, "catlinks": true, "noprint": true, "toc": true,
	"pagination": false, "ad": false, "ads": false, "advert": false, "promo": false, "popup": false, "modal": false, "byline": false, "author": false, "authors": false,
	"meta": false, "postmeta": false, "tags": false, "taglist": false, "disclaimer": false, "cta": false,
}

func furnitureClass(n *html.Node) string {
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
			if word = strings.ToLower(word); isFurniture(word) {
				return word
			}
		}
	}
	return ""
}

func isFurniture(word string) bool {
	_, ok := furnitureWords[word]
	return ok
}

// isReviews reports whether an element contains customer reviews.
func isReviews(n *html.Node) bool {
	if strings.HasSuffix(attr(n, "itemtype"), "/Review") {
		return true
	}
	for t := range strings.FieldsSeq(attr(n, "class")) {
		switch strings.ToLower(t) {
		case "reviews", "product-reviews", "customer-reviews", "reviews-list", "review-list", "user-reviews", "product-review", "reviews-section", "woocommerce-reviews":
			return true
		}
	}
	switch attr(n, "id") {
	case "reviews", "product-reviews", "customer-reviews", "tab-reviews", "customerreviews":
		return true
	}
	return false
}
