package extract

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxStreamed is the maximum number of streamed parts that are moved.
const maxStreamed = 2000

// placeStreamed moves streamed parts to their places. React sends the slow parts of a page after the
// rest, in hidden elements with the ids S:0, S:1 and so on. Scripts then replace template elements
// with them:
//
//	<!--$?--><template id="B:0"></template>loading<!--/$-->
//	<div hidden id="S:0">text</div><script>$RC("B:0","S:0")</script>
//
// $RC replaces everything up to the comment that ends the placeholder, $RS only the template.
func placeStreamed(text []byte, doc *html.Node) {
	if !bytes.Contains(text, []byte("$R")) {
		return
	}
	s := streamed{at: map[string]*html.Node{}}
	s.find(doc)
	for _, m := range s.moves {
		place, part := s.at[m.place], s.at[m.part]
		if place == nil || part == nil || place.Parent == nil || part.Parent == nil || isAncestor(part, place) {
			continue
		}
		delete(s.at, m.part) // each part is used once
		parent := place.Parent
		part.Parent.RemoveChild(part)
		part.Attr = slices.DeleteFunc(part.Attr, func(a html.Attribute) bool { return a.Key == "hidden" })
		parent.InsertBefore(part, place)
		for m.replaces {
			next := place.NextSibling
			if next == nil || next.Type == html.CommentNode && next.Data == "/$" {
				break
			}
			parent.RemoveChild(next)
		}
		parent.RemoveChild(place)
	}
}

type streamed struct {
	at    map[string]*html.Node // elements by id
	moves []move
}

type move struct {
	place, part string // ids of the template and of the streamed element
	replaces    bool   // whether the placeholder content is replaced, too
}

func (s *streamed) find(n *html.Node) {
	for e := range children(n) {
		switch e.DataAtom {
		case atom.Script:
			if e.FirstChild != nil {
				s.script(e.FirstChild.Data)
			}
			continue
		case atom.Template, atom.Div:
			if id := attr(e, "id"); len(id) > 2 && len(id) < 20 && id[1] == ':' && len(s.at) < 2*maxStreamed {
				s.at[id] = e
			}
		}
		s.find(e)
	}
}

// script records the calls of $RC and $RS in a script.
func (s *streamed) script(code string) {
	for len(s.moves) < maxStreamed {
		i := strings.Index(code, "$R")
		if i < 0 || i+4 > len(code) {
			return
		}
		name := code[i+2]
		code = code[i+3:]
		first, rest, ok := quoted(code, `("`)
		if !ok {
			continue
		}
		second, rest, ok := quoted(rest, `,"`)
		if !ok {
			continue
		}
		code = rest
		switch name {
		case 'C':
			s.moves = append(s.moves, move{place: first, part: second, replaces: true})
		case 'S':
			s.moves = append(s.moves, move{place: second, part: first})
		}
	}
}

// quoted returns the text in code between open and the next quotation mark, if it is short, and the
// rest of code.
func quoted(code, open string) (s, rest string, ok bool) {
	rest, ok = strings.CutPrefix(code, open)
	if !ok {
		return "", "", false
	}
	i := strings.IndexByte(rest[:min(len(rest), 20)], '"')
	if i < 0 {
		return "", "", false
	}
	return rest[:i], rest[i+1:], true
}
