package export

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/protocol"
)

// columns are the fields of a page in CSV.
var columns = []string{
	"site", "url", "title", "description", "summary", "author", "published", "modified", "language", "section", "tags", "kind", "revision", "unconfirmed",
	"license", "attribution", "link_back", "notice", "ai_input", "ai_train", "search", "contact", "payment", "terms",
}

// purposes lists what policies tell apart, in the order of columns.
var purposes = []millrace.Purpose{millrace.AIInput, millrace.AITrain, millrace.Search}

// CSV writes the metadata of each page as a record (RFC 4180, UTF-8), after one
// with the names of the columns. Every cell is in quotation marks and on one
// line. One that a spreadsheet would take for a formula has an apostrophe in
// front: see [cell].
func CSV(ctx context.Context, w io.Writer, sites []Site, o *Options) (Counts, error) {
	out := newCounter(w)
	var c Counts
	var record []byte
	write := func(cells []string) error {
		record = appendRecord(record[:0], cells)
		_, err := out.Write(record)
		return err
	}
	err := write(columns)
	var of *Site
	var terms []string
	if err == nil {
		err = each(ctx, sites, false, o, func(e entry) error {
			if e.site != of {
				of, terms = e.site, termCells(e.site.Terms)
			}
			c.Pages++
			p := e.page
			return write(append([]string{
				e.base, p.URL, p.Title, p.Description, p.Summary, p.Author, date(p.Published), date(p.Modified), p.Language, p.Section,
				strings.Join(p.Tags, "; "), string(p.Kind), p.Version, strconv.FormatBool(p.Unconfirmed),
			}, terms...))
		})
	}
	if err == nil {
		err = out.finish()
	}
	c.Bytes = out.n
	return c, err
}

// termCells returns what a site says about the use of its content; a site that
// says nothing has empty cells.
func termCells(docs []protocol.Terms) []string {
	m := policy.Merge(docs)
	asked := func(yes bool) string {
		if len(docs) == 0 {
			return ""
		}
		return strconv.FormatBool(yes)
	}
	r := m.Requirements
	cells := []string{m.Terms, asked(r.Attribution), asked(r.LinkBack), asked(r.Notice)}
	for _, p := range purposes {
		cell := ""
		if yes, ok := m.Purposes[p]; ok {
			cell = strconv.FormatBool(yes)
		}
		cells = append(cells, cell)
	}
	return append(cells, m.Contact, m.Payment, strings.Join(m.Documents, " "))
}

// appendRecord appends a record. Quotation marks around every cell keep a cell
// whole where a program takes another character than the comma for the
// separator.
func appendRecord(b []byte, cells []string) []byte {
	for i, s := range cells {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, strings.ReplaceAll(cell(s), `"`, `""`)...)
		b = append(b, '"')
	}
	return append(b, '\r', '\n')
}

// cell makes a text fit for a cell: valid, on one line, without control
// characters, and no formula. A spreadsheet runs what begins with = + - or @,
// in their wide forms as well; with an apostrophe in front it is text. So is
// what begins with apostrophes before one of these, so that a reader restores
// every text by removing one apostrophe from before such a start.
func cell(s string) string {
	s = strings.Join(strings.FieldsFunc(valid(s), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if r, n := utf8.DecodeRuneInString(strings.TrimLeft(s, "'")); n > 0 && strings.ContainsRune("=+-@＝＋－＠−", r) {
		return "'" + s
	}
	return s
}

// date returns a time as RFC 3339, "" for none.
func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
