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

// The parser does not tell where an element was written. So every start tag gets
// one more attribute before the document is parsed, right after its name: the
// offset of the tag. An element without it is one that the parser has put in.
const mark = "millrace-at"

// MaxSource is the most bytes of a document that is linted or annotated.
const MaxSource = 50 << 20

// document is one whose elements know where they were written.
type document struct {
	*extract.Document
	source []byte
	ends   map[int]int // of every start tag, where its name ends, by its offset
	lines  []int       // offsets of the beginnings of lines
	ids    map[string]bool
}

// read parses a document, by the address of the page if that is known.
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
		first = 3 // the byte order mark is no character of the first line
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

// isPlain refuses a document in whose bytes tags cannot be told: that is of a
// character set that has other bytes for them.
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

// marked gives the source with a mark in every start tag.
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

// gather notes the ids of elements.
func (d *document) gather(n *html.Node) {
	if id := attr(n, "id"); id != "" {
		d.ids[id] = true
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		d.gather(c)
	}
}

// offset gives where the tag of an element begins; ok is false for one that is
// not written.
func (d *document) offset(n *html.Node) (at int, ok bool) {
	at, err := strconv.Atoi(attr(n, mark))
	if err != nil {
		return 0, false
	}
	_, ok = d.ends[at]
	return at, ok
}

// place gives the line and the column of an element, from 1, or of the first
// one around it that is written; 0 = none is. Columns count characters.
func (d *document) place(n *html.Node) (line, column int) {
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

// path gives a CSS selector that leads to an element.
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

// isName reports whether an id can be written in a selector as it is.
func isName(id string) bool {
	for i := range len(id) {
		c := id[i]
		if !(c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || i > 0 && (c >= '0' && c <= '9' || c == '-')) {
			return false
		}
	}
	return len(id) < 100
}

// options are those of the snapshot of a document.
func (d *document) options() *Options {
	o := &Options{Base: d.Base, Schema: d.Page.Schema, Forms: d.Forms}
	if u, err := url.Parse(d.Page.URL); err == nil {
		o.URL = u
	}
	return o
}
