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

// Site is a site to export.
type Site struct {
	View  millrace.View
	Terms []protocol.Terms // documents with terms of use, or nil

	Name    string // name of the site in its store
	Partial bool   // no pull of the site has completed yet
}

// Options configure an export. The zero value works.
type Options struct {
	// Progress, if not nil, is called after each page with the number of finished pages of all
	// sites.
	Progress func(done int)
}

// Counts describes what an export wrote and removed.
type Counts struct {
	Pages  int   `json:"pages"`
	Chunks int   `json:"chunks,omitempty"` // number of passages, for parquet
	Bytes  int64 `json:"bytes"`            // size of all files

	Files     int      `json:"files,omitempty"`      // number of files, for folders
	Unchanged int      `json:"unchanged,omitempty"`  // files that have not changed
	Removed   int      `json:"removed,omitempty"`    // removed files, or deleted pages with --since
	KeptFiles []string `json:"kept_files,omitempty"` // files of an earlier export that were kept because another program changed them, at most 100
}

// entry is a page being exported.
type entry struct {
	site *Site
	base string
	page *millrace.Page
}

// each calls f with every page of the sites, in the order that all formats use.
func each(ctx context.Context, sites []Site, bodies bool, o *Options, f func(entry) error) error {
	done := 0
	for i := range sites {
		s := &sites[i]
		base := s.View.Site().Base
		for p, err := range s.View.Scan(ctx, millrace.Scan{WithBlocks: bodies}) {
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

// withoutInvalidJSON returns a page without invalid raw JSON.
func withoutInvalidJSON(p *millrace.Page) *millrace.Page {
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

// valid replaces invalid UTF-8 with U+FFFD.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
