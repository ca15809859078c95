package arc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/millrace/millrace"
)

const (
	maxYAMLPart  = 256 << 10 // bytes of one page, and of all that is beside the pages
	maxYAMLDepth = 64        // lists and maps inside each other
)

// fromYAML writes as JSON what a list in YAML (E.3.3) says. Its pages are taken
// one by one, so that memory does not grow with the list, which any sequence in
// block style under "pages" allows; one in flow style has to fit in a part.
// Anchors, aliases, merges and tags, which nobody needs in a list and with
// which a few lines can say more than any memory holds, are refused.
//
// Errors are [*millrace.FormatError] with the line and the column, without the
// URL; ErrTooLarge; or those of the reader and the writer.
func fromYAML(r io.Reader, w io.Writer) error {
	y := yamlReader{in: bufio.NewReaderSize(r, 64<<10), out: bufio.NewWriter(w)}
	if err := y.read(); err != nil {
		return err
	}
	return y.out.Flush()
}

// asJSON gives what [fromYAML] writes. stop ends that; r is free from then on.
func asJSON(r io.Reader) (out io.Reader, stop func()) {
	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = pw.CloseWithError(fromYAML(r, pw))
	}()
	return pr, func() {
		_ = pr.Close()
		<-done
	}
}

// yamlReader takes a list apart by the indentation of its lines.
type yamlReader struct {
	in   *bufio.Reader
	out  *bufio.Writer
	line int // number of the line read last, from 1

	top   part // all that is beside the pages
	page  part // the page at hand
	pages int  // written so far
	state yamlState
	said  bool // there was more than comments
	dash  int  // columns before the "-" of each page
}

// part is some lines of a document, in one run, or in two.
type part struct {
	text  []byte
	first int // number of its first line
	lines int
	cut   int // lines of the first run; 0 = there is one
	gap   int // lines of the document between the two
}

// number gives the number that a line of the part, from 1, has in the document.
func (p *part) number(line int) int {
	if p.cut > 0 && line > p.cut {
		line += p.gap
	}
	return p.first - 1 + line
}

type yamlState uint8

const (
	yamlTop   yamlState = iota // beside the pages
	yamlOpen                   // "pages:" was read, and nothing of them
	yamlPages                  // in the pages
	yamlEnd                    // after the end of the document
)

// pagesKey is the line that pages in block style follow.
var pagesKey = regexp.MustCompile(`^(?:pages|"pages"|'pages')[ \t]*:[ \t]*(?:#.*)?$`)

func (y *yamlReader) read() error {
	y.out.WriteByte('{') //nolint:errcheck // Flush gives it
	listed := false
	for {
		line, err := y.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		beside := line // what is added to the rest
		switch bare := bytes.TrimSpace(line); {
		case y.state == yamlEnd:
			if len(bare) > 0 && bare[0] != '#' {
				return yamlError(y.line, 1, "there is more than one document")
			}
			beside = nil
		case y.line == 1 && bytes.HasPrefix(line, []byte("\uFEFF")):
			return yamlError(1, 1, "it starts with a byte order mark")
		case isMark(line, "---"):
			if y.said || len(bare) > 3 {
				return yamlError(y.line, 1, "there is more than one document")
			}
			y.said, beside = true, []byte("\n")
		case !y.said && bytes.HasPrefix(line, []byte("%")):
			beside = []byte("\n") // for whoever knows more than one YAML
		case isMark(line, "..."):
			y.state, beside = yamlEnd, nil
		case y.state == yamlTop && !listed && pagesKey.Match(bytes.TrimRight(line, "\r\n")):
			y.state, listed, beside = yamlOpen, true, []byte("\n")
			_, err = y.out.WriteString(`"pages":[`)
		case y.state == yamlTop:
		case len(bare) == 0 || bare[0] == '#':
			if beside = nil; y.state == yamlPages {
				err = y.page.add(line, y.line)
			}
		default:
			beside, err = y.within(line)
		}
		if y.said = y.said || len(bytes.TrimSpace(line)) > 0 && line[0] != '#' && line[0] != '%'; err == nil && beside != nil {
			err = y.top.add(beside, y.line)
		}
		if err != nil {
			return err
		}
	}
	return y.finish(listed)
}

// next gives the next line with its end. It may be as long as a part.
func (y *yamlReader) next() ([]byte, error) {
	var line []byte
	for {
		chunk, err := y.in.ReadSlice('\n')
		line = append(line, chunk...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if len(line) > maxYAMLPart {
				return nil, yamlLimit(y.line + 1)
			}
			continue
		case err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)):
			return nil, err
		}
		y.line++
		return line, nil
	}
}

// isMark reports whether a line is a mark between documents.
func isMark(line []byte, mark string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(mark))
	return ok && (len(rest) == 0 || strings.ContainsRune(" \t\r\n", rune(rest[0])))
}

