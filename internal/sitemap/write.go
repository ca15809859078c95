package sitemap

import (
	"bufio"
	"encoding/xml"
	"io"
	"time"
)

// Writer writes one sitemap. Errors of the writer below it come with Close.
type Writer struct {
	w   *bufio.Writer
	end string
}

// Namespace is a namespace of XML with the prefix that elements of it have.
type Namespace struct{ Prefix, URI string }

// NewWriter starts a list of pages. head is XML that stands before them, whose
// elements are of the given namespaces.
func NewWriter(w io.Writer, head string, in ...Namespace) *Writer {
	return start(w, "urlset", head, in)
}

// NewIndexWriter starts a list of sitemaps.
func NewIndexWriter(w io.Writer) *Writer { return start(w, "sitemapindex", "", nil) }

func start(w io.Writer, root, head string, in []Namespace) *Writer {
	out := &Writer{w: bufio.NewWriterSize(w, 64<<10), end: "</" + root + ">\n"}
	out.raw(xml.Header + "<" + root + ` xmlns="` + namespace + `"`)
	for _, n := range in {
		out.raw("\n  xmlns:" + n.Prefix + `="` + Escape(n.URI) + `"`)
	}
	out.raw(">\n" + head)
	return out
}

// namespace is that of sitemaps.org, protocol 0.9.
const namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"

func (w *Writer) raw(s string) { _, _ = w.w.WriteString(s) } // an error stays until Flush

// Page adds one page, and when it was modified; the zero time says nothing.
func (w *Writer) Page(u string, modified time.Time) { w.entry("url", u, modified) }

// Sitemap adds one sitemap to an index.
func (w *Writer) Sitemap(u string, modified time.Time) { w.entry("sitemap", u, modified) }

func (w *Writer) entry(element, u string, modified time.Time) {
	w.raw("<" + element + "><loc>" + Escape(u) + "</loc>")
	if !modified.IsZero() {
		w.raw("<lastmod>" + modified.UTC().Format(time.RFC3339) + "</lastmod>")
	}
	w.raw("</" + element + ">\n")
}

// Close ends the list; it does not close the writer below.
func (w *Writer) Close() error {
	w.raw(w.end)
	return w.w.Flush()
}

// Escape gives a text as the value of an attribute or of an element. What XML
// cannot say becomes U+FFFD.
func Escape(s string) string {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7F || c == '&' || c == '<' || c == '>' || c == '"' || c == '\'' {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	b := new(builder)
	_ = xml.EscapeText(b, []byte(s)) // a builder takes everything
	return string(*b)
}

// builder is a writer that never fails.
type builder []byte

func (b *builder) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}
