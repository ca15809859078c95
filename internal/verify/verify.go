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
	"github.com/millrace/millrace/internal/static"
	"github.com/millrace/millrace/store"
)

// Report is the result of a verification.
type Report struct {
	Path      string   `json:"path"`      // as given on the command line
	Pages     int      `json:"pages"`     // contents and originals of pages that were read
	Artifacts int      `json:"artifacts"` // artifacts that were read
	Files     int      `json:"files"`     // files of a build that were read
	Damaged   int      `json:"damaged"`   // number of damaged or missing items
	Repaired  int      `json:"repaired"`  // number of removed items, which will be created or fetched again
	Damage    []Damage `json:"damage"`    // the first 1000 damaged items
}

// Damage describes a damaged or missing item.
type Damage struct {
	Kind     string `json:"kind"` // page, artifact or file
	Name     string `json:"name"` // site and path of a page; name of an artifact or a file
	Code     string `json:"code"`
	Reason   string `json:"reason"`
	Repaired bool   `json:"repaired"` // whether the item was removed
}

func (r *Report) add(kind, name string, err error, repaired bool) {
	if r.Damaged++; repaired {
		r.Repaired++
	}
	if len(r.Damage) < 1000 {
		r.Damage = append(r.Damage, Damage{kind, name, millrace.ErrorCode(err), err.Error(), repaired})
	}
}

// Run verifies a folder that a build wrote, or a store with the artifacts of its editions. open
// opens the store and that of the artifacts, which is nil if it does not exist. With repair, Run
// removes the items that can be created or fetched again.
func Run(ctx context.Context, path string, repair bool, open func(ctx context.Context, path string) (store.Store, all.Store, error)) (r *Report, err error) {
	r = &Report{Path: path, Damage: []Damage{}}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		r.Files, err = static.Verify(path, func(name string, err error) { r.add("file", name, err, false) })
		return r, err
	}
	st, opened, err := open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if opened == nil {
		return r, r.store(ctx, st, memory.New(nil), repair)
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	return r, r.store(ctx, st, opened, repair)
}

func (r *Report) store(ctx context.Context, st store.Store, artifacts artifact.Store, repair bool) (err error) {
	if v, ok := st.(store.Verifier); ok {
		r.Pages, err = v.Verify(ctx, repair, func(name string, err error, repaired bool) { r.add("page", name, err, repaired) })
	}
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	for m, err := range st.Manifests(ctx) {
		if err == nil {
			err = edition.Verify(ctx, artifacts, m, repair, seen, func(name string, err error) { r.add("artifact", name, err, repair) })
		}
		if errors.Is(err, millrace.ErrInvalid) { // the next edition replaces it
			r.add("artifact", "manifest", err, false)
			continue
		}
		if err != nil {
			return err
		}
	}
	r.Artifacts = len(seen)
	return nil
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	for _, d := range r.Damage {
		fmt.Fprintf(w, "%s %s: %s\n", d.Kind, d.Name, d.Reason)
	}
	_, err := fmt.Fprintf(w, "%s: %d contents of pages, %d artifacts, %d files; %d damaged, %d repaired\n", r.Path, r.Pages, r.Artifacts, r.Files, r.Damaged, r.Repaired)
	return err
}