// within takes a line after that of the pages. What does not belong to them is
// given back.
func (y *yamlReader) within(line []byte) (beside []byte, err error) {
	indent := len(line) - len(bytes.TrimLeft(line, " "))
	rest := line[indent:]
	item := rest[0] == '-' && (len(rest) == 1 || strings.ContainsRune(" \t\r\n", rune(rest[1])))
	switch {
	case y.state == yamlOpen && !item:
		if indent > 0 {
			return nil, yamlError(y.line, indent+1, "the pages are no sequence")
		}
		y.beside() // there are none
		return line, nil
	case y.state == yamlOpen:
		y.state, y.dash = yamlPages, indent
		return nil, y.page.add(line, y.line)
	case indent > y.dash:
		return nil, y.page.add(line, y.line)
	case indent == y.dash && item:
		if err := y.flush(); err != nil {
			return nil, err
		}
		return nil, y.page.add(line, y.line)
	case indent == 0:
		y.beside()
		return line, y.flush()
	}
	return nil, yamlError(y.line, indent+1, "the line belongs to no page")
}

// beside goes on, after the pages, with what is beside them.
func (y *yamlReader) beside() {
	y.state, y.top.cut = yamlTop, y.top.lines
	y.top.gap = y.line - y.top.first - y.top.lines
}

// flush writes the page at hand.
func (y *yamlReader) flush() error {
	if len(y.page.text) == 0 {
		return nil
	}
	node, err := y.page.parse()
	if err != nil {
		return err
	}
	d := yamlEncoder{part: &y.page}
	seq, ok := node.(*ast.SequenceNode)
	if !ok || len(seq.Values) != 1 {
		return yamlError(y.page.first, y.dash+1, "it is no single page")
	}
	out, err := d.append(nil, seq.Values[0], 1)
	if err != nil {
		return err
	}
	if y.pages > 0 {
		y.out.WriteByte(',') //nolint:errcheck // the next write gives it
	}
	y.pages++
	y.page = part{text: y.page.text[:0]}
	_, err = y.out.Write(out)
	return err
}

// finish writes what is beside the pages.
func (y *yamlReader) finish(listed bool) error {
	if err := y.flush(); err != nil {
		return err
	}
	if listed {
		y.out.WriteByte(']') //nolint:errcheck // Flush gives it
	}
	node, err := y.top.parse()
	if err != nil {
		return err
	}
	d := yamlEncoder{part: &y.top, top: true}
	switch node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		out, err := d.append(nil, node, 0)
		if err != nil {
			return err
		}
		if out = out[1:]; listed && len(out) > 1 {
			y.out.WriteByte(',') //nolint:errcheck // Flush gives it
		}
		_, err = y.out.Write(out)
		return err
	case nil, *ast.NullNode:
		return y.out.WriteByte('}')
	}
	return yamlError(1, 1, "it is no mapping")
}

// add adds a line, whose number counts for the first one.
func (p *part) add(line []byte, number int) error {
	if len(p.text) == 0 {
		p.first = number
	}
	p.lines++
	if p.text = append(p.text, line...); len(p.text) > maxYAMLPart {
		return yamlLimit(number)
	}
	return nil
}

// parse gives the tree of a part, nil for an empty one. How deep it nests is
// looked at before the parser is, which goes down as deep.
func (p *part) parse() (_ ast.Node, err error) {
	defer func() {
		if r := recover(); r != nil { // the parser has paths that nobody has walked
			err = yamlError(p.number(1), 1, fmt.Sprintf("it cannot be parsed: %v", r))
		}
	}()
	tokens := lexer.Tokenize(string(p.text))
	depth, dashes, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			dashes, line = 0, t.Position.Line
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth = max(depth-1, 0)
		case token.SequenceEntryType, token.MappingKeyType:
			dashes++ // each opens one more, in block style
		}
		if depth > maxYAMLDepth || dashes > maxYAMLDepth {
			return nil, yamlDeep(p.number(line), t.Position.Column)
		}
	}
	f, err := parser.Parse(tokens, 0)
	if err != nil {
		if se, ok := errors.AsType[*yaml.SyntaxError](err); ok && se.Token != nil && se.Token.Position != nil {
			return nil, yamlError(p.number(se.Token.Position.Line), se.Token.Position.Column, se.Message)
		}
		reason, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
		return nil, yamlError(p.number(1), 1, reason)
	}
	var node ast.Node
	for _, doc := range f.Docs {
		if node != nil && doc.Body != nil {
			return nil, yamlError(p.first, 1, "there is more than one document")
		}
		if doc.Body != nil {
			node = doc.Body
		}
	}
	return node, nil
}

func yamlError(line, column int, reason string) error {
	return &millrace.FormatError{
		Protocol: Name, Section: "E.3.3", Position: fmt.Sprintf("line %d, column %d", line, column), Reason: reason,
	}
}

func yamlDeep(line, column int) error {
	return yamlError(line, column, fmt.Sprintf("it nests deeper than %d levels", maxYAMLDepth))
}

func yamlLimit(line int) error {
	return fmt.Errorf("YAML at line %d: a page, or what is beside the pages, is longer than %d bytes: %w", line, maxYAMLPart, millrace.ErrTooLarge)
}
