package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/store"
)

type searchCommand struct {
	common
	embedding
	Query    []string `arg:"" help:"What to look for, as one argument in quotation marks: words, \"phrases\", -without, title:word, url:part."`
	Store    string   `required:"" placeholder:"FILE" help:"Store to search: a mirror that pull has written, or the store of a site that is served."`
	Site     string   `placeholder:"URL" help:"Search only this site of the store (default: all of them)."`
	Limit    int      `default:"10" placeholder:"N" help:"Most passages to show (default: ${default})."`
	MinScore float64  `placeholder:"N" help:"Only passages of this relevance or more, from 0 to 1."`
}

// searchReport is what `millrace search --json` prints.
type searchReport struct {
	Query     string      `json:"query"`
	Total     int         `json:"total"`               // how many passages were found, before limit
	Corrected string      `json:"corrected,omitempty"` // as it was read, when nothing else was found
	Note      string      `json:"note,omitempty"`      // why the answer is less than it could be
	Code      string      `json:"code,omitempty"`      // of the first reason in Note
	Hits      []searchHit `json:"hits"`

	seconds float64
	bold    bool
}

type searchHit struct {
	URL       string   `json:"url"`
	Title     string   `json:"title"`
	Headings  []string `json:"headings,omitempty"` // above the passage, the outermost first
	Chunk     string   `json:"chunk"`
	Type      string   `json:"type"`
	Relevance float64  `json:"relevance"`
	Snippet   string   `json:"snippet"`
	Marks     [][2]int `json:"marks,omitempty"` // what was found in it: byte offsets of its UTF-8, from and until
}

// mostHits is the most passages that a search shows.
const mostHits = 1000

// Run indexes what is not indexed yet, and searches.
func (c *searchCommand) Run(ctx context.Context, p *process) error {
	p.limitMemory()
	// Somebody waits: what is missed now is asked for again by the next search.
	embedder, err := c.embedder(-1)
	if err != nil {
		return err
	}
	text := strings.Join(c.Query, " ")
	switch {
	case strings.TrimSpace(text) == "":
		return usageError("there is nothing to look for; write a few words, such as \"reset a password\"")
	case c.Limit < 1 || c.Limit > mostHits:
		return usageError(fmt.Sprintf("--limit %d: from 1 to %d", c.Limit, mostHits))
	case !(c.MinScore >= 0 && c.MinScore <= 1):
		return usageError(fmt.Sprintf("--min-score %v: from 0 to 1", c.MinScore))
	}
	st, err := p.openToRead(ctx, c.Store)
	if err != nil {
		return err
	}
	names, err := ingest.SiteNames(ctx, st)
	if err == nil && c.Site != "" {
		names, err = oneSite(ctx, st, names, c.Site)
	}
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("store %s: %w: no site is in it yet", c.Store, millrace.ErrNotFound)
	}
	r := &searchReport{Query: text, Hits: []searchHit{}, bold: terminal.Is(p.stdout, p.lookup) && !noColor(p.lookup)}
	if err == nil {
		err = c.sites(ctx, p, st, names, embedder, text, r)
	}
	if err = errors.Join(err, st.Close()); err != nil {
		return err
	}
	// Relevance means the same on every site.
	slices.SortStableFunc(r.Hits, func(a, b searchHit) int {
		return cmp.Or(cmp.Compare(b.Relevance, a.Relevance), cmp.Compare(a.URL, b.URL))
	})
	r.Hits = r.Hits[:min(len(r.Hits), c.Limit)]
	return p.report(r, r.text)
}

// sites searches one site after another. One that cannot be searched just now is
// named in the answer, and fails the search only if there is no other.
func (c *searchCommand) sites(ctx context.Context, p *process, st store.Store, names []string, e index.Embedder, text string, r *searchReport) error {
	var missed []error
	for _, name := range names {
		site, err := st.Site(ctx, name, "")
		if err == nil {
			err = c.site(ctx, p, site, name, e, text, r)
		}
		passes := errors.Is(err, millrace.ErrConflict) || errors.Is(err, millrace.ErrUnavailable) || errors.Is(err, millrace.ErrNotFound)
		switch {
		case err != nil && (!passes || ctx.Err() != nil):
			return err
		case err != nil:
			missed = append(missed, err)
		}
	}
	if len(missed) == len(names) {
		return errors.Join(missed...)
	}
	for _, err := range missed {
		r.note(fmt.Errorf("not searched: %w", err))
	}
	return nil
}

