package extract

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// The limits of what a [Learner] remembers of a page, and of how many.
const (
	maxLearned = 50
	minLearned = 10
	maxTexts   = 5000
	maxParts   = 1000
)

// Learner finds out what the pages of a site have in common. The zero value is
// ready; it is not safe for concurrent use. It holds an outline of at most 50
// pages, those with the lowest hash of their URL, each of a few kilobytes, for
// large pages of some hundred. The order in which pages are added does not
// matter.
type Learner struct {
	pages []*outline // by hash and URL
}

// outline is what is remembered of a page.
type outline struct {
	key   uint64 // hash of the URL
	url   string
	kind  millrace.PageKind
	texts []textOutline // of all that tags and roles do not call furniture
	own   scope         // the root that the page alone leads to
	roots []rootOutline // elements that might be one
	parts []partOutline // groups that might be parts of a template
}

// textOutline is one text block.
type textOutline struct {
	hash  uint64
	words int32
	plain int32 // outside of links
}

// scope is a run of texts.
type scope struct{ from, to int32 }

func (s scope) holds(o scope) bool { return s.from <= o.from && o.to <= s.to }

type rootOutline struct {
	scope
	names []string // selectors that mean this element alone
}

type partOutline struct {
	scope
	hash     uint64
	words    int32
	names    []string // as those of roots
	selector string
	text     string
}

// Add looks at one page, as [HTML] would without a template. A page without
// content, and a list of other pages, teaches nothing. Errors are those of
// [HTML].
func (l *Learner) Add(ctx context.Context, data []byte, pageURL string, o *Options) error {
	if o == nil {
		o = &Options{}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(pageURL))
	p := &outline{key: h.Sum64(), url: pageURL}
	at, held := slices.BinarySearchFunc(l.pages, p, (*outline).compare)
	if !held && at >= maxLearned {
		return ctx.Err()
	}
	m, doc, err := read(ctx, data, pageURL, o, &learned{exact: true})
	if err != nil {
		return fmt.Errorf("extract %s: %w", pageURL, err)
	}
	alone := locate(m.c, m)
	p.kind, _ = m.kind(alone, anything)
	loc, err := o.Rules.correct(doc, m, alone)
	if err != nil {
		return fmt.Errorf("extract %s: %w", pageURL, err)
	}
	if held {
		l.pages = slices.Delete(l.pages, at, at+1)
	}
	if loc.why != nil || p.kind == millrace.Archive {
		return nil //nolint:nilerr // there is no page to learn from
	}
	if p.draw(loc); len(p.texts) > 0 {
		l.pages = slices.Insert(l.pages, at, p)
		l.pages = l.pages[:min(len(l.pages), maxLearned)]
	}
	return nil
}

func (p *outline) compare(o *outline) int {
	return cmp.Or(cmp.Compare(p.key, o.key), strings.Compare(p.url, o.url))
}

// draw takes the outline of a page.
func (p *outline) draw(l *located) {
	boxes := l.c.boxes
	before := make([]int32, len(boxes)+1) // texts before each box
	for i := int32(0); i < int32(len(boxes)); i++ {
		b := &boxes[i]
		before[i] = int32(len(p.texts))
		if b.drop != "" {
			for ; i+1 < b.end; i++ {
				before[i+1] = int32(len(p.texts))
			}
			continue
		}
		if b.own > 0 && len(p.texts) < maxTexts && b.n != l.c.titleNode {
			p.texts = append(p.texts, textOutline{hash: b.ownSign, words: b.own, plain: b.own - b.ownLinks})
		}
	}
	before[len(boxes)] = int32(len(p.texts))
	span := func(i int32) scope { return scope{before[i], before[boxes[i].end]} }
	p.own = span(l.from)
	once := map[string]int{} // how many elements each name means
	for i := range boxes {
		for _, name := range names(boxes[i].n) {
			once[name]++
		}
	}
	single := func(n *html.Node) []string {
		return slices.DeleteFunc(names(n), func(name string) bool { return once[name] > 1 })
	}
	p.drawRoots(l, span, single)
	for i := range l.parts(0) {
		if len(p.parts) == maxParts {
			break
		}
		// In a manual, what looks like the sections beside it is one of them.
		if b := &boxes[i]; l.grouped(i) && !(p.kind == millrace.Documentation && l.hasTwin(i)) {
			p.parts = append(p.parts, partOutline{scope: span(i), hash: b.part(), words: b.words, names: single(b.n), selector: selector(b.n), text: shorten(plainText(b.n))})
		}
	}
}

// shorten gives the beginning of a text.
func shorten(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	s = strings.ToValidUTF8(s[:most], "")
	if i := strings.LastIndexByte(s, ' '); i > most/2 {
		s = s[:i]
	}
	return s + "…"
}

// drawRoots notes the elements that hold a good part of the page's text.
func (p *outline) drawRoots(l *located, span func(int32) scope, single func(*html.Node) []string) {
	boxes := l.c.boxes
	for i := int32(1); i < int32(len(boxes)) && len(p.roots) < 60; i++ {
		b := &boxes[i]
		if b.drop != "" {
			i = b.end - 1
			continue
		}
		if b.plain()*4 < boxes[0].plain() || !isContainer(b.n) || b.tag == atom.P || b.words == 0 {
			continue
		}
		r := rootOutline{scope: span(i), names: single(b.n)}
		if path := rootPath(b.n); path != "" {
			r.names = append(r.names, path)
		}
		p.roots = append(p.roots, r)
	}
}

// names gives the selectors that an element may be known by on all pages: by
// its tag with its id or with classes.
func names(n *html.Node) []string {
	tag, ok := cssName(n.Data)
	if !ok {
		return nil
	}
	var list []string
	if id, ok := cssName(attr(n, "id")); ok {
		list = append(list, tag+"#"+id)
	}
	all, count := tag, 0
	for class := range strings.FieldsSeq(attr(n, "class")) {
		if count == 6 {
			break
		}
		if c, ok := cssName(class); ok {
			all += "." + c
			list = append(list, tag+"."+c)
			count++
		}
	}
	if count > 1 {
		list = append(list, all)
	}
	if n.DataAtom == atom.Main || n.DataAtom == atom.Article {
		list = append(list, tag)
	}
	return list
}
