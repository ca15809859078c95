package markdown

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// newParser gives the parser of all dialects in one: what one tool knows and
// another does not, hardly ever means something else there. In components,
// text may be indented without being code.
func newParser(components bool) parser.Parser {
	var blocks []util.PrioritizedValue
	for _, b := range parser.DefaultBlockParsers() {
		switch {
		case components && b.Priority == 500: // that of indented code
		case components && b.Priority == 1000:
			blocks = append(blocks, util.Prioritized(anywhere{parser.NewParagraphParser()}, b.Priority))
		default:
			blocks = append(blocks, b)
		}
	}
	blocks = append(
		blocks,
		util.Prioritized(&indentedParser{}, 450), util.Prioritized(&colonParser{}, 460), util.Prioritized(&formulaParser{}, 470),
	)
	inlines := append(parser.DefaultInlineParsers(), util.Prioritized(&inlineFormula{}, 150))
	p := parser.NewParser(
		parser.WithBlockParsers(blocks...), parser.WithInlineParsers(inlines...),
		parser.WithParagraphTransformers(append(parser.DefaultParagraphTransformers(), util.Prioritized(&alerts{}, 50))...),
		parser.WithHeadingAttribute(),
	)
	m := goldmark.New(goldmark.WithParser(p), goldmark.WithExtensions(
		extension.Table, extension.Strikethrough, extension.Linkify, extension.TaskList, extension.Footnote, extension.DefinitionList,
	))
	return m.Parser()
}

// anywhere lets a paragraph start on an indented line. A line that no parser
// takes would end the text.
type anywhere struct{ parser.BlockParser }

func (anywhere) CanAcceptIndentedLine() bool { return true }

// insertion is a call-out, a tab or another container with a title.
type insertion struct {
	ast.BaseBlock
	kind   string // of a call-out; "" = another container
	title  string
	colons int // of the line that opened it
}

var kindInsertion = ast.NewNodeKind("Insertion")

func (n *insertion) Kind() ast.NodeKind            { return kindInsertion }
func (n *insertion) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// calloutKinds are the names that tools give to call-outs.
var calloutKinds = map[string]string{
	"note": "note", "info": "note", "information": "note", "seealso": "note", "abstract": "note", "summary": "note", "tldr": "note", "question": "note",
	"help": "note", "faq": "note", "todo": "note", "primary": "note", "secondary": "note", "quote": "note", "cite": "note", "notice": "note",
	"tip": "tip", "hint": "tip", "success": "tip", "check": "tip", "done": "tip", "example": "tip",
	"important": "important", "attention": "important", "warning": "warning", "warn": "warning",
	"caution": "caution", "danger": "caution", "error": "caution", "bug": "caution", "failure": "caution", "fail": "caution", "missing": "caution",
}

// indentedParser reads what Python-Markdown's extensions indent: call-outs
// ("!!! note", "??? note" that can be folded) and tabs ("=== ").
type indentedParser struct{}

var (
	admonition = regexp.MustCompile(`^(?:!!!|\?\?\?\+?)[ \t]*([A-Za-z][\w -]*)?(?:[ \t]+"(.*)")?[ \t]*$`)
	tabTitle   = regexp.MustCompile(`^===[!+]?[ \t]+"(.*)"[ \t]*$`)
)

func (*indentedParser) Trigger() []byte { return []byte("!?=") }

func (*indentedParser) Open(_ ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if len(pc.OpenedBlocks()) > 3*maxInside {
		return nil, parser.NoChildren
	}
	line, _ := reader.PeekLine()
	rest := bytes.TrimRight(line[max(pc.BlockOffset(), 0):], "\n")
	n := &insertion{}
	if m := admonition.FindSubmatch(rest); m != nil && (len(m[1]) > 0 || len(m[2]) > 0) {
		name, _, _ := strings.Cut(string(m[1]), " ")
		if n.kind, n.title = calloutKinds[strings.ToLower(name)], string(m[2]); n.kind == "" {
			n.kind = "note"
		}
	} else if m := tabTitle.FindSubmatch(rest); m != nil {
		n.title = string(m[1])
	} else {
		return nil, parser.NoChildren
	}
	reader.Advance(len(bytes.TrimRight(line, "\n")))
	return n, parser.HasChildren
}

func (*indentedParser) Continue(_ ast.Node, reader text.Reader, _ parser.Context) parser.State {
	line, _ := reader.PeekLine()
	if util.IsBlank(line) {
		return parser.Continue | parser.HasChildren
	}
	pos, padding := util.IndentPosition(line, reader.LineOffset(), 4)
	if pos < 0 {
		return parser.Close
	}
	reader.AdvanceAndSetPadding(pos, padding)
	return parser.Continue | parser.HasChildren
}

