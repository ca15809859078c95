package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// userCards are the classes of the author's card next to a post in XenForo, phpBB, vBulletin,
// MyBB, SMF and Invision.
var userCards = map[string]bool{
	"message-user": true, "postprofile": true, "userinfo": true, "post_author": true, "poster": true, "cAuthorPane": true, "user-details": true,
}

// post returns the reason why a box of a thread is not part of a post, or "" if it may be part of
// one.
func (l *located) post(i int32) string {
	n := l.c.boxes[i].n
	for class := range strings.FieldsSeq(attr(n, "class")) {
		if userCards[class] && i >= l.carded {
			l.card(i)
			return ""
		}
	}
	if isComments(n) && withinAnswer(n) {
		return "comments"
	}
	return ""
}

// withinAnswer reports whether one of the nearest ancestors is a question or an
// answer.
func withinAnswer(n *html.Node) bool {
	steps := 0
	for p := n.Parent; p != nil && steps < 12; p, steps = p.Parent, steps+1 {
		if t := attr(p, "itemtype"); strings.HasSuffix(t, "/Answer") || strings.HasSuffix(t, "/Question") {
			return true
		}
	}
	return false
}

// card leaves out an author's card except the author's name.
func (l *located) card(at int32) {
	boxes := l.c.boxes
	l.carded = boxes[at].end
	steps := 0
	name := find(boxes[at].n, func(e *html.Node) bool {
		steps++
		return steps < 200 && (hasClass(e, "username") || attr(e, "itemprop") == "name" || e.DataAtom == atom.A) && !hasClass(e, "avatar") && plainText(e) != ""
	})
	for i := at + 1; i < boxes[at].end; {
		b := &boxes[i]
		if name != nil && isAncestor(b.n, name) {
			i++
			continue
		}
		if b.drop == "" {
			b.drop = "about a writer"
		}
		i = b.end
	}
}
