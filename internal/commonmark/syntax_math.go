package commonmark

import (
	"bytes"
	"regexp"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// formula is displayed TeX.
type formula struct {
	ast.BaseBlock
	end  string // "$$" or "\]"
	done bool
}

var kindFormula = ast.NewNodeKind("Formula")

func (n *formula) Kind() ast.NodeKind            { return kindFormula }
func (n *formula) IsRaw() bool                   { return true }
func (n *formula) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// formulaParser parses displayed TeX, from $$ or \[ at the start of a line to the matching end mark.
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

// isClosed reports whether one of the next lines ends with the end mark of a formula. It searches
// 2 KiB up to an empty line, or 16 KiB if far is set.
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

// tex is inline TeX.
type tex struct {
	ast.BaseInline
	source string
}

var kindTeX = ast.NewNodeKind("TeX")

func (n *tex) Kind() ast.NodeKind            { return kindTeX }
func (n *tex) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// inlineFormula parses $`x`$, $$x$$ and $x$. The last form must look like TeX, because a dollar
// sign usually begins a price.
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
