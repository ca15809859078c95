package commonmark

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

// newParser returns one parser for all dialects, because syntax of one tool rarely means
// something else in another. With components, indented text is not code.
func newParser(components bool) parser.Parser {
	var blocks []util.PrioritizedValue
	for _, b := range parser.DefaultBlockParsers() {
		switch {
		case components && b.Priority == 500: // the priority of indented code
		case components && b.Priority == 1000:
			blocks = append(blocks, ranked(anywhere{parser.NewParagraphParser()}, b.Priority))
		default:
			blocks = append(blocks, b)
		}
	}
	blocks = append(
		blocks,
		ranked(&indentedParser{}, 450), ranked(&colonParser{}, 460), ranked(&formulaParser{}, 470),
	)
	inlines := append(parser.DefaultInlineParsers(), ranked(&inlineFormula{}, 150))
	p := parser.NewParser(
		parser.WithBlockParsers(blocks...), parser.WithInlineParsers(inlines...),
		parser.WithParagraphTransformers(append(parser.DefaultParagraphTransformers(), ranked(&alerts{}, 50))...),
		parser.WithHeadingAttribute(),
	)
	m := goldmark.New(goldmark.WithParser(p), goldmark.WithExtensions(
		extension.Table, extension.Strikethrough, extension.Linkify, extension.TaskList, extension.Footnote, extension.DefinitionList,
	))
	return m.Parser()
}

// ranked returns a parser with its priority.
func ranked(parser any, rank int) util.PrioritizedValue {
	return util.PrioritizedValue{Value: parser, Priority: rank}
}

// anywhere allows a paragraph to start on an indented line. Otherwise no parser would accept the
// line, and parsing would end there.
type anywhere struct{ parser.BlockParser }

func (anywhere) CanAcceptIndentedLine() bool { return true }

// insertion is a callout, a tab or another container with a title.
type insertion struct {
	ast.BaseBlock
	kind   string // kind of a callout. If empty, another container.
	title  string
	colons int // number of colons in the opening line, or 0 for another syntax
}

var kindInsertion = ast.NewNodeKind("Insertion")

func (n *insertion) Kind() ast.NodeKind            { return kindInsertion }
func (n *insertion) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// CalloutKind returns the kind of callout for a tool's name in lower case, or "" for an
// unknown name.
func CalloutKind(name string) string { return calloutKinds[name] }

// calloutKinds maps tools' names of callouts to kinds.
var calloutKinds = map[string]string{
	"note": "note", "info": "note", "information": "note", "seealso": "note", "abstract": "note", "summary": "note", "tldr": "note", "question": "note",
	"help": "note", "faq": "note", "todo": "note", "primary": "note", "secondary": "note", "quote": "note", "cite": "note", "notice": "note",
	"tip": "tip", "hint": "tip", "success": "tip", "check": "tip", "done": "tip", "example": "tip",
	"important": "important", "attention": "important", "warning": "warning", "warn": "warning",
	"caution": "caution", "danger": "caution", "error": "caution", "bug": "caution", "failure": "caution", "fail": "caution", "missing": "caution",
}

// indentedParser parses indented blocks of Python-Markdown's extensions: callouts ("!!! note",
// collapsible "??? note") and tabs ("=== ").
type indentedParser struct{}

var (
	admonition = regexp.MustCompile(`^(?:!!!|\?\?\?\+?)[ \t]*([A-Za-z][\w -]*)?(?:[ \t]+"(.*)")?[ \t]*$`)
	tabTitle   = regexp.MustCompile(`^===[!+]?[ \t]+"(.*)"[ \t]*$`)
)

func (*indentedParser) Trigger() []byte { return []byte("!?=") }

func (*indentedParser) Open(_ ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if len(pc.OpenedBlocks()) > 3*maxContainers {
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

// colonParser parses containers between lines of colons, such as ":::tip Title" in Docusaurus.
type colonParser struct{}

var colonLine = regexp.MustCompile(`^(:{3,})[ \t]*(?:\{\s*\.?)?([A-Za-z][\w-]*)(?:\[(.*)\]|[ \t]+(.*?))?\}?[ \t]*:*[ \t]*$`)

func (*colonParser) Trigger() []byte { return []byte{':'} }

func (*colonParser) Open(_ ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if len(pc.OpenedBlocks()) > 3*maxContainers {
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

// closesColons reports whether a line of colons closes a container: the innermost open
// one, unless the line is in a code block.
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

// alerts converts quotes with the first line "[!NOTE]" to callouts.
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
