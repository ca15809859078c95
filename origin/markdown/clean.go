package markdown

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/millrace/millrace/internal/commonmark"
)

// cleaner rewrites a text without the syntax that Markdown lacks: shortcodes, Liquid, components
// and imports. Code stays unchanged.
type cleaner struct {
	l      *linker
	m      matter
	hugo   bool // replace shortcodes in {{< >}} and {{% %}}
	liquid bool // replace tags in {% %}
	values bool // replace Liquid values in {{ }}
	script bool // replace components and remove imports
	braces bool // replace expressions in { }
	attrs  bool // remove lines of attributes, such as {: .class}

	out    []byte
	prose  []byte // lines outside code that have not been written yet
	ends   map[string]int
	open   []string // open callouts, identified by the tags that end them
	raw    bool     // the current text is inside {% raw %}
	hidden string   // tag that ends the omitted text. If empty, no text is omitted.
	absent map[string]int
	lost   omissions // unknown values, which are omitted

	depth  int // number of open components
	indent int // number of columns that are removed from the fence of a code block
}

func (s *snapshot) cleaner(l *linker, m matter) *cleaner {
	mdx := strings.EqualFold(path.Ext(l.file), ".mdx")
	jinja := s.kind == Jekyll || s.macros
	return &cleaner{
		l: l, m: m, hugo: s.kind == Hugo || s.kind == Plain, liquid: jinja || s.kind == Plain, values: jinja,
		script: mdx || s.kind == Docusaurus, braces: mdx, attrs: s.kind != Hugo && s.kind != Docusaurus,
	}
}

