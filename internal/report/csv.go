package report

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/savings"
)

// csvColumns are the columns of [Report.CSV]. Rows of pulls have no day and no bot. Unknown
// values are empty.
var csvColumns = []string{
	"kind", "site", "day", "bot", "family", "protocol", "requests", "pages", "carried", "measured", "answered", "not_modified",
	"bytes", "bytes_instead_of", "bytes_saved", "bytes_basis", "tokens", "tokens_instead_of", "tokens_saved",
	"kwh", "kwh_instead_of", "kwh_saved", "zero_fetch_pages", "zero_fetch_bytes", "zero_fetch_tokens", "zero_fetch_kwh", "lists_bytes",
}

// CSV writes a row for the requests to each site by day, bot and protocol, and a row for the
// pulls of each site by protocol.
func (r *Report) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write(csvColumns) // out.Error, called below, returns the error of any Write
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	figures := func(bytes, tokens, kwh *savings.Figure) []string {
		return []string{
			number(bytes.Spent), number(bytes.Instead), number(bytes.Saved), string(bytes.Basis),
			number(tokens.Spent), number(tokens.Instead), number(tokens.Saved), number(kwh.Spent), number(kwh.Instead), number(kwh.Saved),
		}
	}
	for _, s := range r.Served {
		for i := range s.Rows {
			d := &s.Rows[i]
			z := &d.ZeroFetch
			line := []string{
				"served", canon.CSVCell(s.Site), d.Day.Format(time.DateOnly), canon.CSVCell(d.Bot), canon.CSVCell(d.Family), canon.CSVCell(d.Protocol), count(d.Requests),
				count(d.Pages), count(d.Carried), count(d.Measured), count(d.Answered), count(d.NotModified),
			}
			line = append(line, figures(&d.Bytes, &d.Tokens, &d.KWh)...)
			_ = out.Write(append(line, count(z.Pages), number(z.Bytes), number(z.Tokens), number(z.KWh), count(d.Lists)))
		}
	}
	for _, s := range r.Sites {
		for _, q := range s.Protocols {
			v := q.Saved
			line := []string{"pulled", canon.CSVCell(s.Site), "", "", "", canon.CSVCell(q.Protocol), number(v.Requests.Spent), count(v.Pages), "", "", "", count(v.NotModified)}
			line = append(line, figures(&v.Bytes, &v.Tokens, &v.KWh)...)
			_ = out.Write(append(line, "", "", "", "", ""))
		}
	}
	out.Flush()
	return out.Error()
}