func (*indentedParser) Close(ast.Node, text.Reader, parser.Context) {}
func (*indentedParser) CanInterruptParagraph() bool                 { return true }
func (*indentedParser) CanAcceptIndentedLine() bool                 { return false }

// colonParser reads containers between lines of colons: ":::tip Title" of
// Docusaurus and others.
type colonParser struct{}

var colonLine = regexp.MustCompile(`^(:{3,})[ \t]*(?:\{\s*\.?)?([A-Za-z][\w-]*)(?:\[(.*)\]|[ \t]+(.*?))?\}?[ \t]*:*[ \t]*$`)

func (*colonParser) Trigger() []byte { return []byte{':'} }

func (*colonParser) Open(_ ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if len(pc.OpenedBlocks()) > 3*maxInside {
		return nil, parser.NoChildren
	}
	line, _ := reader.PeekLine()
	m := colonLine.FindSubmatch(bytes.TrimRight(line[max(pc.BlockOffset(), 0):], "\n"))
	if m == nil {
		return nil, parser.NoChildren
	}
	n := &insertion{kind: calloutKinds[strings.ToLower(string(m[2]))], title: string(m[3]), colons: len(m[1])}
	if t := string(m[4]); n.title == "" && !strings.ContainsAny(t, "={") {
		n.title = strings.Trim(t, `"`)
	}
	if n.kind == "" && !strings.EqualFold(string(m[2]), "details") {
		n.title = ""
	}
	reader.Advance(len(bytes.TrimRight(line, "\n")))
	return n, parser.HasChildren
}

func (*colonParser) Continue(node ast.Node, reader text.Reader, pc parser.Context) parser.State {
	line, _ := reader.PeekLine()
	trimmed := bytes.TrimSpace(line)
	if len(trimmed) >= 3 && len(bytes.Trim(trimmed, ":")) == 0 && closesColons(node, len(trimmed), pc) {
		reader.Advance(len(bytes.TrimRight(line, "\n")))
		return parser.Close
	}
	return parser.Continue | parser.HasChildren
}

// closesColons reports whether a line of colons ends a container: the innermost
// that is open, unless it is text of a code block.
func closesColons(node ast.Node, colons int, pc parser.Context) bool {
	blocks := pc.OpenedBlocks()
	for i := len(blocks) - 1; i >= 0; i-- {
		switch n := blocks[i].Node.(type) {
		case *ast.FencedCodeBlock, *ast.CodeBlock, *formula:
			return false
		case *insertion:
			if n.colons > 0 {
				return n == node && colons >= n.colons
			}
		}
	}
	return false
}

func (*colonParser) Close(ast.Node, text.Reader, parser.Context) {}
func (*colonParser) CanInterruptParagraph() bool                 { return true }
func (*colonParser) CanAcceptIndentedLine() bool                 { return false }

// formula is TeX that is displayed.
type formula struct {
	ast.BaseBlock
	end  string // "$$" or "\]"
	done bool
}

var kindFormula = ast.NewNodeKind("Formula")

func (n *formula) Kind() ast.NodeKind            { return kindFormula }
func (n *formula) IsRaw() bool                   { return true }
func (n *formula) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// formulaParser reads TeX between lines that start with $$, or \[.
type formulaParser struct{}

