package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
)

// mark is an attribute with the source position of an element, which the parser does not report.
// Before parsing, it is inserted after the name of every start tag, with the offset of the tag as
// its value. An element without it was added by the parser.
const mark = "millrace-at"

// MaxSource limits the bytes of a document to lint or annotate.
const MaxSource = 50 << 20

// document is a parsed document with the source positions of its elements.
type document struct {
	*extract.Document
	source []byte
	ends   map[int]int // end of the tag name, by offset of the start tag
	lines  []int       // offsets of line starts
	ids    map[string]bool
}

// read parses a document. pageURL may be empty.
func read(ctx context.Context, data []byte, pageURL string) (*document, error) {
	if len(data) > MaxSource {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", millrace.ErrTooLarge, len(data), MaxSource)
	}
	if err := isPlain(data); err != nil {
		return nil, err
	}
	d := &document{source: data, ends: map[int]int{}}
	marked := d.marked()
	rules, err := extract.NewRules(&extract.RulesOptions{Extra: map[string]extract.Extra{ExtraKey: {Make: func(_ context.Context, e *extract.Document) (json.RawMessage, error) {
		d.Document = e
		return nil, nil
	}}}})
	if err != nil {
		return nil, err
	}
	if _, err := extract.HTML(ctx, marked, pageURL, &extract.Options{Rules: rules, MaxBytes: len(marked) + 1}); err != nil {
		return nil, err
	}
	first := 0
	if bytes.HasPrefix(data, []byte("\xEF\xBB\xBF")) {
		first = 3 // the byte order mark is not part of the first line
	}
	d.lines = append(d.lines, first)
	for i, c := range data {
		if c == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	d.ids = map[string]bool{}
	d.gather(d.Tree)
	return d, nil
}

// isPlain returns an error for a document whose character set encodes tags differently from
// ASCII.
func isPlain(data []byte) error {
	head := data[:min(len(data), 1024)]
	if bytes.HasPrefix(head, []byte("\xFE\xFF")) || bytes.HasPrefix(head, []byte("\xFF\xFE")) || bytes.Contains(head, []byte("<\x00")) || bytes.Contains(head, []byte("\x00<")) {
		return fmt.Errorf("%w: the document is in UTF-16; lines and tags need UTF-8", millrace.ErrInvalid)
	}
	if bytes.Contains(data, []byte("\x1B$")) {
		return fmt.Errorf("%w: the document is in ISO-2022; lines and tags need UTF-8", millrace.ErrInvalid)
	}
	return nil
}

// marked returns the source with a mark in every start tag.
func (d *document) marked() []byte {
	out := make([]byte, 0, len(d.source)+len(d.source)/4)
	z, at := html.NewTokenizer(bytes.NewReader(d.source)), 0
	for {
		t := z.Next()
		raw := z.Raw()
		if t == html.StartTagToken || t == html.SelfClosingTagToken {
			end := 1
			for end < len(raw) && !strings.ContainsRune(" \t\r\n\f/>", rune(raw[end])) {
				end++
			}
			d.ends[at] = at + end
			out = append(append(out, raw[:end]...), ' ')
			out = strconv.AppendInt(append(append(out, mark...), `="`...), int64(at), 10)
			out = append(append(out, '"'), raw[end:]...)
		} else {
			out = append(out, raw...)
		}
		at += len(raw)
		if t == html.ErrorToken {
			return append(out, d.source[min(at, len(d.source)):]...)
		}
	}
}

// gather collects the ids of elements.
func (d *document) gather(n *html.Node) {
	if id := attr(n, "id"); id != "" {
		d.ids[id] = true
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		d.gather(c)
	}
}

// offset returns the offset of an element's tag. ok is false for an element that has no tag in
// the source.
func (d *document) offset(n *html.Node) (at int, ok bool) {
	at, err := strconv.Atoi(attr(n, mark))
	if err != nil {
		return 0, false
	}
	_, ok = d.ends[at]
	return at, ok
}

// position returns the line and column, from 1, of an element or of its nearest ancestor with a
// tag in the source; 0 otherwise. Columns count characters.
func (d *document) position(n *html.Node) (line, column int) {
	for ; n != nil; n = n.Parent {
		at, ok := d.offset(n)
		if !ok {
			continue
		}
		low, high := 0, len(d.lines)
		for high-low > 1 {
			if mid := (low + high) / 2; d.lines[mid] <= at {
				low = mid
			} else {
				high = mid
			}
		}
		return low + 1, utf8.RuneCount(d.source[d.lines[low]:at]) + 1
	}
	return 0, 0
}

// path returns a CSS selector of an element.
func (d *document) path(n *html.Node) string {
	var steps []string
	for ; n != nil && n.Type == html.ElementNode; n = n.Parent {
		step := n.Data
		if id := attr(n, "id"); id != "" && isName(id) {
			steps = append(steps, step+"#"+id)
			break
		}
		before, after := 0, false
		for s := n.PrevSibling; s != nil && before < 10_000; s = s.PrevSibling {
			if s.Type == html.ElementNode && s.Data == n.Data {
				before++
			}
		}
		for s := n.NextSibling; s != nil && before == 0 && !after; s = s.NextSibling {
			after = s.Type == html.ElementNode && s.Data == n.Data
		}
		if before > 0 || after {
			step += ":nth-of-type(" + strconv.Itoa(before+1) + ")"
		}
		steps = append(steps, step)
	}
	var b strings.Builder
	for i := len(steps) - 1; i >= 0; i-- {
		b.WriteString(steps[i])
		if i > 0 {
			b.WriteString(" > ")
		}
	}
	return b.String()
}

// isName reports whether an id needs no escaping in a selector.
func isName(id string) bool {
	for i := range len(id) {
		c := id[i]
		if !(c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || i > 0 && (c >= '0' && c <= '9' || c == '-')) {
			return false
		}
	}
	return len(id) < 100
}

// options returns the options for the snapshot of a document.
func (d *document) options() *Options {
	o := &Options{Base: d.Base, Schema: d.Page.Schema, Forms: d.Forms}
	if u, err := url.Parse(d.Page.URL); err == nil {
		o.URL = u
	}
	return o
}
