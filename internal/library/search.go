package library

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/terminal"
)

// Report is the result of a search.
type Report struct {
	Query     string `json:"query"`               // the query
	Total     int    `json:"total"`               // number of passages found, without --limit
	Corrected string `json:"corrected,omitempty"` // corrected query, if only that found passages
	Note      string `json:"note,omitempty"`      // why the result may be incomplete
	Code      string `json:"code,omitempty"`      // code of the first reason in note
	Hits      []Hit  `json:"hits"`                // the best passages

	seconds float64
}

// Hit is a passage.
type Hit struct {
	URL       string   `json:"url"`
	Title     string   `json:"title"`
	Headings  []string `json:"headings,omitempty"` // headings above the passage, the outermost first
	Chunk     string   `json:"chunk"`              // ID of the passage
	Type      string   `json:"type"`               // type of the passage, such as paragraph
	Relevance float64  `json:"relevance"`          // relevance from 0 to 1
	Snippet   string   `json:"snippet"`            // part of the passage
	Marks     [][2]int `json:"marks,omitempty"`    // matches in the snippet, as byte offsets [start, end]
}

// Search updates the indexes of sites and searches them one by one. The report names sites that are
// absent, or whose view or index is not available. Search returns an error if it can search no
// site, or after any other error.
func (l *Library) Search(ctx context.Context, names []string, q millrace.Query) (*Report, error) {
	r := &Report{Query: q.Text, Hits: []Hit{}}
	var missed []error
	for _, name := range names {
		err := l.search(ctx, name, q, r)
		passes := errors.Is(err, millrace.ErrConflict) || errors.Is(err, millrace.ErrUnavailable) || errors.Is(err, millrace.ErrNotFound)
		switch {
		case err != nil && (!passes || ctx.Err() != nil):
			return nil, err
		case err != nil:
			missed = append(missed, err)
		}
	}
	if len(missed) == len(names) {
		return nil, errors.Join(missed...)
	}
	for _, err := range missed {
		r.note(fmt.Errorf("not searched: %w", err))
	}
	// The relevance of hits is comparable across sites.
	slices.SortStableFunc(r.Hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Relevance, a.Relevance), cmp.Compare(a.URL, b.URL))
	})
	r.Hits = r.Hits[:min(len(r.Hits), q.Limit)]
	return r, nil
}

// search adds the hits of a site. If a view has expired, it uses a newer one.
func (l *Library) search(ctx context.Context, name string, q millrace.Query, r *Report) error {
	x, err := l.index(ctx, name)
	if err != nil {
		return err
	}
	const tries = 3
	for range tries {
		var v millrace.View
		if _, v, err = ingest.Head(ctx, l.store, name); err != nil {
			return err
		}
		var note error
		if note, err = l.prepare(ctx, name, x, v); note != nil {
			r.note(fmt.Errorf("searched by words only: %w", note))
		}
		if err == nil {
			err = r.add(ctx, x, v, q)
		}
		if !errors.Is(err, millrace.ErrConflict) {
			break
		}
	}
	return err
}

// note adds a reason why hits may be missing; nil adds nothing.
func (r *Report) note(err error) {
	switch {
	case err == nil || r.Note == err.Error():
	case r.Note == "":
		r.Note, r.Code = err.Error(), millrace.ErrorCode(err)
	default:
		r.Note += "; " + err.Error()
	}
}

// add adds the hits of one view.
func (r *Report) add(ctx context.Context, x *index.Index, v millrace.View, q millrace.Query) error {
	start := time.Now()
	found, err := x.Search(ctx, v, q)
	r.seconds += time.Since(start).Seconds()
	if err != nil {
		return err
	}
	r.note(found.Note)
	if len(found.Hits) == 0 {
		return nil
	}
	// If one site has hits for the query itself, drop hits for a corrected query.
	switch first := len(r.Hits) == 0; {
	case !first && r.Corrected == "" && found.Corrected != "":
		return nil
	case !first && r.Corrected != "" && found.Corrected == "":
		r.Hits, r.Total, r.Corrected = r.Hits[:0], 0, ""
	case first:
		r.Corrected = found.Corrected
	}
	r.Total += found.Total
	for i := range found.Hits {
		h := &found.Hits[i]
		r.Hits = append(r.Hits, Hit{
			URL: h.URL, Title: h.Title, Headings: h.Headings, Chunk: h.Chunk, Type: h.Type,
			Relevance: h.Relevance, Snippet: h.Snippet, Marks: h.Marks,
		})
	}
	return nil
}

// WriteText writes the report as text for people, with titles and marks in bold.
func (r *Report) WriteText(t *terminal.Text) {
	if r.Corrected != "" {
		fmt.Fprintf(t, "Nothing was found for %q. Results for %q:\n\n", r.Query, r.Corrected)
	}
	for i := range r.Hits {
		h := &r.Hits[i]
		fmt.Fprintf(t, "%.2f  ", h.Relevance)
		t.Bold(canon.OneLine(cmp.Or(h.Title, h.URL)))
		fmt.Fprintf(t, "\n      %s\n", h.URL)
		if len(h.Headings) > 0 {
			fmt.Fprintf(t, "      %s\n", canon.OneLine(strings.Join(h.Headings, " › ")))
		}
		for _, line := range terminal.Wrap(h.Snippet, h.Marks, 94) {
			fmt.Fprint(t, "      ")
			for _, p := range line {
				if p.Strong {
					t.Bold(p.Text)
				} else {
					fmt.Fprint(t, p.Text)
				}
			}
			fmt.Fprintln(t)
		}
		fmt.Fprintln(t)
	}
	if len(r.Hits) == 0 {
		fmt.Fprintln(t, "Nothing was found. Try fewer or other words.")
	} else {
		fmt.Fprintf(t, "%d of %d passages, %.0f ms\n", len(r.Hits), r.Total, r.seconds*1000)
	}
	if r.Note != "" {
		fmt.Fprintln(t, canon.OneLine(r.Note))
	}
}
