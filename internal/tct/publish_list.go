package tct

import (
	"bufio"
	"io"
	"strings"

	"github.com/millrace/millrace"
)

// ListHead and ListTail enclose the items of a list.
const (
	ListHead = `{"version":1,"profile":"` + Profile + `","items":[`
	ListTail = "]}"
)

// ListWriter writes a list. Close it in the end.
type ListWriter struct {
	d    *Draft
	site millrace.Site
	docs string
	out  *bufio.Writer
	sep  string
	buf  []byte
}

// NewListWriter starts a list of the M-URLs of site.
func (d *Draft) NewListWriter(w io.Writer, site millrace.Site) *ListWriter {
	l := &ListWriter{d: d, site: site, docs: strings.TrimSuffix(site.Docs, "/"), out: bufio.NewWriterSize(w, 64<<10), sep: "\n"}
	_, _ = l.out.WriteString(ListHead) // an error stays until Close
	return l
}

// Page writes the item of a page.
func (l *ListWriter) Page(t millrace.Tag) error {
	return l.item(t.URL, l.d.path(l.site, t), FormatTime(t.Modified), t.Value)
}

// Overview writes the item of an overview.
func (l *ListWriter) Overview(o *Overview) error {
	return l.item(o.CanonicalURL, o.path, o.Modified, o.tag)
}

func (l *ListWriter) item(curl, path, modified, tag string) error {
	it := Item{CURL: curl, MURL: l.docs + path, Modified: Date(modified), ContentHash: tag, ETag: tag}
	l.buf = l.d.AppendItem(append(l.buf[:0], l.sep...), &it)
	l.sep = ",\n"
	_, err := l.out.Write(l.buf)
	return err
}

// Close ends the list. It does not close the writer below.
func (l *ListWriter) Close() error {
	_, _ = l.out.WriteString(ListTail)
	return l.out.Flush()
}