// oneSite gives the site of a store that is meant, by its name or by where its
// pages are.
func oneSite(ctx context.Context, st store.Store, names []string, want string) ([]string, error) {
	want = strings.TrimSuffix(want, "/")
	for _, n := range names {
		if strings.TrimSuffix(n, "/") == want {
			return []string{n}, nil
		}
	}
	for _, n := range names {
		// A site that has not been published has no other name.
		if _, v, err := ingest.Head(ctx, st, n); err == nil && strings.TrimSuffix(v.Site().Base, "/") == want {
			return []string{n}, nil
		}
	}
	return nil, usageError(fmt.Sprintf("--site %s: it is not in the store; there is: %s", want, strings.Join(names, ", ")))
}

// site brings the index of a site up to date and searches it. The store may
// change meanwhile: a view that is gone is replaced by a newer one.
func (c *searchCommand) site(ctx context.Context, p *process, site store.Site, name string, e index.Embedder, text string, r *searchReport) (err error) {
	x, err := index.Open(ctx, index.File(c.Store, name), &index.Options{Logger: p.log, Embedder: e})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	const tries = 3
	for range tries {
		var v millrace.View
		if v, err = (ingest.Visible{Site: site}).Head(ctx); err != nil {
			return err
		}
		if err = r.prepare(ctx, p, x, v, name); err == nil {
			err = c.search(ctx, x, v, text, r)
		}
		if !errors.Is(err, millrace.ErrConflict) {
			break
		}
	}
	return err
}

// prepare brings an index up to date. If another process keeps it locked, it is
// searched as it is; and without meaning there are still the words.
func (r *searchReport) prepare(ctx context.Context, p *process, x *index.Index, v millrace.View, name string) error {
	bar := p.progress("indexing " + name)
	err := x.Update(ctx, v, bar.Show)
	bar.End()
	switch {
	case ctx.Err() != nil:
		return err
	case errors.Is(err, millrace.ErrUnavailable):
		p.log.Warn("index is out of date; searching it as is", "site", name, "err", err)
		return nil
	case err != nil:
		return err
	}
	bar = p.progress("learning from " + name)
	bar.Count("passages")
	err = x.Fit(ctx, bar.Show)
	bar.End()
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		r.note(fmt.Errorf("found by words alone: %w", err))
	}
	return nil
}

// note adds why the hits may be fewer than they could be; nil is nothing.
func (r *searchReport) note(err error) {
	switch {
	case err == nil || r.Note == err.Error():
	case r.Note == "":
		r.Note, r.Code = err.Error(), millrace.ErrorCode(err)
	default:
		r.Note += "; " + err.Error()
	}
}

// search adds the hits of one view.
func (c *searchCommand) search(ctx context.Context, x *index.Index, v millrace.View, text string, r *searchReport) error {
	start := time.Now()
	found, err := x.Search(ctx, v, millrace.Query{Text: text, Limit: c.Limit, Least: c.MinScore})
	r.seconds += time.Since(start).Seconds()
	if err != nil {
		return err
	}
	r.note(found.Note)
	if len(found.Hits) == 0 {
		return nil
	}
	// What is found as it was typed leaves no room for a guess.
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
		r.Hits = append(r.Hits, searchHit{
			URL: h.URL, Title: h.Title, Headings: h.Headings, Chunk: h.Chunk, Type: h.Type,
			Relevance: h.Relevance, Snippet: h.Snippet, Marks: h.Marks,
		})
	}
	return nil
}

func (r *searchReport) text(b *bytes.Buffer) {
	if r.Corrected != "" {
		fmt.Fprintf(b, "Nothing was found for %q. This is for %q:\n\n", humanize.Printable(r.Query), humanize.Printable(r.Corrected))
	}
	for i := range r.Hits {
		h := &r.Hits[i]
		fmt.Fprintf(b, "%.2f  %s\n      %s\n", h.Relevance, r.strong(humanize.Printable(cmp.Or(h.Title, h.URL))), humanize.Printable(h.URL))
		if len(h.Headings) > 0 {
			fmt.Fprintf(b, "      %s\n", humanize.Printable(strings.Join(h.Headings, " › ")))
		}
		for _, line := range terminal.Wrap(h.Snippet, h.Marks, 94, r.strong) {
			fmt.Fprintf(b, "      %s\n", line)
		}
		b.WriteByte('\n')
	}
	if len(r.Hits) == 0 {
		b.WriteString("Nothing was found. Try fewer or other words.\n")
	} else {
		fmt.Fprintf(b, "%d of %d passages, %.0f ms\n", len(r.Hits), r.Total, r.seconds*1000)
	}
	if r.Note != "" {
		fmt.Fprintf(b, "%s\n", humanize.Printable(r.Note))
	}
}

func (r *searchReport) strong(s string) string {
	if !r.bold || s == "" {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}

// noColor reports whether the user wants no escape sequences (no-color.org).
func noColor(lookup func(string) (string, bool)) bool {
	v, ok := lookup("NO_COLOR")
	return ok && v != ""
}
