package main

import (
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"github.com/millrace/millrace/extract"
)

// passage is a run of words that one text has and another lacks.
type passage struct {
	text     string
	words    int
	cause    string // effect of the extractor on the place: "dropped: tag nav", "outside the root", "inside the root", "not in the document"
	landmark string // result of landmark for the nearest landmark
	path     string
}

// places maps words to their text nodes in a document.
type places struct {
	nodes   []*html.Node      // text node of each word
	at      map[[3]string]int // index of the first of three words in a row, by these words
	root    *html.Node
	dropped map[*html.Node]string // reasons why elements were dropped
}

func newPlaces(doc *html.Node, r *extract.Result) *places {
	m := &places{at: map[[3]string]int{}, dropped: map[*html.Node]string{}}
	// A selector may match several elements: the root is the one with the most words,
	// and the dropped element has about the counted number of words.
	most := -1
	for _, n := range find(doc, r.Root) {
		if w := wordsIn(n); w > most {
			m.root, most = n, w
		}
	}
	for _, d := range r.Dropped {
		for _, n := range find(doc, d.Selector) {
			if w := wordsIn(n); w*10 >= d.Words*7 && w*10 <= d.Words*14 {
				m.dropped[n] = d.Reason
			}
		}
	}
	var words []string
	for n := range doc.Descendants() {
		if n.Type != html.TextNode || n.Parent.Data == "script" || n.Parent.Data == "style" {
			continue
		}
		for _, w := range wordPattern.FindAllString(strings.ToLower(n.Data), -1) {
			words = append(words, w)
			m.nodes = append(m.nodes, n)
		}
	}
	for i := 2; i < len(words); i++ {
		key := [3]string(words[i-2 : i+1])
		if old, ok := m.at[key]; !ok || !m.kept(m.nodes[old]) && m.kept(m.nodes[i-2]) {
			m.at[key] = i - 2 // prefer a place that was kept
		}
	}
	return m
}

// kept reports whether a node is inside the root and was not dropped.
func (m *places) kept(n *html.Node) bool {
	for ; n != nil && n != m.root; n = n.Parent {
		if _, ok := m.dropped[n]; ok {
			return false
		}
	}
	return n != nil
}

func find(doc *html.Node, selector string) []*html.Node {
	s, err := cascadia.Parse(selector)
	if err != nil {
		return nil
	}
	return cascadia.QueryAll(doc, s)
}

func wordsIn(n *html.Node) (words int) {
	for d := range n.Descendants() {
		if d.Type == html.TextNode && d.Parent.Data != "script" && d.Parent.Data != "style" {
			words += len(strings.Fields(d.Data))
		}
	}
	return words
}

// differ returns the passages of text that do not occur in other. It compares runs of
// three words; the order of passages does not matter.
func (m *places) differ(text, other string) []passage {
	spans := wordPattern.FindAllStringIndex(text, -1)
	words := make([]string, len(spans))
	for i, s := range spans {
		words[i] = strings.ToLower(text[s[0]:s[1]])
	}
	others := wordPattern.FindAllString(strings.ToLower(other), -1)
	known := map[[3]string]bool{}
	for i := 2; i < len(others); i++ {
		known[[3]string(others[i-2:i+1])] = true
	}
	covered := make([]bool, len(words))
	for i := 2; i < len(words); i++ {
		if known[[3]string(words[i-2:i+1])] {
			covered[i-2], covered[i-1], covered[i] = true, true, true
		}
	}
	var out []passage
	for i := 0; i < len(words); i++ {
		if covered[i] {
			continue
		}
		j := i
		for j+1 < len(words) && !covered[j+1] {
			j++
		}
		p := passage{text: text[spans[i][0]:spans[j][1]], words: j - i + 1, cause: "not in the document"}
		// Find the first run of three words that overlaps this passage.
		for k := max(i-2, 0); k <= j && k+2 < len(words); k++ {
			at, ok := m.at[[3]string(words[k:k+3])]
			if !ok {
				continue
			}
			m.place(&p, m.nodes[at+max(i-k, 0)])
			if k >= i { // wholly inside
				break
			}
		}
		out = append(out, p)
		i = j
	}
	return out
}

// place sets the cause, the landmark and the path of a passage.
func (m *places) place(p *passage, text *html.Node) {
	var path []string
	p.cause, p.landmark = "outside the root", ""
	for n := text.Parent; n != nil && n.Type == html.ElementNode; n = n.Parent {
		if reason, ok := m.dropped[n]; ok && !strings.HasPrefix(p.cause, "dropped") {
			p.cause = "dropped: " + reason
		}
		if n == m.root && p.cause == "outside the root" {
			p.cause = "inside the root"
		}
		name := n.Data
		if id := nodeAttr(n, "id"); id != "" {
			name += "#" + id
		} else if class := strings.Fields(nodeAttr(n, "class")); len(class) > 0 {
			name += "." + class[0]
		}
		if len(path) < 5 {
			path = append([]string{name}, path...)
		}
		if p.landmark == "" {
			p.landmark = landmark(n)
		}
	}
	if p.landmark == "" {
		p.landmark = "no landmark"
	}
	p.path = strings.Join(path, " > ")
}

// landmark returns the role or tag of an element that is a landmark, the tag and "hidden" for a
// hidden element, or "" for other elements.
func landmark(n *html.Node) string {
	if role := nodeAttr(n, "role"); role != "" && role != "presentation" && role != "none" {
		return n.Data + " role " + role
	}
	switch n.Data {
	case "nav", "header", "footer", "aside", "form", "figure", "table", "li", "dl", "pre", "blockquote", "details", "dialog",
		"button", "label", "select", "template", "noscript", "title", "h1", "h2", "h3", "h4", "h5", "h6", "time", "main", "article":
		return n.Data
	}
	for _, a := range n.Attr {
		if a.Key == "hidden" || a.Key == "aria-hidden" && a.Val == "true" || a.Key == "style" && strings.Contains(strings.ReplaceAll(a.Val, " ", ""), "display:none") {
			return n.Data + " hidden"
		}
	}
	return ""
}
