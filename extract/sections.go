package extract

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// headingReason is the prefix of the Reason of a section that was left out because of its heading.
const headingReason = "heading "

// asideWords are the first words of headings, in lower case, that announce texts or products
// elsewhere. Such a section is left out only if it consists of links or cards.
var asideWords = []string{
	"related", "you may also", "you might also", "you may like", "you might like", "recommended", "more from", "more on", "more in", "more like this",
	"more stories", "more articles", "more posts", "more news", "read more", "read next", "read also", "also read", "what to read next", "up next",
	"keep reading", "continue reading", "latest", "recent", "popular", "trending", "most read", "most popular", "most viewed", "similar",
	"explore more", "explore related", "discover more", "customers also", "customers who", "people also", "frequently bought", "often bought",
	"complete the look", "recently viewed", "other articles", "other posts", "further articles", "featured posts", "featured articles",
	"in case you missed", "don't miss", "ähnliche", "verwandte", "das könnte", "mehr zum thema", "auch interessant", "weitere artikel", "à lire aussi",
	"articles similaires", "sur le même sujet", "vous aimerez aussi", "artículos relacionados", "también te puede", "articoli correlati",
	"potrebbe interessarti", "lees ook", "gerelateerd", "leia também", "関連記事", "相关", "相关文章", "相关阅读",
}

// pageWords are the first words of headings, in lower case, that announce questions about the page
// itself.
var pageWords = []string{
	"feedback", "submit correction", "help improve", "help us improve", "improve this", "was this", "is this page", "send feedback", "give feedback", "page feedback",
	"found a", "found an", "report a", "report an", "still need help",
}

// announces reports whether a heading starts with one of the phrases. A heading with a section
// number belongs to the text.
func announces(heading string, starts []string) bool {
	if isNumbered(heading) {
		return false
	}
	text := lower(strings.TrimFunc(heading, func(r rune) bool { return !unicode.IsLetter(r) }))
	return slices.ContainsFunc(starts, func(start string) bool {
		rest, ok := strings.CutPrefix(text, start)
		r, _ := utf8.DecodeRuneInString(rest)
		return ok && !unicode.IsLetter(r) && !strings.HasPrefix(rest, " to ")
	})
}

// sections leaves out the boxes of the root that start with a heading for texts elsewhere, if they
// consist of links or cards. In manuals, it leaves out short boxes with questions about the page.
func (l *located) sections() {
	boxes := l.c.boxes
	root := &boxes[l.at]
	starts, manual := asideWords, l.kind == millrace.Documentation
	switch {
	case manual:
		starts = pageWords
	case l.kind == millrace.Archive, l.kind != millrace.Product && root.links*2 > root.words:
		return
	}
	for i := l.at + 1; i < root.end; i++ {
		b := &boxes[i]
		if b.drop != "" {
			i = b.end - 1
			continue
		}
		if tagLevel(b.tag) < 2 || b.words == 0 || b.words > 10 || b.n == l.c.titleNode || !announces(plainText(b.n), starts) {
			continue
		}
		outer := i
		for p := b.parent; p > l.at && boxes[p].words*5 < root.words*2 && l.opens(p, i); p = boxes[p].parent {
			outer = p
		}
		s := &boxes[outer]
		words := s.words - b.words
		if words == 0 || manual && words > 80 {
			continue
		}
		if manual || s.anchors >= 2 && words <= 60*s.anchors && (s.links*2 >= words || l.cards(outer, i)*3 >= words*2) {
			s.drop = headingReason + strings.ToLower(plainText(b.n))
		}
	}
}

// opens reports whether a box starts with a heading, after at most three other words.
func (l *located) opens(box, heading int32) bool {
	if heading-box > 12 {
		return false
	}
	words := int32(0)
	for i := box + 1; i < heading; i++ {
		if l.c.boxes[i].drop == "" {
			words += l.c.boxes[i].own
		}
	}
	return words <= 3
}

// cards returns the number of words of a box that are in cards: short boxes of more than one line,
// with a picture or a title that is a link.
func (l *located) cards(outer, heading int32) int32 {
	boxes := l.c.boxes
	words := int32(0)
	for i := outer + 1; i < boxes[outer].end; {
		b := &boxes[i]
		switch {
		case b.drop != "" || i == heading:
			i = b.end
		case b.words <= 80 && b.anchors > 0 && b.anchors <= 6 && b.end > i+1 && b.tag != atom.P && l.isCard(i):
			words += b.words
			i = b.end
		default:
			i++
		}
	}
	return words
}

// isCard reports whether a box with a link also contains a picture, or a line that consists of a
// link.
func (l *located) isCard(at int32) bool {
	boxes := l.c.boxes
	for i := at + 1; i < boxes[at].end; i++ {
		if b := &boxes[i]; b.links == b.words && (b.words >= 3 || b.words > 0 && tagLevel(b.tag) > 0) {
			return true
		}
	}
	return find(boxes[at].n, func(e *html.Node) bool { return e.DataAtom == atom.Img || e.DataAtom == atom.Picture }) != nil
}
