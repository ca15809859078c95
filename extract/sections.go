package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// headingReason is the prefix of the Reason of a section that was left out because of its
// heading.
const headingReason = "heading "

// asideKind is the kind of furniture that a heading announces.
type asideKind uint8

const (
	noAside   asideKind = iota
	elsewhere           // texts or products elsewhere; links follow
	person              // the author
	appeal              // an appeal to subscribe, to share, to write a comment
	opinions            // customer reviews
	feedback            // readers' feedback on the page, at its end
)

// asideWords are the beginnings of such headings, in lower case. The content after the heading
// must have the right form as well.
var asideWords = []struct {
	what   asideKind
	starts []string
}{
	{elsewhere, []string{
		"related", "you may also", "you might also", "you may like", "you might like", "recommended", "more from", "more on", "more in", "more like this",
		"more stories", "more articles", "more posts", "more news", "read more", "read next", "read also", "also read", "what to read next", "up next",
		"keep reading", "continue reading", "latest", "recent", "popular", "trending", "most read", "most popular", "most viewed", "similar",
		"explore more", "explore related", "discover more", "customers also", "customers who", "people also", "frequently bought", "often bought",
		"complete the look", "recently viewed", "other articles", "other posts", "further articles", "featured posts", "featured articles",
		"in case you missed", "don't miss", "ähnliche", "verwandte", "das könnte", "mehr zum thema", "auch interessant", "weitere artikel", "à lire aussi",
		"articles similaires", "sur le même sujet", "vous aimerez aussi", "artículos relacionados", "también te puede", "articoli correlati",
		"potrebbe interessarti", "lees ook", "gerelateerd", "leia também", "関連記事", "相关", "相关文章", "相关阅读",
	}},
	{person, []string{
		"about the author", "about author", "à propos de l'auteur",
	}},
	{appeal, []string{
		"subscribe", "sign up", "newsletter", "stay up to date", "stay in the loop", "share this", "follow us", "join the conversation", "leave a reply",
		"leave a comment",
	}},
	{opinions, []string{
		"customer reviews", "reviews", "ratings",
	}},
	{feedback, []string{
		"feedback", "submit correction", "help improve", "help us improve", "improve this page", "was this page helpful", "was this helpful", "was this article helpful",
		"was this page useful", "is this page useful", "did this page help", "did you find what you needed", "send feedback", "give feedback", "page feedback",
		"found a mistake", "found an error", "found a problem", "report an issue", "report a problem", "still need help", "help and support",
	}},
}

// asideHeading returns what a heading announces. A heading with a section number belongs to
// the text.
func asideHeading(text string) asideKind {
	if isNumbered(text) {
		return noAside
	}
	text = strings.ToLower(strings.ReplaceAll(strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }), "’", "'"))
	for _, w := range asideWords {
		for _, start := range w.starts {
			rest, ok := strings.CutPrefix(text, start)
			if r, _ := utf8.DecodeRuneInString(rest); ok && !unicode.IsLetter(r) && !strings.HasPrefix(rest, " to ") {
				return w.what
			}
		}
	}
	return noAside
}

// sections leaves out the sections of the root whose headings announce furniture, unless their
// form contradicts.
func (l *located) sections() {
	boxes := l.c.boxes
	root := &boxes[l.at]
	only := l.kind == millrace.Documentation || l.kind == millrace.Archive || l.kind != millrace.Product && root.links*2 > root.words
	for i := l.at + 1; i < root.end; {
		b := &boxes[i]
		if b.drop != "" {
			i = b.end
			continue
		}
		if tagLevel(b.tag) > 1 && b.words > 0 && b.words <= 10 && b.n != l.c.titleNode {
			if what := asideHeading(plainText(b.n)); what == feedback || what != noAside && !only {
				l.section(i, what)
			}
		}
		i++
	}
}

// section leaves out the section of a heading: the box that begins with the heading, or else
// everything up to the next heading of its rank.
func (l *located) section(at int32, what asideKind) {
	boxes := l.c.boxes
	root := &boxes[l.at]
	outer := at
	for p := boxes[at].parent; p > l.at && boxes[p].words*5 < root.words*2 && l.opens(p, at); p = boxes[p].parent {
		outer = p
	}
	if outer != at && boxes[outer].words > boxes[at].words {
		b := &boxes[outer]
		words := b.words - boxes[at].words
		if l.isAside(what, words, b.anchors) && l.hasForm(what, outer, at, words) && (what != feedback || l.isLast(b.end)) {
			b.drop = headingReason + strings.ToLower(plainText(boxes[at].n))
		}
		return
	}
	p := boxes[outer].parent
	end, words, anchors, links := boxes[outer].end, int32(0), int32(0), int32(0)
	for end < boxes[p].end {
		s := &boxes[end]
		if s.level <= boxes[at].level && s.words > 0 {
			break
		}
		words, anchors, links = words+s.words, anchors+s.anchors, links+s.links
		end = s.end
	}
	if words*5 > root.words*2 || what == elsewhere && links*2 < words || !l.isAside(what, words, anchors) || what == feedback && !l.isLast(end) {
		return
	}
	for i := outer; i < end; i = boxes[i].end {
		if boxes[i].drop == "" {
			boxes[i].drop = headingReason + strings.ToLower(plainText(boxes[at].n))
		}
	}
}

// opens reports whether a box begins with a heading.
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

// isLast reports whether little of the root follows a box that ends at end.
func (l *located) isLast(end int32) bool {
	words := int32(0)
	for i := end; i < l.c.boxes[l.at].end && words <= 30; {
		if b := &l.c.boxes[i]; b.drop != "" {
			i = b.end
		} else {
			words += b.own
			i++
		}
	}
	return words <= 30
}

// hasForm reports whether the section of a heading in a box looks like what the heading
// announces. words is the number of words without the heading.
func (l *located) hasForm(what asideKind, outer, heading, words int32) bool {
	b := &l.c.boxes[outer]
	switch what {
	case elsewhere:
		return b.links*2 >= words || l.cards(outer, heading)*3 >= words*2
	case appeal, feedback:
		return words <= 30 || b.anchors > 0 || hasControl(b.n)
	}
	return true
}

// cards returns the number of words of a box that are in cards: short boxes of more than one
// line, with a picture or a title that leads elsewhere.
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

// isCard reports whether a box with a link also has a picture, or a line that consists of a
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

// hasControl reports whether an element contains a control for the reader.
func hasControl(n *html.Node) bool {
	return find(n, func(e *html.Node) bool {
		switch e.DataAtom {
		case atom.Form, atom.Input, atom.Button, atom.Select, atom.Textarea, atom.Iframe:
			return true
		}
		return false
	}) != nil
}

func (l *located) isAside(what asideKind, words, anchors int32) bool {
	switch what {
	case elsewhere:
		return anchors >= 2 && words <= 60*anchors
	case person:
		return words <= 250
	case appeal:
		return words <= 100
	case opinions:
		return l.kind == millrace.Product
	case feedback:
		return words <= 80
	}
	return false
}
