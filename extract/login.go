package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// isLogin reports whether the page is a login page: it has a visible password field, and
// little text outside the form. If the title, the address or the form names a login, there may
// be more text. A small form in the header of a shop page does not count.
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
	var words, prose int32 // outside of the form
	for i := int32(0); i < int32(len(l.c.boxes)); {
		b := &l.c.boxes[i]
		// A form around the whole page is not a login form.
		if b.drop != "" || i > 0 && isCorner(b.n) || b.n == form && b.words <= 100 {
			i = b.end
			continue
		}
		words += b.own
		if b.n.DataAtom == atom.P || b.n.DataAtom == atom.Dd || b.n.DataAtom == atom.Blockquote {
			prose += b.own - b.ownLinks
		}
		i++
	}
	if isPostForm(form) {
		// On a page with a single post, the other text belongs to other posts.
		l.protected = words < 200 && prose < 60 || !m.isHome() && hasClass(l.c.body, "single", "page", "singular")
		return l.protected
	}
	if saysLogin(m.page.Title) || saysLogin(m.c.title) || loginPath(m.url.Path) {
		return words < 200 && prose < 60
	}
	return words < 60 && prose < 25
}

// isPostForm reports whether a form is the one that WordPress shows instead of the content of
// a password-protected post.
func isPostForm(form *html.Node) bool {
	return form != nil && (hasClass(form, "post-password-form") || strings.HasSuffix(strings.ToLower(attr(form, "action")), "wp-login.php?action=postpass"))
}

// isCorner reports whether an element is a part of the page with another purpose, such as a
// header.
func isCorner(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Header, atom.Nav, atom.Footer, atom.Aside, atom.Dialog, atom.Menu, atom.Details:
		return true
	}
	switch strings.ToLower(attr(n, "role")) {
	case "banner", "navigation", "contentinfo", "complementary", "dialog", "menu", "menubar", "toolbar", "search":
		return true
	}
	for t := range strings.FieldsSeq(strings.ToLower(attr(n, "class"))) {
		for word := range strings.FieldsFuncSeq(t, func(r rune) bool { return r == '-' || r == '_' }) {
			switch word {
			case "modal", "popup", "popover", "dropdown", "menu", "navbar", "sidebar", "offcanvas", "drawer", "toolbar", "topbar", "widget":
				return true
			}
		}
	}
	return false
}

// saysLogin reports whether a title is that of a login form.
func saysLogin(title string) bool {
	if len(title) > 100 {
		return false
	}
	title = strings.ToLower(title)
	for _, w := range []string{
		"log in", "login", "log-in", "log on", "logon", "sign in", "sign-in", "signin", "password",
		"anmelden", "anmeldung", "einloggen", "passwort", "connexion", "connecter", "identifier", "mot de passe", "iniciar sesi", "acceder", "contraseña",
		"accedi", "accesso", "inloggen", "aanmelden", "entrar", "logga in", "logg inn", "log ind", "zaloguj", "logowanie", "přihlá", "войти", "вход", "ログイン", "登录", "登入", "로그인",
	} {
		if strings.Contains(title, w) {
			return true
		}
	}
	return false
}

// loginPath reports whether the last segment of a path is a common name of a login form.
func loginPath(path string) bool {
	path = strings.ToLower(strings.Trim(path, "/"))
	name, _, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ".")
	switch name {
	case "login", "log-in", "log_in", "signin", "sign-in", "sign_in", "logon", "wp-login", "special:userlogin", "auth", "sso":
		return true
	}
	return false
}
