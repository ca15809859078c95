package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// isLogin reports whether the page is a login page: it has a visible password field and little text
// outside the form, or it is a password-protected post of WordPress. A form in a header, a menu or
// a similar part of the page does not count.
func (l *located) isLogin(m *meta) bool {
	for _, field := range l.c.passwords {
		if l.asks(field, m) {
			return true
		}
	}
	return false
}

func (l *located) asks(password *html.Node, m *meta) bool {
	var form *html.Node
	for p := password.Parent; p != nil && p != l.c.body; p = p.Parent {
		if isHidden(p) != "" || isCorner(p) {
			return false
		}
		if form == nil && p.DataAtom == atom.Form {
			form = p
		}
	}
	body := &l.c.boxes[0]
	words, prose := body.words, body.prose // outside of the form
	for i := range l.c.boxes {
		// A form around the whole page is not a login form.
		if b := &l.c.boxes[i]; b.n == form && b.drop == "" && b.words <= 100 {
			words, prose = words-b.words, prose-b.prose
		}
	}
	if isPostForm(form) {
		// On a page with a single post, the other text belongs to other posts.
		l.protected = words < 200 && prose < 60 || !m.isHome() && hasClass(l.c.body, "single", "page", "singular")
		return l.protected
	}
	return words < 60 && prose < 25
}

// isPostForm reports whether a form is the one that WordPress shows instead of the content of
// a password-protected post.
func isPostForm(form *html.Node) bool {
	return form != nil && (hasClass(form, "post-password-form") || strings.HasSuffix(strings.ToLower(attr(form, "action")), "wp-login.php?action=postpass"))
}

// isCorner reports whether an element is a part of the page with another purpose, such as a header
// or a menu.
func isCorner(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Header, atom.Nav, atom.Footer, atom.Aside, atom.Dialog, atom.Menu, atom.Details:
		return true
	}
	switch strings.ToLower(attr(n, "role")) {
	case "banner", "navigation", "contentinfo", "complementary", "dialog", "menu", "menubar", "toolbar", "search":
		return true
	}
	return hasWord(attr(n, "class"), "modal", "popup", "popover", "dropdown", "menu", "navbar", "sidebar", "offcanvas", "drawer", "toolbar", "topbar", "widget")
}
