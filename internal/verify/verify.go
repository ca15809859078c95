// Package verify checks a store with its artifacts, and a folder that a build wrote.
package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/artifact/all"
	"github.com/millrace/millrace/artifact/memory"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/internal/static"
	"github.com/millrace/millrace/store"
)

// Report is the result of a verification.
type Report struct {
	Path      string   `json:"path"`      // as given on the command line
	Pages     int      `json:"pages"`     // contents and originals of pages that were read
	Artifacts int      `json:"artifacts"` // artifacts that were read
	Indexes   int      `json:"indexes"`   // search indexes that were read
	Files     int      `json:"files"`     // files of a build that were read
	Damaged   int      `json:"damaged"`   // number of damaged or missing items
	Removed   int      `json:"removed"`   // number of items that are removed or missing, and will be created or fetched again
	Damage    []Damage `json:"damage"`    // the first 1000 damaged items
}

// Damage describes a damaged or missing item.
type Damage struct {
	Kind    string `json:"kind"` // "page", "artifact", "index" or "file"
	Name    string `json:"name"` // site and path of a page; name of an artifact or a file
	Code    string `json:"code"`
	Reason  string `json:"reason"`
	Removed bool   `json:"removed"` // whether the item is removed or missing, and will be created or fetched again
}

func (r *Report) add(kind, name string, err error, removed bool) {
	if r.Damaged++; removed {
		r.Removed++
	}
	if len(r.Damage) < 1000 {
		r.Damage = append(r.Damage, Damage{kind, name, millrace.ErrorCode(err), err.Error(), removed})
	}
}

// Opened is an open store with its artifacts and search indexes.
type Opened struct {
	Store     store.Store
	Artifacts all.Store // nil if the store has no artifacts
	Indexes   []string  // files of search indexes
}

// Run verifies a folder that a build wrote, or a store with the artifacts of its editions and its
// search indexes, which open opens. With repair, Run removes the damaged items that can be created
// or fetched again.
func Run(ctx context.Context, path string, repair bool, open func(ctx context.Context, path string) (*Opened, error)) (r *Report, err error) {
	r = &Report{Path: path, Damage: []Damage{}}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		r.Files, err = static.Verify(path, func(name string, err error) { r.add("file", name, err, false) })
		return r, err
	}
	o, err := open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.Store.Close()) }()
	for _, file := range o.Indexes {
		bad, err := index.Verify(ctx, file, repair)
		if bad {
			r.add("index", file, err, repair)
		} else if err != nil {
			return r, err
		}
		r.Indexes++
	}
	if o.Artifacts == nil {
		return r, r.store(ctx, o.Store, memory.New(nil), repair)
	}
	defer func() { err = errors.Join(err, o.Artifacts.Close()) }()
	return r, r.store(ctx, o.Store, o.Artifacts, repair)
}

func (r *Report) store(ctx context.Context, st store.Store, artifacts artifact.Store, repair bool) (err error) {
	if v, ok := st.(store.Verifier); ok {
		r.Pages, err = v.Verify(ctx, repair, func(name string, err error, removed bool) { r.add("page", name, err, removed) })
	}
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	damaged := func(name string, err error) { r.add("artifact", name, err, repair) }
	for m, err := range st.Manifests(ctx) {
		if err == nil {
			err = edition.Verify(ctx, artifacts, m, repair, seen, damaged)
		}
		if errors.Is(err, millrace.ErrInvalid) { // the next edition replaces the manifest
			r.add("artifact", "manifest", err, false)
			continue
		}
		if err != nil {
			return err
		}
	}
	err = edition.VerifyOthers(ctx, artifacts, repair, seen, damaged)
	r.Artifacts = len(seen)
	return err
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	for _, d := range r.Damage {
		fmt.Fprintf(w, "%s %s: %s\n", d.Kind, d.Name, d.Reason)
	}
	_, err := fmt.Fprintf(w, "%s: %d contents of pages, %d artifacts, %d search indexes, %d files; %d damaged, %d removed\n", r.Path, r.Pages, r.Artifacts, r.Indexes, r.Files, r.Damaged, r.Removed)
	return err
}
