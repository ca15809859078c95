package extract

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// maxReported is the maximum number of parts of one page that a report on rules lists.
const maxReported = 1000

// correction applies rules to one document. It removes dropped elements from the tree before any
// words are counted, and leaves a comment in their place. Kept elements stay in the tree, without
// attributes that would hide them. The parts between kept elements are removed once the content is
// located.
type correction struct {
	plain    *located                // result without rules; nil for a fragment
	body     *html.Node              // body of the document
	title    *html.Node              // the heading that is the page's title
	by       map[*html.Node]*rule    // rule that matches each element
	touched  map[*html.Node]bool     // ancestors of matched elements
	content  map[*html.Node]bool     // elements that are content
	around   map[*html.Node]bool     // ancestors of kept elements
	cuts     map[*html.Node]*Dropped // removed subtrees, by the comments that replace them
	retained []retainedSubtree
}

// retainedSubtree is a subtree that a rule keeps.
type retainedSubtree struct {
	Kept
	had bool // the element itself would be content without rules; parts of its subtree may not be
}

var (
	commentsRule = &rule{text: "comments", keep: true}
	replyRule    = &rule{text: "comment form"}
)

// reason returns the Reason for [Dropped] and [Kept].
func (r *rule) reason() string {
	switch {
	case r == commentsRule || r == replyRule:
		return r.text
	case r.keep:
		return "keep " + r.text
	}
	return "drop " + r.text
}

// match finds the elements of a document that rules match, and the rules that match no element. k
// is nil if no element matches.
func (r *Rules) match(c *collected, doc *html.Node, plain *located) (k *correction, idle []string) {
	if r == nil {
		return nil, nil
	}
	k = &correction{
		plain: plain, body: c.body, title: c.titleNode, by: map[*html.Node]*rule{}, touched: map[*html.Node]bool{},
		content: map[*html.Node]bool{}, around: map[*html.Node]bool{}, cuts: map[*html.Node]*Dropped{},
	}
	if r.comments && plain != nil && plain.kind != millrace.Forum {
		k.comments(c)
	}
	if len(r.list) > 0 {
		used := make([]bool, len(r.list))
		r.selection.walk(doc, func(n *html.Node, at int) bool {
			if isVoidOfText(n) || n.DataAtom == atom.Head {
				return false
			}
			if at >= 0 && !(r.list[at].keep && n == k.title) {
				k.mark(n, &r.list[at])
				used[at] = true
			}
			return n != k.title && !isOne(n)
		})
		for i := range r.list {
			if !used[i] {
				idle = append(idle, r.list[i].reason())
			}
		}
	}
	if len(k.by) == 0 {
		return nil, idle
	}
	return k, idle
}

// isVoidOfText reports whether an element never contains text to which rules apply.
func isVoidOfText(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Title, atom.Svg, atom.Noframes, atom.Noembed, atom.Frameset, atom.Meta, atom.Link, atom.Base:
		return true
	}
	return false
}

// isOne reports whether rules apply only to the element as a whole.
func isOne(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Math, atom.Iframe, atom.Video, atom.Audio, atom.Picture:
		return true
	}
	return false
}

// mark records the rule of an element.
func (k *correction) mark(n *html.Node, r *rule) {
	if n.DataAtom == atom.Html {
		n = k.body // a rule of the body itself is marked later and replaces this one
	}
	k.by[n] = r
	for p := n.Parent; p != nil && !k.touched[p]; p = p.Parent {
		k.touched[p] = true
	}
	if r.keep {
		for p := n.Parent; p != nil && !k.around[p]; p = p.Parent {
			k.around[p] = true
		}
	}
}

// comments keeps readers' comments, except the comment forms.
func (k *correction) comments(c *collected) {
	for i := int32(1); i < int32(len(c.boxes)); {
		b := &c.boxes[i]
		if !isComments(b.n) || isReply(b.n) {
			i++
			continue
		}
		k.mark(b.n, commentsRule)
		var forms func(n *html.Node)
		forms = func(n *html.Node) {
			for e := range children(n) {
				if isReply(e) {
					k.mark(e, replyRule)
					continue
				}
				forms(e)
			}
		}
		forms(b.n)
		i = b.end
	}
}

// isReply reports whether an element among comments is a comment form or a link to further
// comments.
func isReply(n *html.Node) bool {
	return n.DataAtom == atom.Form || attr(n, "id") == "respond" ||
		hasClass(n, "comment-respond", "comment-form", "comment-reply-link", "comment-edit-link", "comments-navigation", "comment-navigation", "comment-reply")
}

// part is the state of apply at one node.
type part struct {
	dropping bool
	dropped  *Dropped // reported dropped subtree that contains the node, or nil
	retained int      // index of the retained subtree that contains the node; -1 = none
	content  bool     // whether the node is content without rules
}

// apply applies the rules to the tree below n.
func (k *correction) apply(n *html.Node, at part) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		switch c.Type {
		case html.TextNode:
			if at.dropping {
				at.count(c.Data)
				n.RemoveChild(c)
			} else if at.retained >= 0 && !at.content {
				k.retained[at.retained].Words += int(wordCount(c.Data))
			}
		case html.ElementNode:
			k.element(c, at)
		}
		c = next
	}
}

func (p *part) count(text string) {
	if p.dropped != nil {
		p.dropped.Words += int(wordCount(text))
	}
}

