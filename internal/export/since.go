package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// Since is the start of an export of changes: a time or cursor, or an earlier export.
type Since struct {
	Text    string            // time or cursor for all sites; see IsSince
	Cursors map[string]string // if Text is "": cursors by ReportedSite.Site; all pages of other sites are exported
}

// IsSince reports whether a text is a time or has the form of a cursor in a report.
func IsSince(s string) bool { return IsTime(s) || strings.Count(s, ":") == 2 }

// IsTime reports whether s is a time. Unlike a cursor, a time is valid for any site.
func IsTime(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

// ReadSince returns the cursors in the JSON of a [Report].
func ReadSince(file string) (*Since, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	if len(r.Sites) == 0 {
		return nil, errors.New("the report contains no site")
	}
	s := &Since{Cursors: make(map[string]string, len(r.Sites))}
	for _, site := range r.Sites {
		s.Cursors[site.Site] = site.Cursor
	}
	return s, nil
}

// changes writes the changes of sites, one site after the other.
func (s *Since) changes(ctx context.Context, w io.Writer, sites []Site, o *Options) (sum Counts, err error) {
	for i := range sites {
		before := sum.Pages + sum.Removed
		own := &Options{Progress: func(done int) {
			if o.Progress != nil {
				o.Progress(before + done)
			}
		}}
		var c Counts
		text := s.Text
		if text == "" {
			text = s.Cursors[sites[i].View.Site().Base]
		}
		var from millrace.Cursor
		if text == "" {
			c, err = Lines(ctx, w, sites[i:i+1], own)
		} else if from, err = sites[i].Since(ctx, text); err == nil {
			c, err = Changes(ctx, w, sites[i], from, own)
		}
		sum.Pages, sum.Removed, sum.Bytes = sum.Pages+c.Pages, sum.Removed+c.Removed, sum.Bytes+c.Bytes
		if err != nil {
			return sum, fmt.Errorf("changes of %s: %w", sites[i].Name, err)
		}
	}
	return sum, nil
}