var (
	highlight   = regexp.MustCompile(`^([ \t]*)(?:\{\{[<%]-?\s*(?:highlight|code)\s+(.*?)-?[>%]\}\}|\{%-?\s*highlight\s+(.*?)-?%\})(.*)$`)
	unhighlight = regexp.MustCompile(`^(.*?)(?:\{\{[<%]-?\s*/\s*(?:highlight|code)\s*-?[>%]\}\}|\{%-?\s*endhighlight\s*-?%\})`)
	attribute   = regexp.MustCompile(`^[\s>]*\{:.*\}\s*$`)
	listLine    = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.)\s`)
	contents    = regexp.MustCompile(`(?i)^\s*(?:\[TOC\]|\[\[_?TOC_?\]\]|--8<--.*|\{\{[<%]\s*toc\s*[>%]\}\})\s*$`)
	rawTag      = regexp.MustCompile(`\{%-?\s*(?:end)?raw\s*-?%\}`)
	escapedTag  = regexp.MustCompile(`\{\{([<%])/\*(.*?)\*/([>%])\}\}`)
	container   = regexp.MustCompile(`(?i)<(?:div|section|figure|details|summary|aside|article|p|span|td|li)\b[^<>]*\smarkdown(?:\s*=\s*["']?(?:1|block|span|true)["']?)?[^<>]*>`)
)

// clean returns the text for the parser. It may return ErrTooLarge.
func (c *cleaner) clean(text []byte) ([]byte, error) {
	lines := bytes.Split(text, []byte("\n"))
	inside, err := commonmark.Containers(len(lines))
	if err != nil {
		return nil, err
	}
	c.out, c.absent = make([]byte, 0, len(text)+64), map[string]int{}
	c.ends = countEnds(text)
	fence, code := "", highlighted{}
	for i, line := range lines {
		if c.script {
			line = c.outdent(line, fence != "")
		}
		line = commonmark.Shallower(line, inside, fence == "")
		switch {
		case code.open:
			if m := unhighlight.FindSubmatch(line); m != nil {
				c.code(code, m[1])
				code = highlighted{}
			} else {
				code.lines = append(code.lines, line)
			}
		case fence != "":
			if commonmark.Closes(line, fence) {
				fence = ""
			}
			c.literal(line)
		case c.hugo || c.liquid || c.values:
			if m := highlight.FindSubmatch(line); m != nil {
				c.flush()
				code = highlighted{open: true, indent: m[1], args: string(append(m[2], m[3]...))}
				if end := unhighlight.FindSubmatch(m[4]); end != nil {
					c.code(code, end[1])
					code = highlighted{}
				} else if len(m[4]) > 0 {
					code.lines = append(code.lines, m[4])
				}
				continue
			}
			fallthrough
		default:
			if opened := commonmark.Fence(line); opened != "" && c.hidden == "" {
				c.flush()
				fence = opened
				c.out = append(append(c.out, line...), '\n')
				continue
			}
			c.line(line, i+1 < len(lines) && bytes.HasPrefix(bytes.TrimSpace(lines[i+1]), []byte("{:toc")))
		}
	}
	if code.open {
		c.code(code, nil)
	}
	c.flush()
	return c.out, nil
}

var (
	opensComponent  = regexp.MustCompile(`<[A-Z][\w.]*(?:\s[^<>]*[^<>/]|)>`)
	closesComponent = regexp.MustCompile(`</[A-Z][\w.]*>`)
)

// outdent removes two columns from a line for each open component. In a code block, it removes as
// many columns as from the fence.
func (c *cleaner) outdent(line []byte, code bool) []byte {
	rest := bytes.TrimLeft(line, " ")
	blank := len(line) - len(rest)
	if code {
		return line[min(blank, c.indent):]
	}
	if bytes.HasPrefix(rest, []byte("</")) {
		c.depth = max(c.depth-len(closesComponent.FindAllIndex(rest, 100)), 0)
		rest = nil
	}
	c.indent = min(blank, 2*c.depth)
	line = line[c.indent:]
	c.depth = max(c.depth+len(opensComponent.FindAllIndex(rest, 100))-len(closesComponent.FindAllIndex(rest, 100)), 0)
	return line
}

// line adds a line of text. If replaced is set, a table of contents has replaced a list, and line
// omits this list.
func (c *cleaner) line(line []byte, replaced bool) {
	switch {
	case c.attrs && attribute.Match(line), contents.Match(line), c.attrs && replaced && listLine.Match(line):
		line = nil
	case c.attrs && bytes.Contains(line, []byte("markdown")):
		line = container.ReplaceAll(line, nil)
	}
	if len(line) == 0 && bytes.HasSuffix(c.prose, []byte("\n\n\n")) {
		return
	}
	c.prose = append(append(c.prose, line...), '\n')
}

// literal writes a line of code.
func (c *cleaner) literal(line []byte) {
	if c.hidden != "" {
		return
	}
	if c.hugo && bytes.Contains(line, []byte("/*")) {
		line = escapedTag.ReplaceAll(line, []byte("{{$1$2$3}}"))
	}
	if c.values && bytes.Contains(line, []byte("raw")) {
		if l := rawTag.ReplaceAll(line, nil); len(l) != len(line) {
			if line = l; len(bytes.TrimSpace(line)) == 0 {
				return
			}
		}
	}
	c.out = append(append(c.out, line...), '\n')
}

// flush writes the stored lines of text.
func (c *cleaner) flush() {
	if len(c.prose) > 0 {
		c.text(string(c.prose))
		c.prose = c.prose[:0]
	}
}

// highlighted is a code block written as a shortcode or a tag.
type highlighted struct {
	open   bool
	indent []byte
	args   string
	lines  [][]byte
}

func (c *cleaner) code(h highlighted, last []byte) {
	if len(bytes.TrimSpace(last)) > 0 {
		h.lines = append(h.lines, last)
	}
	run, longest := 0, 2
	for _, l := range h.lines {
		for _, b := range l {
			if run++; b != '`' {
				run = 0
			}
			longest = max(longest, run)
		}
		run = 0
	}
	fence := strings.Repeat("`", longest+1)
	args := arguments(h.args)
	if c.hidden == "" {
		c.out = fmt.Appendf(c.out, "\n%s%s%s\n", h.indent, fence, args.first("lang"))
		for _, l := range h.lines {
			c.out = append(append(c.out, l...), '\n')
		}
		c.out = fmt.Appendf(c.out, "%s%s\n\n", h.indent, fence)
	}
}

var endTag = regexp.MustCompile(`\{\{[<%]-?\s*/\s*([\w./-]+)|\{%-?\s*end([\w-]+)`)

// countEnds returns the number of end tags for each tag name.
func countEnds(text []byte) map[string]int {
	ends := map[string]int{}
	for _, m := range endTag.FindAllSubmatch(text, -1) {
		if len(ends) < 1000 {
			ends[string(m[1])+string(m[2])]++
		}
	}
	return ends
}
