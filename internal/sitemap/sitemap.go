package sitemap

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// Entry is one URL of a list with its metadata.
type Entry struct {
	URL        string    // as found, without white space around it: neither resolved nor canonical; at most canon.MaxURL bytes
	Sitemap    bool      // the URL names another list, not a page
	Modified   time.Time // time of the last modification in UTC; may be in the future; zero = missing or invalid
	ChangeFreq string    // always, hourly, daily, weekly, monthly, yearly, never, or "" if missing or invalid
	Priority   float64   // 0 to 1; 0.5 = missing or invalid
	Line       int       // line where the entry starts, from 1
}

// Options configure [Parse]. The zero value works.
type Options struct {
	MaxBytes   int64 // maximum size of the list in bytes, without gzip. If zero, 50 MiB.
	MaxEntries int   // maximum number of entries. If zero, 50,000.

	// Extension is the namespace of another protocol's elements directly under the root of an XML
	// list. If empty, there are none. Parse calls Element for each of them, in their order among
	// the entries. An error of Element ends the reading, and is yielded unchanged.
	Extension string
	Element   func(Element) error
}

// Element is one element of an extension.
type Element struct {
	Name string            // without a prefix
	Attr map[string]string // attributes without a prefix; the first of each name
	Text string            // text before the first inner element, without white space around it
	Line int               // line where the element starts, from 1
}

// The limits of sitemaps.org, and fixed limits.
const (
	defaultBytes   = 50 << 20
	defaultEntries = 50_000

	maxURL   = canon.MaxURL
	maxDepth = 32      // maximum depth of nested elements
	maxToken = 1 << 20 // approximate maximum bytes of one tag, text or comment
	maxRatio = 100     // maximum ratio of gzip, above minRatio
	minRatio = 1 << 20 // size in bytes up to which no ratio applies
)

// ErrHTML and ErrFeed report documents that sites often send instead of a list. They are the
// cause in a [*millrace.FormatError].
var (
	ErrHTML = millrace.Coded("html", errors.New("HTML document, not a sitemap")) // such as an error page with status 200
	ErrFeed = millrace.Coded("feed", errors.New("RSS or Atom feed, not a sitemap"))
)

// Parse yields the entries of a list in order, while it reads r. The sequence can be used only
// once.
//
// It yields at most one error, as the last item; earlier entries are valid. For a syntax error and
// for skipped entries (no URL, or one that is too long), it is a *[millrace.FormatError] whose
// Position is text such as "line 3". For skipped entries, it contains their number and the line of
// the first one. At a limit, the error wraps [millrace.ErrTooLarge], and the rest is not read.
// Otherwise it wraps an error of r. Parse does not read beyond the end of the root element.
func Parse(r io.Reader, o *Options) iter.Seq2[Entry, error] {
	if o == nil {
		o = &Options{}
	}
	return func(yield func(Entry, error) bool) {
		p := &parser{
			in:      &input{raw: counter{r: r}, max: cmp.Or(o.MaxBytes, defaultBytes)},
			most:    cmp.Or(o.MaxEntries, defaultEntries),
			yield:   yield,
			space:   o.Extension,
			element: o.Element,
		}
		if err := p.run(); err != nil && !errors.Is(err, errStop) {
			yield(Entry{}, err)
		}
	}
}

// errStop ends the parser when the caller stops.
var errStop = errors.New("stop")

// parser reads one list.
type parser struct {
	in    *input
	most  int
	yield func(Entry, error) bool

	space   string // namespace of the elements for Options.Element
	element func(Element) error

	count   int // number of yielded entries
	left    int // number of skipped entries
	line    int // line of the first skipped entry
	because error
}

func (p *parser) run() error {
	r, err := p.in.open()
	if err != nil {
		return p.in.fail(1, err)
	}
	head, _ := r.Peek(sniffSize) // the next read returns the error again
	head = bytes.TrimLeft(head, " \t\r\n")
	switch {
	case bytes.HasPrefix(head, []byte("<")):
		err = p.markup(r)
	case bytes.IndexByte(head, 0) >= 0:
		return formatError(1, "binary", "binary data, not a sitemap", nil)
	default:
		err = p.lines(r)
	}
	if err == nil && p.left > 0 {
		err = formatError(p.line, "", fmt.Sprintf("skipped %d entries, starting here", p.left), p.because)
	}
	return err
}

// emit yields an entry, or the error that ends the stream.
func (p *parser) emit(e Entry) error {
	if p.count == p.most {
		return limitError(e.Line, "list-count", "more than %d entries; the rest is not read", p.most)
	}
	p.count++
	if !p.yield(e, nil) {
		return errStop
	}
	return nil
}

// leave records a skipped entry.
func (p *parser) leave(line int, because error) {
	if p.left++; p.left == 1 {
		p.line, p.because = line, because
	}
}

func formatError(line int, code, reason string, err error) error {
	return &millrace.FormatError{Position: fmt.Sprintf("line %d", line), Code: code, Reason: reason, Err: err}
}

func limitError(line int, code, format string, args ...any) error {
	return millrace.Coded(code, fmt.Errorf("sitemap at line %d: %s: %w", line, fmt.Sprintf(format, args...), millrace.ErrTooLarge))
}

// lines reads a list in plain text.
func (p *parser) lines(r *bufio.Reader) error {
	p.in.token = p.in.max + 1
	for line := 1; ; line++ {
		s, err := r.ReadSlice('\n')
		long := false
		for errors.Is(err, bufio.ErrBufferFull) {
			long = true
			_, err = r.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return p.in.fail(line, err)
		}
		switch s = bytes.TrimSpace(s); {
		case len(s) == 0 && !long:
		case long || len(s) > maxURL:
			p.leave(line, errLong)
		case !isURL(s):
			p.leave(line, errURL)
		default:
			if err := p.emit(Entry{URL: string(s), Priority: 0.5, Line: line}); err != nil {
				return err
			}
		}
		if err != nil {
			break
		}
	}
	if p.count == 0 && p.left > 0 {
		return formatError(p.line, "unknown-format", "neither XML nor a list of URLs", nil)
	}
	if p.count == 0 {
		return formatError(1, "empty", "document is empty", nil)
	}
	return nil
}
