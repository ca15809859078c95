package extract

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// around leaves out what documentation generators and other programs put around a text inside
// the same element: links to other versions and languages of the page, and questions about the
// page.
func (l *located) around(page *url.URL) {
	l.editions(page)
	l.columns()
	l.buttons()
	if l.kind != millrace.Forum {
		l.tail()
	}
}

// editions leaves out boxes whose links all lead to the same page in other versions or
// languages.
func (l *located) editions(page *url.URL) {
	boxes := l.c.boxes
	root := &boxes[l.at]
	own := strings.Split(page.Path, "/")
	if own[len(own)-1] == "" {
		return // the first page of a folder: neighbours are different pages
	}
	for i := l.at + 1; i < root.end; {
		b := &boxes[i]
		if b.drop == "" && b.anchors >= 3 && b.flags&(hasTop|hasHeading|hasBlock|hasTable) == 0 && b.words <= 5*b.anchors+10 && b.prose < 15 && b.words*3 <= root.words && l.isEditions(b.n, page, own) {
			b.drop = "other versions"
		}
		if b.drop != "" {
			i = b.end
			continue
		}
		i++
	}
}

// columns leaves out menu columns next to the text column of a layout table.
func (l *located) columns() {
	boxes := l.c.boxes
	root := &boxes[l.at]
	for i := l.at + 1; i < root.end; i++ {
		b := &boxes[i]
		if b.drop != "" {
			i = b.end - 1
			continue
		}
		if b.tag != atom.Tr || b.anchors < 5 || b.plain()*2 < root.plain() || !isLayoutTable(tableOf(b.n)) {
			continue
		}
		for j := i + 1; j < b.end; j = boxes[j].end {
			if t := &boxes[j]; t.drop == "" && t.anchors >= 5 && t.links*10 >= t.words*8 && t.words*3 < b.words && t.prose < 15 {
				t.drop = "links"
			}
		}
	}
}

// buttons leaves out lines that consist of links that look like buttons, because they are
// controls and not text. A link to a file is content.
func (l *located) buttons() {
	boxes := l.c.boxes
	root := &boxes[l.at]
	if root.words < 100 {
		return
	}
	for i := l.at + 1; i < root.end; i++ {
		b := &boxes[i]
		if b.drop != "" {
			i = b.end - 1
			continue
		}
		if b.own > 0 && b.end == i+1 && b.own == b.ownLinks && b.own <= 5*b.ownAnchors && (b.tag == atom.P || b.tag == atom.Div) && allButtons(b.n) {
			b.drop = "buttons"
		}
	}
}

func allButtons(n *html.Node) bool {
	other, steps := 0, 0
	find(n, func(e *html.Node) bool {
		steps++
		if e.DataAtom == atom.A && (!isButtonClass(e) || isFile(e)) {
			other++
		}
		return other > 0 || steps > 60
	})
	return other == 0 && steps <= 60
}

func isButtonClass(n *html.Node) bool {
	for t := range strings.FieldsSeq(strings.ToLower(attr(n, "class"))) {
		if t == "button" || t == "btn" || strings.HasPrefix(t, "btn-") || strings.HasPrefix(t, "button-") ||
			strings.HasSuffix(t, "-btn") || strings.HasSuffix(t, "-button") || strings.HasSuffix(t, "__button") {
			return true
		}
	}
	return false
}

// isFile reports whether a link leads to a file that is not a page.
func isFile(n *html.Node) bool {
	href, _, _ := strings.Cut(attr(n, "href"), "#")
	href, _, _ = strings.Cut(href, "?")
	if _, rest, ok := strings.Cut(href, "://"); ok {
		if _, href, ok = strings.Cut(rest, "/"); !ok {
			return false
		}
	}
	name := strings.ToLower(href[strings.LastIndexByte(href, '/')+1:])
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return hasAttr(n, "download")
	}
	switch name[i+1:] {
	case "html", "htm", "xhtml", "php", "asp", "aspx", "jsp", "do", "cfm", "cgi":
		return hasAttr(n, "download")
	}
	return true
}

// tableOf returns the table that contains a row.
func tableOf(n *html.Node) *html.Node {
	for n != nil && n.DataAtom != atom.Table {
		n = n.Parent
	}
	return n
}

