package dashboard

import (
	"fmt"
	"time"
)

// chart is a table of figures over time, which a script draws as a chart. The table contains all
// data, for browsers without scripts and for screen readers.
type chart struct {
	Title  string // the caption of the table
	Unit   string // count, bytes or percent
	Lines  bool   // draw lines instead of stacked bars
	Series []string
	Rows   []chartRow
}

type chartRow struct {
	Start  time.Time
	Hour   bool      // the row is one hour instead of one day
	Values []float64 // one per series
}

// Label returns the time of a row as text.
func (r chartRow) Label() string {
	if r.Hour {
		return r.Start.UTC().Format("Mon 2 Jan 15:04")
	}
	return r.Start.UTC().Format("Mon 2 Jan 2006")
}

// Stamp returns the start of the row in Unix seconds.
func (r chartRow) Stamp() int64 { return r.Start.Unix() }

// Total adds the values of a row.
func (r chartRow) Total() (sum float64) {
	for _, v := range r.Values {
		sum += v
	}
	return sum
}

// Write formats a value.
func (c *chart) Write(v float64) string {
	switch c.Unit {
	case "bytes":
		return size(v)
	case "percent":
		return fmt.Sprintf("%.1f %%", v)
	}
	return count(v)
}

// Empty reports whether there is nothing to draw.
func (c *chart) Empty() bool {
	for _, r := range c.Rows {
		if r.Total() != 0 {
			return false
		}
	}
	return true
}

// Newest returns the rows, newest first.
func (c *chart) Newest() []chartRow {
	rows := make([]chartRow, 0, len(c.Rows))
	for i := len(c.Rows) - 1; i >= 0; i-- {
		rows = append(rows, c.Rows[i])
	}
	return rows
}
