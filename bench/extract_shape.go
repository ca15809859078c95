package main

import (
	"net/url"
	"path"
	"regexp"
	"strings"

	"golang.org/x/net/html"

	"github.com/millrace/millrace"
)

// shape is the structure of a page, beyond its text.
type shape struct {
	code     []code
	headings []heading
	images   []string   // the file of each; see imageFile
	tables   [][]string // letters of the non-empty cells of each table, row by row
}

type code struct{ text, language string }

type heading struct {
	level int
	text  string // letters of the heading
}

// ofBlocks adds the structure of blocks, at any depth.
func (s *shape) ofBlocks(blocks []millrace.Block) {
	for i := range blocks {
		b := &blocks[i]
		switch b.Type {
		case millrace.CodeBlock:
			s.code = append(s.code, code{b.Text, b.Language})
		case millrace.HeadingBlock:
			s.headings = append(s.headings, heading{b.Level, letters(b.Text)})
		case millrace.ImageBlock, millrace.VideoBlock, millrace.EmbedBlock:
			s.images = append(s.images, imageFile(b.URL))
		case millrace.TableBlock:
			var cells []string
			for _, row := range b.Rows {
				for _, c := range row {
					if l := letters(c.Text); l != "" {
						cells = append(cells, l)
					}
				}
			}
			s.tables = append(s.tables, cells)
		}
		for _, it := range b.Items {
			s.ofBlocks(it.Blocks)
		}
		s.ofBlocks(b.Blocks)
	}
}

// ofNode adds the structure of a peer's HTML.
func (s *shape) ofNode(n *html.Node) {
	switch {
	case n == nil:
		return
	case n.Type != html.ElementNode:
	case n.Data == "pre":
		s.code = append(s.code, code{nodeText(n), nodeLanguage(n)})
	case len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6':
		s.headings = append(s.headings, heading{int(n.Data[1] - '0'), letters(nodeText(n))})
	case n.Data == "img" || n.Data == "iframe" || n.Data == "video" || n.Data == "embed":
		s.images = append(s.images, imageFile(nodeAttr(n, "src")))
	case n.Data == "table":
		var cells []string
		for d := range n.Descendants() {
			if d.Data == "td" || d.Data == "th" {
				if l := letters(nodeText(d)); l != "" {
					cells = append(cells, l)
				}
			}
		}
		s.tables = append(s.tables, cells)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		s.ofNode(c)
	}
}

// nodeText returns the text of a subtree, with a line end for every br.
func nodeText(n *html.Node) string {
	var w strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			w.WriteString(d.Data)
		} else if d.Data == "br" {
			w.WriteByte('\n')
		}
	}
	return w.String()
}

// nodeLanguage returns the language in the class of a pre or of its code element.
func nodeLanguage(n *html.Node) string {
	for _, m := range []*html.Node{n, n.FirstChild} {
		if m == nil {
			continue
		}
		for c := range strings.FieldsSeq(nodeAttr(m, "class")) {
			for _, prefix := range []string{"language-", "lang-"} {
				if l, ok := strings.CutPrefix(c, prefix); ok {
					return l
				}
			}
		}
	}
	return ""
}

func nodeAttr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// imageFile identifies a picture or a video independently of its size: by the last
// segment of its path, or the id in its query.
func imageFile(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	for _, key := range []string{"v", "id"} {
		if id := u.Query().Get(key); id != "" {
			return id
		}
	}
	return path.Base(u.Path)
}

var (
	goldHeading = regexp.MustCompile(`^(#{1,6}) +(.*?)\s*$`)
	goldImage   = regexp.MustCompile(`!\[[^\]]*\]\(([^) ]+)[^)]*\)`)
	goldLink    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	goldTag     = regexp.MustCompile(`<[^>]*>`)
	goldBars    = regexp.MustCompile(`^\|([ :]*-+[ :]*\|)+\s*$`)
)

// ofMarkdown adds the structure of a gold text. It counts fences and tables only at the left edge, so
// it excludes those in lists and quotes. It returns the lines of code that start like a heading.
func (s *shape) ofMarkdown(text string) (inCode []string) {
	fence, info, from := "", "", 0
	var table []string
	bars := false // the delimiter row was found, so it is a table
	lines := append(strings.Split(text, "\n"), "")
	for i, line := range lines {
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence != "":
			if len(ticks) >= len(fence) && strings.TrimSpace(line) == ticks {
				s.code = append(s.code, code{strings.Join(lines[from:i], "\n"), info})
				fence = ""
			} else if goldHeading.MatchString(line) {
				inCode = append(inCode, line)
			}
			continue
		case len(ticks) >= 3:
			fence, info, from = ticks, strings.TrimSpace(line[len(ticks):]), i+1
			continue
		case goldBars.MatchString(line):
			bars = true
		case strings.HasPrefix(line, "|"):
			for cell := range strings.SplitSeq(strings.ReplaceAll(line, `\|`, ""), "|") {
				if l := letters(plain(cell)); l != "" {
					table = append(table, l)
				}
			}
		case bars:
			s.tables = append(s.tables, table)
			fallthrough
		default:
			table, bars = nil, false
		}
		if m := goldHeading.FindStringSubmatch(line); m != nil {
			s.headings = append(s.headings, heading{len(m[1]), letters(plain(m[2]))})
		}
		for _, m := range goldImage.FindAllStringSubmatch(line, -1) {
			s.images = append(s.images, imageFile(m[1]))
		}
	}
	return inCode
}

// plain removes the markup from a line of Markdown, because only its letters are compared.
func plain(s string) string {
	return goldTag.ReplaceAllString(goldLink.ReplaceAllString(goldImage.ReplaceAllString(s, ""), "$1"), "")
}
