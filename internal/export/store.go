package export

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
)

// Report describes the result of an export.
type Report struct {
	Store  string         `json:"store"`  // the store
	Format string         `json:"format"` // the format
	Out    string         `json:"out"`    // file or folder that was written
	Sites  []ReportedSite `json:"sites"`  // exported sites
	Counts
}

// ReportedSite is the state of an exported site.
type ReportedSite struct {
	Site    string   `json:"site"`
	Pages   int      `json:"pages"`
	Cursor  string   `json:"cursor"`            // cursor for --since, which changes with the site
	Partial bool     `json:"partial,omitempty"` // no pull of the site has finished yet
	Terms   []string `json:"terms,omitempty"`   // documents about the use of the content
}

// open opens the named sites of a store. bases contains the base of every site in all, or its name
// if the site is unreadable.
func open(ctx context.Context, st store.Store, names, all []string) (sites []Site, bases []string, err error) {
	chosen := make(map[string]bool, len(names))
	for _, name := range names {
		chosen[name] = true
	}
	for _, name := range all {
		selected := chosen[name]
		site, v, err := ingest.Head(ctx, st, name)
		if err != nil && selected {
			return nil, nil, err
		} else if err != nil {
			bases = append(bases, name)
			continue
		}
		bases = append(bases, v.Site().Base)
		if !selected {
			continue
		}
		s := Site{View: v, Name: name}
		if s.Terms, err = termsOf(ctx, st.State(), site, name); err != nil {
			return nil, nil, err
		}
		if s.Partial, err = ingest.Partial(st.State(), name).Load(ctx); err != nil {
			return nil, nil, err
		}
		sites = append(sites, s)
	}
	return sites, bases, nil
}

// report describes an exported site.
func (s *Site) report() ReportedSite {
	info := s.View.Site()
	r := ReportedSite{Site: info.Base, Pages: info.Pages, Cursor: CursorOf(s.Name, info.At(info.Seq)), Partial: s.Partial}
	for _, t := range s.Terms {
		r.Terms = append(r.Terms, t.URL)
	}
	return r
}

// newReport returns a report with the state of the exported sites, without counts.
func newReport(sites []Site) *Report {
	r := new(Report)
	for i := range sites {
		r.Sites = append(r.Sites, sites[i].report())
	}
	return r
}

// CursorOf returns a cursor with a suffix that identifies the site. Every site of a store
// counts from 1, so a plain cursor would also be valid for other sites.
func CursorOf(name string, c millrace.Cursor) string {
	sum := sha256.Sum256([]byte(name))
	return string(c) + ":" + hex.EncodeToString(sum[:4])
}

// Since returns the position in the log of a site for a time, or for a cursor of a report. If
// the cursor belongs to another site, it returns ErrConflict.
func (s *Site) Since(ctx context.Context, text string) (millrace.Cursor, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		seq, err := s.View.SeqAt(ctx, t)
		return s.View.Site().At(seq), err
	}
	c := millrace.Cursor(text[:max(0, strings.LastIndexByte(text, ':'))])
	if CursorOf(s.Name, c) != text {
		return "", fmt.Errorf("--since %s: %w: the cursor belongs to another site", text, millrace.ErrConflict)
	}
	return c, nil // reading the log checks that the cursor is from this store
}

// termsOf returns the terms of the site from which a mirror was pulled, even if the mirror is
// published elsewhere.
func termsOf(ctx context.Context, st store.State, site store.Site, name string) ([]protocol.Terms, error) {
	if u, err := url.Parse(name); err == nil && u.Host != "" {
		r, err := ingest.LoadTerms(ctx, st, u)
		return r.Terms, err
	}
	r, err := ingest.SiteTerms(ctx, st, site)
	return r.Terms, err
}

// WriteText writes the report for people.
func (r *Report) WriteText(out io.Writer) error {
	w := new(bytes.Buffer)
	fmt.Fprintf(w, "%s of %s to %s: %s", humanize.Quantity(int64(r.Pages), "page"), humanize.Quantity(int64(len(r.Sites)), "site"), r.Out, humanize.Bytes(r.Bytes))
	if r.Chunks > 0 {
		fmt.Fprintf(w, ", %s", humanize.Quantity(int64(r.Chunks), "chunk"))
	}
	w.WriteByte('\n')
	if r.Format == "markdown" || r.Format == "atom" {
		fmt.Fprintf(w, "  %d written, %d unchanged, %d removed\n", r.Files-r.Unchanged, r.Unchanged, r.Removed)
	}
	for _, name := range r.KeptFiles {
		fmt.Fprintf(w, "  kept: %s, deleted from the site but changed by someone else since its export\n", canon.OneLine(name))
	}
	if r.Format == "jsonl" && r.Removed > 0 {
		fmt.Fprintf(w, "  %s deleted\n", humanize.Quantity(int64(r.Removed), "page"))
	}
	for _, s := range r.Sites {
		if r.Format == "jsonl" {
			fmt.Fprintf(w, "  for later changes of %s, use --since %s\n", s.Site, s.Cursor)
		}
		if len(s.Terms) > 0 {
			fmt.Fprintf(w, "  terms of use of %s, also included in each page: %s\n", s.Site, strings.Join(s.Terms, ", "))
		}
	}
	_, err := w.WriteTo(out)
	return err
}
