package extract

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// The deepest and the farthest element that is known by its place.
const (
	maxPath  = 6
	maxPlace = 30
)

// pathStep is one element of a path, as its parent's child.
type pathStep struct {
	tag string
	at  int // from 1
}

// rootPath gives the selector of an element by its place, such as "body >
// div:nth-child(2)"; "" if it is deep.
func rootPath(n *html.Node) string {
	path := ""
	for range maxPath {
		if n.DataAtom == atom.Body {
			return "body" + path
		}
		tag, ok := cssName(n.Data)
		at := 1
		for s := n.PrevSibling; s != nil && at <= maxPlace; s = s.PrevSibling {
			if s.Type == html.ElementNode {
				at++
			}
		}
		if !ok || tag != n.Data || at > maxPlace || n.Parent == nil {
			return ""
		}
		path = fmt.Sprintf(" > %s:nth-child(%d)", tag, at) + path
		n = n.Parent
	}
	return ""
}

// parsePath reads what rootPath writes; nil for other selectors.
func parsePath(s string) []pathStep {
	rest, ok := strings.CutPrefix(s, "body > ")
	if !ok {
		return nil
	}
	var path []pathStep
	for part := range strings.SplitSeq(rest, " > ") {
		tag, place, _ := strings.Cut(strings.TrimSuffix(part, ")"), ":nth-child(")
		at, err := strconv.Atoi(place)
		if name, ok := cssName(tag); !ok || name != tag || err != nil || fmt.Sprintf("%s:nth-child(%d)", tag, at) != part {
			return nil
		}
		path = append(path, pathStep{tag, at})
	}
	return path
}

// follow gives the element that a path leads to, nil if there is none.
func follow(n *html.Node, path []pathStep) *html.Node {
	for _, step := range path {
		at, to := 0, (*html.Node)(nil)
		for e := range children(n) {
			if at++; at == step.at {
				to = e
				break
			}
		}
		if to == nil || to.Data != step.tag {
			return nil
		}
		n = to
	}
	return n
}
