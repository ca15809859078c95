package folder

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/tree"
)

// errPrivate is the reason why a file or directory with an underscore is skipped.
var errPrivate = fmt.Errorf("%w: the name starts with an underscore, like drafts and parts, and no page links to it", millrace.ErrInvalid)

// underscored reports whether the name of a file starts with an underscore.
func underscored(file string) bool { return strings.HasPrefix(path.Base(file), "_") }

// pages walks the pages of a snapshot, except files whose names start with an underscore.
func (f *Folder) pages(ctx context.Context, t *snapshot) iter.Seq[tree.Entry] {
	return func(yield func(tree.Entry) bool) {
		for e := range tree.Pages(f.walker(t.root).Walk(ctx, ".")) {
			if !underscored(e.File) && !yield(e) {
				return
			}
		}
	}
}

// hasPages reports whether a directory contains HTML pages.
func (f *Folder) hasPages(ctx context.Context, t *snapshot, dir string) bool {
	for range tree.Pages(f.walker(t.root).Walk(ctx, dir)) {
		return true
	}
	return false
}

// linked stores the links to files whose names start with an underscore. It is the cursor for a
// folder with these files, so that the next walk reads only changed pages.
type linked struct {
	Rules string    // rules of the snapshot
	Since time.Time // pages that changed after this time have not been searched
	// From maps each file to a page that links to the file. If empty, no page does.
	From map[string]string
}

func (l *linked) cursor() millrace.Cursor {
	b, err := json.Marshal(l)
	if err != nil {
		panic("folder: cannot encode cursor: " + err.Error())
	}
	return millrace.Cursor(b)
}

// findLinks returns the files that pages link to. since is the cursor of the previous walk. newest
// is the time of the latest change to a page.
func (f *Folder) findLinks(ctx context.Context, t *snapshot, files []tree.Entry, since millrace.Cursor, newest time.Time) (*linked, error) {
	var was linked
	if json.Unmarshal([]byte(since), &was) != nil || was.Rules != t.rules {
		was = linked{} // start over
	}
	is := &linked{Rules: t.rules, Since: newest, From: make(map[string]string)}
	if sure := f.now().Add(-tree.Racy); newest.After(sure) {
		is.Since = sure
	}
	left := make(map[string]bool) // files for which no link is known
	if len(files) == 0 {
		return is, nil
	}
	for _, e := range files {
		is.From[e.File] = was.From[e.File]
		info, err := t.root.Stat(is.From[e.File])
		if is.From[e.File] == "" || err != nil || tree.Changed(info).After(was.Since) {
			is.From[e.File], left[e.File] = "", true
		}
	}
	if newest.After(was.Since) {
		if err := f.search(ctx, t, was.Since, is.From, left); err != nil {
			return nil, err
		}
	}
	for file := range left {
		// If a file is new or has lost its link, any page may contain a link to it.
		if page, known := was.From[file]; !was.Since.IsZero() && (page != "" || !known) {
			return is, f.search(ctx, t, time.Time{}, is.From, left)
		}
	}
	return is, nil
}

// search searches the pages that have changed since a time for links to the files in left. It ends
// when it has found all of them.
func (f *Folder) search(ctx context.Context, t *snapshot, since time.Time, from map[string]string, left map[string]bool) error {
	for e := range f.pages(ctx, t) {
		if len(left) == 0 {
			break
		}
		if !tree.Changed(e.Info).After(since) {
			continue
		}
		data, _, err := f.read(t, e.File)
		if err != nil || !mentions(data, left) {
			continue // Page reports the error
		}
		res, err := extract.HTML(ctx, data, e.URL, &extract.Options{Base: t.base, MaxBytes: int(f.max)})
		if err != nil {
			continue
		}
		for _, l := range res.Links {
			if p, ok := under(t.base, l.URL); ok && underscored(p) {
				if file := t.target(p); left[file] {
					from[file] = e.File
					delete(left, file)
				}
			}
		}
	}
	return ctx.Err()
}

// mentions reports whether a document may link to one of the files: it contains the name of the
// file without its extension.
func mentions(doc []byte, files map[string]bool) bool {
	names := make(map[string]bool)
	for file := range files {
		name := path.Base(file)
		names[tree.Escape(strings.TrimSuffix(name, path.Ext(name)))] = true
	}
	for {
		i := bytes.IndexByte(doc, '_')
		if i < 0 {
			return false
		}
		doc = doc[i:]
		end := bytes.IndexAny(doc, ".\"'?#/<>& \n")
		if end < 0 {
			end = len(doc)
		}
		if names[string(doc[:end])] {
			return true
		}
		doc = doc[1:]
	}
}
