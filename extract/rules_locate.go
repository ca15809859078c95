package extract

import (
	"golang.org/x/net/html"
)

// cutting is a subtree that a rule removed from the tree.
type cutting struct {
	*Dropped
	before int32 // index of the first box that was opened after the subtree
}

// leaveOut collects the marked subtrees, for the walk and for the report.
func (l *located) leaveOut() {
	k := l.c.rules
	if k != nil {
		l.keepAll()
	}
	boxes, cuts := l.c.boxes, l.c.cuts
	reported, thinEnd, outside := 0, int32(0), l.besideRoot()
	for i := int32(0); i <= int32(len(boxes)); {
		for ; len(cuts) > 0 && cuts[0].before <= i; cuts = cuts[1:] {
			if cuts[0].Words > 0 && cuts[0].Selector != "" && reported < maxReported {
				reported++
				l.dropped = append(l.dropped, *cuts[0].Dropped)
			}
		}
		if i == int32(len(boxes)) {
			break
		}
		b := &boxes[i]
		if b.drop == "" || i < thinEnd && !b.marked {
			if outside[i] {
				if words := l.droppedWords(i, k != nil); words >= minDropped {
					l.dropped = append(l.dropped, Dropped{Selector: selector(b.n), Reason: OutsideRoot, Words: int(words)})
				}
			}
			i++
			continue
		}
		inside := k != nil && k.around[b.n]
		if words := l.droppedWords(i, inside); words >= minDropped {
			l.dropped = append(l.dropped, Dropped{Selector: selector(b.n), Reason: b.drop, Words: int(words)})
		}
		if inside {
			if l.partial == nil {
				l.partial = map[*html.Node]bool{}
			}
			l.partial[b.n] = true
			thinEnd = max(thinEnd, b.end)
			i++
			continue
		}
		l.skip[b.n] = true
		i = b.end
	}
	if k != nil && len(k.content) > 0 {
		l.keeps = true
		l.admit()
	}
}

// keepAll unmarks the subtrees that rules keep, except elements that are never content.
func (l *located) keepAll() {
	boxes, k := l.c.boxes, l.c.rules
	for i := int32(0); i < int32(len(boxes)); i++ {
		b := &boxes[i]
		if !b.marked {
			continue
		}
		b.drop = ""
		if k.content[b.n] {
			continue
		}
		if b.drop = l.foreign(b); b.drop != "" && !k.around[b.n] {
			i = b.end - 1
		}
	}
}

// droppedWords returns the number of words of a box. If inside is set, it does not count the words
// that rules keep.
func (l *located) droppedWords(at int32, inside bool) int32 {
	boxes := l.c.boxes
	words := boxes[at].words
	if !inside {
		return words
	}
	for i := at + 1; i < boxes[at].end; i++ {
		if boxes[i].marked && boxes[i].drop == "" {
			words -= boxes[i].words
			i = boxes[i].end - 1
		}
	}
	return max(words, 0)
}

// admit removes everything except kept elements and their ancestors from the parts of the tree that
// are outside of the root or left out.
func (l *located) admit() {
	k := l.c.rules
	body := l.c.body
	l.own = l.root
	if l.why == nil && !l.outside(body) {
		l.thinOut(l.root, true)
		return
	}
	l.thinOut(body, k.content[body] || l.root == body && l.why == nil)
	l.root, l.at = body, 0
}

// outside reports whether rules keep anything outside of the root.
func (l *located) outside(n *html.Node) bool {
	if n == l.root {
		return false
	}
	k := l.c.rules
	if k.content[n] {
		return true
	}
	if k.around[n] {
		for c := range children(n) {
			if l.outside(c) {
				return true
			}
		}
	}
	return false
}

// thinOut removes everything from n, an ancestor of kept elements, except those elements. in
// reports whether n itself is content.
func (l *located) thinOut(n *html.Node, in bool) {
	k := l.c.rules
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		inside := in
		switch {
		case c.Type == html.TextNode && !in:
			c.Data = " "
		case c.Type != html.ElementNode:
		case k.content[c], c == l.root && l.why == nil:
			inside = true
		case l.skip[c], l.partial[c]:
			inside = false
		}
		switch {
		case c.Type != html.ElementNode:
		case k.around[c]:
			delete(l.skip, c)
			l.thinOut(c, inside)
		case !inside && !in:
			cut(c)
		}
		c = next
	}
}