func (*formulaParser) Trigger() []byte { return []byte(`$\`) }

func (*formulaParser) Open(_ ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, segment := reader.PeekLine()
	pos := max(pc.BlockOffset(), 0)
	rest := bytes.TrimSpace(line[pos:])
	n := &formula{end: "$$"}
	switch {
	case bytes.HasPrefix(rest, []byte("$$")):
	case bytes.HasPrefix(rest, []byte(`\[`)):
		n.end = `\]`
	default:
		return nil, parser.NoChildren
	}
	inner := rest[2:]
	switch body, closed := bytes.CutSuffix(inner, []byte(n.end)); {
	case closed && len(body) > 0 && !bytes.Contains(body, []byte(n.end)) && (n.end == "$$" || bytes.ContainsAny(body, `\^_=`)):
		n.done = true
		inner = body
	case closed, len(inner) > 0 && n.end != "$$":
		return nil, parser.NoChildren
	default:
		if !isClosed(reader.Source()[segment.Stop:], n.end, len(inner) == 0) {
			return nil, parser.NoChildren
		}
	}
	if len(inner) > 0 {
		at := segment.Start + pos + bytes.Index(line[pos:], rest) + 2 - segment.Padding
		n.Lines().Append(text.NewSegment(at, at+len(inner)))
	}
	reader.Advance(len(bytes.TrimRight(line, "\n")))
	return n, parser.NoChildren
}

// isClosed reports whether a formula ends soon: on a line that ends as it does.
func isClosed(rest []byte, end string, far bool) bool {
	limit := 2 << 10
	if far {
		limit = 16 << 10
	}
	rest = rest[:min(len(rest), limit)]
	if i := bytes.Index(rest, []byte("\n\n")); i >= 0 && !far {
		rest = rest[:i]
	}
	i := bytes.Index(rest, []byte(end))
	return i >= 0 && len(bytes.TrimSpace(firstOf(rest[i+2:]))) == 0
}

func firstOf(b []byte) []byte {
	b, _, _ = bytes.Cut(b, []byte("\n"))
	return b
}

func (*formulaParser) Continue(node ast.Node, reader text.Reader, _ parser.Context) parser.State {
	n := node.(*formula)
	if n.done {
		return parser.Close
	}
	line, segment := reader.PeekLine()
	trimmed := bytes.TrimSpace(line)
	if body, ok := bytes.CutSuffix(trimmed, []byte(n.end)); ok {
		n.done = true
		if len(body) > 0 {
			at := segment.Start + bytes.Index(line, body) - segment.Padding
			n.Lines().Append(text.NewSegment(max(at, 0), max(at, 0)+len(body)))
		}
	} else {
		n.Lines().Append(segment)
	}
	reader.Advance(len(bytes.TrimRight(line, "\n")))
	return parser.Continue | parser.NoChildren
}

func (*formulaParser) Close(ast.Node, text.Reader, parser.Context) {}
func (*formulaParser) CanInterruptParagraph() bool                 { return true }
func (*formulaParser) CanAcceptIndentedLine() bool                 { return false }

// tex is a formula in a line.
type tex struct {
	ast.BaseInline
	source string
}

var kindTeX = ast.NewNodeKind("TeX")

func (n *tex) Kind() ast.NodeKind            { return kindTeX }
func (n *tex) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// inlineFormula reads $`x`$, $$x$$ and $x$. The last is money more often than
// not, so that it counts only where it is written as TeX is.
type inlineFormula struct{}

func (*inlineFormula) Trigger() []byte { return []byte{'$'} }

var looksTeX = regexp.MustCompile(`[\\^_={}<>+*/|]|^[A-Za-z]'?$|^[A-Za-z]\([A-Za-z0-9, ]+\)$`)

func (*inlineFormula) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, _ := block.PeekLine()
	line = line[:min(len(line), 1000)]
	before := block.PrecendingCharacter()
	take := func(n int, source []byte) ast.Node {
		source = bytes.TrimSpace(source)
		if len(source) == 0 {
			return nil
		}
		block.Advance(n)
		return &tex{source: string(source)}
	}
	if n := bytes.IndexFunc(line[1:], func(r rune) bool { return r != '`' }); n > 0 {
		end := append(bytes.Repeat([]byte("`"), n), '$')
		if k := bytes.Index(line[1+n:], end); k > 0 {
			return take(1+n+k+len(end), line[1+n:1+n+k])
		}
		return nil
	}
	if bytes.HasPrefix(line, []byte("$$")) {
		if k := bytes.Index(line[2:], []byte("$$")); k > 0 {
			return take(k+4, line[2:2+k])
		}
		return nil
	}
	k := bytes.IndexByte(line[1:], '$')
	if k < 1 || isWord(before) {
		return nil
	}
	source := line[1 : 1+k]
	after := byte(' ')
	if 2+k < len(line) {
		after = line[2+k]
	}
	if isWord(rune(after)) || bytes.ContainsAny(source[:1], " \t\n") || bytes.ContainsAny(source[k-1:], " \t\n\\") || !looksTeX.Match(source) {
		return nil
	}
	return take(k+2, source)
}

func isWord(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '\\' || r >= 0x80
}

// alerts marks the quotes that are call-outs: their first line is "[!NOTE]".
type alerts struct{}

var alertLine = regexp.MustCompile(`^\[!([A-Za-z]+)\][+-]?[ \t]*(.*?)\s*$`)

func (*alerts) Transform(node *ast.Paragraph, reader text.Reader, _ parser.Context) {
	quote, ok := node.Parent().(*ast.Blockquote)
	if !ok || quote.FirstChild() != node || node.Lines().Len() == 0 {
		return
	}
	first := node.Lines().At(0)
	m := alertLine.FindSubmatch(bytes.TrimSpace(first.Value(reader.Source())))
	if m == nil {
		return
	}
	kind := calloutKinds[strings.ToLower(string(m[1]))]
	if kind == "" {
		kind = "note"
	}
	quote.SetAttributeString("kind", kind)
	quote.SetAttributeString("title", string(m[2]))
	rest := text.NewSegments()
	for i := 1; i < node.Lines().Len(); i++ {
		rest.Append(node.Lines().At(i))
	}
	node.SetLines(rest)
	if rest.Len() == 0 {
		quote.RemoveChild(quote, node)
	}
}
