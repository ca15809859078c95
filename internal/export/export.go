package export

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// Site is a site that is exported.
type Site struct {
	View  millrace.View
	Terms []protocol.Terms // documents about the use of the content; nil = none is known

	Name    string // of the site in its store
	Partial bool   // no pull of the site has come to its end yet
}

// Options configure an export. The zero value works.
type Options struct {
	// Progress is called after each page with the number of pages that are done,
	// of all sites; nil if none.
	Progress func(done int)
}

// Counts are what an export has written.
type Counts struct {
	Pages  int   `json:"pages"`
	Chunks int   `json:"chunks,omitempty"` // of Parquet
	Bytes  int64 `json:"bytes"`            // of all its files, whether or not they had to be written

	// Of a folder, but for Removed.
	Files     int `json:"files,omitempty"`
	Unchanged int `json:"unchanged,omitempty"` // files that were there with the same bytes
	Removed   int `json:"removed,omitempty"`   // files of an earlier export; of Changes, pages that are gone
	// Left are names of files that an earlier export has written, that are no
	// longer part of it, and that stay because somebody has changed them; the
	// first hundred.
	Left []string `json:"left,omitempty"`
}

// entry is a page on its way out.
type entry struct {
	site *Site
	base string
	page *millrace.Page
}

// each calls f with every page of the sites, in the order that every form has.
func each(ctx context.Context, sites []Site, bodies bool, o *Options, f func(entry) error) error {
	done := 0
	for i := range sites {
		s := &sites[i]
		base := s.View.Site().Base
		for p, err := range s.View.Scan(ctx, millrace.Scan{Bodies: bodies}) {
			if err != nil {
				return fmt.Errorf("export %s: %w", base, err)
			}
			if err := f(entry{s, base, p}); err != nil {
				return fmt.Errorf("export %s: %w", p.URL, err)
			}
			if done++; o != nil && o.Progress != nil {
				o.Progress(done)
			}
		}
	}
	return nil
}

// sound returns a page without raw JSON that is none, which no encoder takes.
func sound(p *millrace.Page) *millrace.Page {
	bad := func(m json.RawMessage) bool { return !json.Valid(m) }
	extra := false
	for _, m := range p.Extra {
		extra = extra || bad(m)
	}
	if !extra && !slices.ContainsFunc(p.Schema, bad) {
		return p
	}
	p = p.Clone()
	p.Schema = slices.DeleteFunc(p.Schema, bad)
	for k, m := range p.Extra {
		if bad(m) {
			delete(p.Extra, k)
		}
	}
	return p
}

// valid returns a text in which what is no UTF-8 is U+FFFD.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
