package report

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/store"
)

// purposes describes purposes for people.
var purposes = map[bots.Purpose]string{bots.Training: "trains models", bots.Search: "search", bots.User: "for a user"}

// text writes l as text for people.
func (l *Log) text(w *bytes.Buffer, site string) {
	t := &l.Total
	fmt.Fprintf(w, "%s: %s", site, humanize.Quantity(l.Lines, "line"))
	if t.Requests > 0 {
		fmt.Fprintf(w, ", %s of %s from %s to %s\n", humanize.Quantity(t.Requests, "request"), humanize.Quantity(int64(len(l.Machines)), "machine"),
			l.First.Format(time.DateOnly), l.Last.Format(time.DateOnly))
		fmt.Fprintf(w, "  %s sent to machines%s", humanize.Bytes(t.Bytes), humanize.Rate(savings.Share(t.Bytes, l.AllBytes)))
		if l.Timed {
			fmt.Fprintf(w, "; the server took %s for these responses, an upper estimate of its processor time", seconds(t.Seconds))
		}
		fmt.Fprintf(w, "\n  %d of %d responses with content were probably unchanged%s, %s (an estimate)\n", t.Unchanged, t.Sent,
			humanize.Rate(savings.Share(t.Unchanged, t.Sent)), humanize.Bytes(t.UnchangedBytes))
		l.table(w)
		names(w, "most requested pages", l.TopPages)
		names(w, "bots that are not in the table", l.TopOther)
		if l.Documents != nil {
			l.Documents.text(w)
		}
	} else {
		fmt.Fprint(w, ", and none is a request of a machine that identifies itself\n")
	}
	l.notes(w)
}

// table writes a line for each machine.
func (l *Log) table(w *bytes.Buffer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	took := ""
	if l.Timed {
		took = "seconds\t"
	}
	fmt.Fprintf(table, "  by machine\tidentity\tpurpose\trequests\tpage requests\t304\tunchanged\tsent\t%sfirst\tlast\n", took)
	for i := range l.Machines {
		m := &l.Machines[i]
		name, identity := m.Bot, "claimed"
		if m.Family != "" {
			name += ", " + m.Family
		}
		switch {
		case m.Identity != store.Unverified:
			identity = string(m.Identity)
		case m.Family == "":
			identity = "-"
		}
		if l.Timed {
			took = fmt.Sprintf("%.1f\t", m.Seconds)
		}
		purpose := purposes[m.Purpose]
		if purpose == "" {
			purpose = "-"
		}
		fmt.Fprintf(table, "    %s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s%s\t%s\n", canon.OneLine(name), identity, purpose, m.Requests, m.Pages, m.NotModified,
			shareText(savings.Share(m.Unchanged, m.Sent)), humanize.Bytes(m.Bytes), took, m.First.Format(time.DateOnly), m.Last.Format(time.DateOnly))
	}
	_ = table.Flush()
}

// names writes a list of paths or user agents.
func names(w *bytes.Buffer, title string, list []TopPage) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "  %s\n", title)
	for i := range list {
		p := &list[i]
		fmt.Fprintf(w, "    %s: %s, %s", canon.OneLine(p.Name), humanize.Quantity(p.Requests, "request"), humanize.Bytes(p.Bytes))
		if p.Unchanged > 0 {
			fmt.Fprintf(w, ", %d probably unchanged", p.Unchanged)
		}
		fmt.Fprintln(w)
	}
}

func (d *Documents) text(w *bytes.Buffer) {
	share := d.Bytes.Saved / d.Bytes.Instead
	fmt.Fprintf(w, "  as documents of millrace, the same pages would have taken %s instead of %s (%.0f %% less), and about %s tokens instead of %s\n",
		humanize.Bytes(int64(d.Bytes.Spent)), humanize.Bytes(int64(d.Bytes.Instead)), 100*share, humanize.Count(d.Tokens.Spent), humanize.Count(d.Tokens.Instead))
	fmt.Fprintf(w, "  if bots also requested only changes: %s\n", humanize.Bytes(int64(d.Conditional.Spent)))
	if s := d.Sample; d.From == savings.FromSample {
		fmt.Fprintf(w, "  measured on %s of the site: %s of HTML, %s as documents; compressed %s and %s\n", humanize.Quantity(int64(s.Pages), "page"),
			humanize.Bytes(s.HTML), humanize.Bytes(s.Document), humanize.Bytes(s.HTMLGzip), humanize.Bytes(s.DocumentGzip))
		return
	}
	fmt.Fprintf(w, "  an estimate from articles of other sites: %v bytes of HTML per byte of a document, %v before compression; measure this site with --site URL\n", HTMLPerDocumentGzip, HTMLPerDocument)
}

// coefficients returns the coefficients of the figures that [Log.text] writes.
func (l *Log) coefficients(all []savings.Coefficient) []savings.Coefficient {
	if l.Documents == nil {
		return nil
	}
	return coefficients(all, perToken)
}

// notes writes what the report does not cover.
func (l *Log) notes(w *bytes.Buffer) {
	var urls []string
	for i := range l.Machines {
		if m := &l.Machines[i]; m.Ranges != "" && len(urls) < 3 {
			urls = append(urls, m.Bot+" at "+m.Ranges)
		}
	}
	if len(urls) > 0 {
		fmt.Fprintf(w, "  claimed: only the user agent names the bot; save the addresses of its operator in a file, and add --bot-ranges NAME=FILE (%s)\n", strings.Join(urls, ", "))
	}
	if l.NoAgent > 0 && l.Total.Requests == 0 {
		fmt.Fprintf(w, "  %s have no user agent, so bots cannot be recognized; use the combined log format\n", humanize.Quantity(l.NoAgent, "request"))
	}
	if l.Skipped > 0 {
		fmt.Fprintf(w, "  skipped: %s to other sites, or before the first day\n", humanize.Quantity(l.Skipped, "request"))
	}
	if l.Own > 0 {
		fmt.Fprintf(w, "  skipped: %s of millrace itself, from this machine or private addresses\n", humanize.Quantity(l.Own, "request"))
	}
	if l.MaxCountError > 0 {
		fmt.Fprintf(w, "  the lists of pages and bots were limited to save memory; each count may be too low by up to %d\n", l.MaxCountError)
	}
	if l.Long > 0 {
		fmt.Fprintf(w, "  skipped: %s of 1 MB or more\n", humanize.Quantity(l.Long, "line"))
	}
	if l.Unknown > 0 {
		fmt.Fprintf(w, "  skipped: %s in another format, such as\n", humanize.Quantity(l.Unknown, "line"))
		for _, e := range l.Examples {
			fmt.Fprintf(w, "    %s:%d: %s\n", e.File, e.Line, e.Text)
		}
	}
	for _, d := range l.Damaged {
		fmt.Fprintf(w, "  read in part: %s\n", d)
	}
}

// seconds formats a duration in seconds for people.
func seconds(s float64) string {
	if s < 600 {
		return fmt.Sprintf("%.1f s", s)
	}
	return time.Duration(s * float64(time.Second)).Round(time.Minute).String()
}