func (k *correction) element(n *html.Node, at part) {
	at.content = k.isContent(n, at.content)
	r := k.by[n]
	switch {
	case r != nil && r.keep:
		at.dropping, at.dropped = false, nil
		if at.retained < 0 {
			at.retained = len(k.retained)
			k.retained = append(k.retained, retainedSubtree{Kept{Selector: k.selector(n), Reason: r.reason()}, at.content})
		}
		k.content[n] = true
		expose(n)
	case r != nil:
		at.dropping, at.retained = true, -1
		at.dropped = &Dropped{Selector: k.selector(n), Reason: r.reason()}
		placeholder := &html.Node{Type: html.CommentNode}
		n.Parent.InsertBefore(placeholder, n)
		k.cuts[placeholder] = at.dropped
	case k.around[n] && !at.dropping && hides(n):
		at.dropping = true
	}
	if at.dropping && !k.around[n] {
		at.addWords(n)
		cut(n)
		return
	}
	if at.dropping {
		expose(n)
	}
	if (k.touched[n] || at.retained >= 0) && !isVoidOfText(n) && n != k.title {
		k.apply(n, at)
	}
}

// selector returns the selector of an element, or "" once the maximum number of selectors has been
// returned.
func (k *correction) selector(n *html.Node) string {
	if len(k.retained)+len(k.cuts) > 4*maxReported {
		return ""
	}
	return selector(n)
}

// addWords adds the words of a subtree to those of the dropped subtree.
func (p *part) addWords(n *html.Node) {
	if p.dropped == nil || isNothing(n) {
		return
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			p.count(c.Data)
		case html.ElementNode:
			p.addWords(c)
		}
	}
}

// isContent reports whether an element is content without rules.
func (k *correction) isContent(n *html.Node, inherited bool) bool {
	if k.plain == nil {
		return true
	}
	if n == k.plain.root {
		return k.plain.why == nil
	}
	return inherited && !k.plain.skip[n] && !hides(n) && n != k.title
}

// hides reports whether the walk skips an element.
func hides(n *html.Node) bool {
	return isNothing(n) && n.DataAtom != atom.Iframe || n.DataAtom == atom.Noscript || (isInline(n.DataAtom) || n.DataAtom == atom.Li) && isHidden(n) != ""
}

// expose removes the attributes that would make the walk skip an element.
func expose(n *html.Node) {
	if isHidden(n) != "" {
		n.Attr = slices.DeleteFunc(slices.Clone(n.Attr), func(a html.Attribute) bool {
			return a.Key == "hidden" || a.Key == "aria-hidden" || a.Key == "style"
		})
	}
	switch n.DataAtom {
	case atom.Button, atom.Label, atom.Progress, atom.Meter, atom.Textarea:
		n.DataAtom, n.Data = atom.Span, "span"
	case atom.Select, atom.Option, atom.Optgroup, atom.Datalist, atom.Template, atom.Canvas, atom.Applet, atom.Noscript:
		n.DataAtom, n.Data = atom.Div, "div"
	}
}

// cut removes an element from the tree. The texts before and after a block element stay separate.
func cut(n *html.Node) {
	if !isInline(n.DataAtom) && endsLine(n, false) && endsLine(n, true) {
		n.Parent.InsertBefore(&html.Node{Type: html.ElementNode, DataAtom: atom.Hr, Data: "hr"}, n)
	}
	n.Parent.RemoveChild(n)
}

// endsLine reports whether inline content comes directly before n, or directly after n if after is
// set.
func endsLine(n *html.Node, after bool) bool {
	for range 8 {
		if after {
			n = n.NextSibling
		} else {
			n = n.PrevSibling
		}
		switch {
		case n == nil:
			return false
		case n.Type == html.CommentNode, n.Type == html.TextNode && strings.TrimSpace(n.Data) == "":
			continue
		}
		return n.Type == html.TextNode || isInline(n.DataAtom)
	}
	return true
}

// correct returns the content of a document under rules. alone is the content without rules.
func (r *Rules) correct(doc *html.Node, m *meta, alone *located) (*located, error) {
	k, idle := r.match(alone.c, doc, alone)
	m.res.UnmatchedRules = idle
	if k == nil {
		return alone, nil
	}
	k.run()
	c, err := collect(alone.c.ctx, doc, k)
	if err != nil {
		return nil, err
	}
	c.titleNode = alone.c.titleNode
	l := locate(c, m)
	for _, p := range k.retained {
		if (p.Words > 0 || !p.had) && p.Selector != "" && len(l.retained) < maxReported {
			l.retained = append(l.retained, p.Kept)
		}
	}
	return l, nil
}

// run applies the rules to the whole body.
func (k *correction) run() {
	at := part{retained: -1}
	at.content = k.isContent(k.body, false)
	if r := k.by[k.body]; r != nil && r.keep {
		at.retained = 0
		k.retained = append(k.retained, retainedSubtree{Kept{Selector: "body", Reason: r.reason()}, at.content})
		k.content[k.body] = true
	} else if r != nil {
		at.dropping, at.dropped = true, &Dropped{Selector: "body", Reason: r.reason()}
		placeholder := &html.Node{Type: html.CommentNode}
		k.body.InsertBefore(placeholder, k.body.FirstChild)
		k.cuts[placeholder] = at.dropped
	}
	k.apply(k.body, at)
}