// isEditions reports whether the first links of an element all lead to the same page in other
// versions or languages.
func (l *located) isEditions(n *html.Node, page *url.URL, own []string) bool {
	links, same, others, steps := 0, 0, 0, 0
	find(n, func(e *html.Node) bool {
		if href := attr(e, "href"); e.DataAtom == atom.A && href != "" {
			links++
			if u, err := page.Parse(href); err == nil && u.Fragment == "" && isEdition(u, page, own) {
				same++
				if u.Path != page.Path {
					others++
				}
			}
		}
		steps++
		return links == 8 || steps > 200
	})
	return others >= 2 && same*4 >= links*3
}

// isEdition reports whether an address is that of the page itself, or differs from it in one
// segment before the last, or in a first segment that only one of them has:
// "/docs/17/tables.html" for "/docs/18/tables.html", "/de/tables" for "/tables".
func isEdition(u, page *url.URL, own []string) bool {
	if u.Host != page.Host || u.RawQuery != page.RawQuery {
		return false
	}
	other := strings.Split(u.Path, "/")
	last := len(own) - 1
	if other[len(other)-1] != own[last] || strings.HasPrefix(own[last], "index.") {
		return false
	}
	switch len(other) {
	case len(own):
		differ := 0
		for i := range own {
			if other[i] != own[i] {
				differ++
			}
		}
		return differ <= 1
	case len(own) + 1:
		return slices.Equal(other[2:], own[1:])
	case len(own) - 1:
		return slices.Equal(other[1:], own[2:])
	}
	return false
}

// maxTail is the maximum number of words of one part of the tail.
const maxTail = 16

// tail leaves out text about the page itself, from the end of the root backwards: whether it
// helped, where to edit it, when it was generated. It stops at the first text of another kind.
func (l *located) tail() {
	boxes := l.c.boxes
	root := &boxes[l.at]
	if root.words < 2*maxTail {
		return
	}
	for i, tried := root.end-1, 0; i > l.at && tried < 24; i-- {
		b := &boxes[i]
		if b.own == 0 || l.isDropped(i) {
			continue
		}
		tried++
		if b.words > maxTail || !isAboutPage(plainText(b.n)) {
			return
		}
		b.drop = "about the page"
	}
}

// isDropped reports whether a box or one of its ancestors is left out.
func (l *located) isDropped(i int32) bool {
	for ; i > l.at; i = l.c.boxes[i].parent {
		if l.c.boxes[i].drop != "" {
			return true
		}
	}
	return false
}

// isAboutPage reports whether a text at the end of a page is about that page.
func isAboutPage(text string) bool {
	text = strings.TrimLeftFunc(lower(text), func(r rune) bool { return !unicode.IsLetter(r) })
	return slices.ContainsFunc(pageWords, func(start string) bool { return strings.HasPrefix(text, start) })
}

// pageWords are the beginnings of phrases that pages use about themselves.
var pageWords = []string{
	"was this page helpful", "was this helpful", "was this article helpful", "was this page useful", "is this page useful", "is this page helpful",
	"did this page help", "did this article help", "did you find this page", "did you find this article", "how helpful was this", "rate this page", "yes no",
	"edit this page", "edit this file", "edit this doc", "edit on git", "edit page", "edit source", "improve this page", "improve this doc", "suggest an edit",
	"suggest edits", "suggest changes", "view page source", "view this page on", "view source on", "view on git", "show source", "show on git",
	"report a problem", "report an issue", "report a bug", "report this page", "report content", "found a mistake", "found a typo", "found an error",
	"found a bug", "found a problem", "found an issue", "spotted a mistake", "send feedback", "give feedback", "provide feedback", "submit feedback", "help us improve",
	"this page was", "this page is generated", "last updated", "last modified", "last edited", "last reviewed", "last built", "page last",
	"page updated", "back to top", "generated by", "generated on", "made with", "built with", "created with", "created using", "powered by",
	"diese seite bearbeiten", "zuletzt geändert", "zuletzt bearbeitet", "zuletzt aktualisiert", "war diese seite hilfreich", "modifier cette page",
	"cette page a été", "dernière mise à jour", "dernière modification", "editar esta página", "última actualización", "última modificación", "ultimo aggiornamento",
	"最終更新", "最后更新", "在 github 上编辑", "编辑此页", "このページを編集",
}
