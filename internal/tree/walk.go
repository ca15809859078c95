package tree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/millrace/millrace"
)

// MaxDepth is the maximum depth of directories in a walk.
const MaxDepth = 100

// Entry is one page of a walk, or an entry that is not a page.
type Entry struct {
	File string // slash-separated path under the root
	URL  string // path of the URL, percent-encoded
	Info fs.FileInfo
	Err  error // reason why the entry is not a page
}

// Walker walks a tree. Root, Max and Name are required.
type Walker struct {
	Root *os.Root
	Max  int64 // maximum size of a page in bytes
	// Name classifies an entry of a directory. name is the path of the entry under the root,
	// folder reports whether the entry is a directory or a link to one, and list contains all
	// entries of the directory. key is the last part of the entry's URL, percent-encoded and
	// without a slash. If use is false, the entry is skipped without a report. If err is not nil,
	// the entry is skipped, and err is reported as the reason.
	Name func(name string, folder bool, list []fs.DirEntry) (key string, use bool, err error)
	// Dir is called for every directory before it is read. If nil, there is no call.
	Dir func(name string)
	// Failed is the error of the first unreadable directory. If it is not nil, the walk was
	// incomplete.
	Failed error

	yield func(Entry) bool
}

// Walk yields every page under a directory ("." is the root), and entries that are not
// pages, in the bytewise order of the URLs. It keeps the entries of one directory and
// its ancestors in memory, and ends early when the context does. It follows symbolic links, except
// those that lead out of the root or into a cycle, and those to a directory below another link.
// Only one walk may run at a time.
func (w *Walker) Walk(ctx context.Context, from string) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		w.yield = yield
		url := "/"
		if from != "." {
			for n := range strings.SplitSeq(from, "/") {
				url += Escape(n) + "/"
			}
		}
		w.folder(ctx, directory{name: from, url: url})
	}
}

// Pages drops the entries that are not pages.
func Pages(all iter.Seq[Entry]) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for e := range all {
			if e.Err == nil && !yield(e) {
				return
			}
		}
	}
}

// directory is a directory that is being walked.
type directory struct {
	name   string        // slash-separated path under the root; "." is the root
	url    string        // path of the URL; ends with "/"
	above  []fs.FileInfo // ancestors of the directory
	linked bool          // the directory was reached by a symbolic link
}

// item is one entry of a directory, in the order of the walk.
type item struct {
	fs.DirEntry
	key    string // last part of the entry's URL
	folder bool
	linked bool
	info   fs.FileInfo // state of a symbolic link's target, or nil
	err    error
}

// folder walks one directory; false ends the walk.
func (w *Walker) folder(ctx context.Context, p directory) bool {
	if w.Dir != nil {
		w.Dir(p.name)
	}
	sub, info, list, err := w.list(p.name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && p.name != "." {
			return true // the directory was removed after its parent was read
		}
		if w.Failed == nil {
			w.Failed = PathError(err)
		}
		return w.skip(p.name, p.url, PathError(err))
	}
	defer sub.Close()
	if p.linked && slices.ContainsFunc(p.above, func(a fs.FileInfo) bool { return os.SameFile(a, info) }) {
		return w.skip(p.name, p.url, fmt.Errorf("%w: symbolic link cycle", millrace.ErrInvalid))
	}
	for _, it := range w.items(p, list) {
		if ctx.Err() != nil {
			return false
		}
		name, url := path.Join(p.name, it.Name()), p.url+it.key
		var ok bool
		switch {
		case it.err != nil:
			ok = w.skip(name, url, it.err)
		case it.folder:
			next := directory{name, url, append(slices.Clip(p.above), info), p.linked || it.linked}
			ok = w.folder(ctx, next)
		default:
			ok = w.file(sub, name, url, it)
		}
		if !ok {
			return false
		}
	}
	return true
}

// list opens a directory and reads the names in it.
func (w *Walker) list(name string) (*os.Root, fs.FileInfo, []fs.DirEntry, error) {
	sub, err := w.Root.OpenRoot(name)
	if err != nil {
		return nil, nil, nil, err
	}
	d, err := sub.Open(".")
	if err != nil {
		sub.Close()
		return nil, nil, nil, err
	}
	defer d.Close()
	info, err := d.Stat()
	if err == nil {
		var list []fs.DirEntry
		if list, err = d.ReadDir(-1); err == nil {
			return sub, info, list, nil
		}
	}
	sub.Close()
	return nil, nil, nil, err
}

// items returns the entries of a directory to visit, in the order of the URLs.
func (w *Walker) items(p directory, list []fs.DirEntry) []item {
	items := make([]item, 0, len(list))
	for _, e := range list {
		it := item{DirEntry: e, folder: e.IsDir(), linked: e.Type()&fs.ModeSymlink != 0}
		if Hidden(e.Name()) {
			continue
		}
		var broken error
		if it.linked {
			it.info, broken = w.Root.Stat(path.Join(p.name, e.Name()))
			if broken == nil {
				it.folder = it.info.IsDir()
			} else {
				broken = fmt.Errorf("symbolic link: %w", PathError(broken))
			}
		}
		var use bool
		it.key, use, it.err = w.Name(path.Join(p.name, e.Name()), it.folder, list)
		switch {
		case broken != nil && path.Ext(e.Name()) == "":
			it.key, it.err = Escape(e.Name()), broken // the target may have been a directory
		case !use:
			continue
		case broken != nil:
			it.err = broken
		}
		if it.folder {
			it.key += "/"
			it.err = cmp.Or(it.err, w.enter(p, it))
		}
		if it.err == nil && len(p.url)+len(it.key) > MaxURL {
			it.err = ErrLong
		}
		items = append(items, it)
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.key, b.key) })
	return items
}

// enter returns the reason why a directory is not walked, or nil if it is walked.
func (w *Walker) enter(p directory, it item) error {
	switch {
	case it.linked && p.linked:
		// Links to directories with links to directories would multiply.
		return fmt.Errorf("%w: symbolic link below another one", millrace.ErrInvalid)
	case len(p.above) >= MaxDepth:
		return fmt.Errorf("%w: more than %d nested directories", millrace.ErrTooLarge, MaxDepth)
	}
	return nil
}

// file yields one file; false ends the walk.
func (w *Walker) file(sub *os.Root, name, url string, it item) bool {
	info := it.info
	if info == nil {
		var err error
		if info, err = sub.Lstat(it.Name()); errors.Is(err, fs.ErrNotExist) {
			return true // the file was removed after the directory was read
		} else if err != nil {
			return w.skip(name, url, PathError(err))
		}
	}
	if err := stateReason(info, w.Max); err != nil {
		return w.skip(name, url, err)
	}
	return w.yield(Entry{File: name, URL: url, Info: info})
}

// stateReason returns the reason why a file in this state is not a page, or nil if it may be one.
func stateReason(info fs.FileInfo, limit int64) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: not a regular file", millrace.ErrInvalid)
	case info.Size() == 0:
		return fmt.Errorf("%w: the file is empty", millrace.ErrInvalid)
	case info.Size() > limit:
		return fmt.Errorf("%w: %d bytes, the limit is %d", millrace.ErrTooLarge, info.Size(), limit)
	}
	return nil
}

func (w *Walker) skip(name, url string, err error) bool {
	return w.yield(Entry{File: name, URL: url, Err: err})
}
