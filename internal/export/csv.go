package export

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/protocol"
)

// columns are the columns of the CSV.
var columns = []string{
	"site", "url", "title", "description", "summary", "author", "published", "modified", "language", "section", "tags", "kind", "revision", "unconfirmed",
	"license", "attribution", "link_back", "notice", "ai_input", "ai_train", "search", "contact", "payment", "terms",
}

// purposes are the purposes of policies, in the order of columns.
var purposes = []millrace.Purpose{millrace.AIInput, millrace.AITrain, millrace.Search}

// CSV writes the metadata of each page as a record (RFC 4180, UTF-8), after a header record. Each
// cell is quoted and on one line. A cell that a spreadsheet would treat as a formula starts with an
// apostrophe: see [canon.CSVCell].
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

// termCells returns the cells with the terms of use, which are empty if there are no terms.
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

// appendRecord appends a record. All cells are quoted, because some programs use a separator other
// than the comma.
func appendRecord(b []byte, cells []string) []byte {
	for i, s := range cells {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, strings.ReplaceAll(canon.CSVCell(s), `"`, `""`)...)
		b = append(b, '"')
	}
	return append(b, '\r', '\n')
}

// date formats a time as RFC 3339. It returns "" for the zero time.
func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
