package folder

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

const (
	maxDepth = 100  // directories inside each other
	maxURL   = 7500 // of an identity: what [canon.MaxURL] leaves beside scheme, host and path of a base
)

// entry is one page of a walk, or one thing that is none.
type entry struct {
	file string // slash-separated, under the root
	url  string
	info fs.FileInfo
	err  error // it is no page, and why
}

// walker walks a tree once.
type walker struct {
	root *os.Root
	max  int64
	// dir is told of every directory before it is read; nil = nobody.
	dir    func(name string)
	failed error // the first directory that could not be read: the walk is not whole
	yield  func(entry) bool
}

func (f *Folder) walker(t *tree) *walker { return &walker{root: t.root, max: f.max} }

// walk yields every page under a directory ("." is the root), and what looks like one and is none, in the
// bytewise order of the URLs. It ends early when the context does.
func (w *walker) walk(ctx context.Context, from string) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		w.yield = yield
		w.folder(ctx, place{name: from, url: "/"})
	}
}

// pages leaves out what is no page.
func pages(all iter.Seq[entry]) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for e := range all {
			if e.err == nil && !yield(e) {
				return
			}
		}
	}
}

// place is a directory on the way down.
type place struct {
	name   string        // slash-separated, under the root; "." is the root
	url    string        // ends with "/"
	above  []fs.FileInfo // the directories that it is in
	linked bool          // a symbolic link was followed to get here
}

// item is one entry of a directory, in the order of the walk.
type item struct {
	fs.DirEntry
	key    string // the last part of its URL
	linked bool
	info   fs.FileInfo // of what a symbolic link leads to
	err    error
}

// folder walks one directory; false ends the walk.
func (w *walker) folder(ctx context.Context, p place) bool {
	if w.dir != nil {
		w.dir(p.name)
	}
	sub, info, list, err := w.list(p.name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && p.name != "." {
			return true // removed since its parent was read
		}
		if w.failed == nil {
			w.failed = pathError(err)
		}
		return w.skip(p.name, p.url, pathError(err))
	}
	defer sub.Close()
	if p.linked && slices.ContainsFunc(p.above, func(a fs.FileInfo) bool { return os.SameFile(a, info) }) {
		return w.skip(p.name, p.url, fmt.Errorf("%w: a symbolic link in a circle", millrace.ErrInvalid))
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
		case strings.HasSuffix(url, "/") && it.key != "":
			next := place{name, url, append(slices.Clip(p.above), info), p.linked || it.linked}
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
func (w *walker) list(name string) (*os.Root, fs.FileInfo, []fs.DirEntry, error) {
	sub, err := w.root.OpenRoot(name)
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

// items gives what a walk visits of a directory, in the order of the URLs.
func (w *walker) items(p place, list []fs.DirEntry) []item {
	items := make([]item, 0, len(list))
	html := slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() == "index.html" && !e.IsDir() })
	for _, e := range list {
		it := item{DirEntry: e, linked: e.Type()&fs.ModeSymlink != 0}
		dir := e.IsDir()
		if hidden(e.Name()) {
			continue
		}
		if it.linked {
			it.info, it.err = w.root.Stat(path.Join(p.name, e.Name()))
			if it.err == nil {
				dir = it.info.IsDir()
			} else {
				it.err = fmt.Errorf("a symbolic link: %w", pathError(it.err))
			}
		}
		switch {
		case dir:
			it.key = escape(e.Name()) + "/"
			if it.err = dirReason(e.Name(), p, it.linked); it.err == nil && len(p.url)+len(it.key) > maxURL {
				it.err = errLong
			}
		case it.err != nil && path.Ext(e.Name()) == "":
			it.key = escape(e.Name()) // it may have been a directory
		case !isHTML(e.Name()):
			continue
		default:
			it.key = escape(e.Name())
			if e.Name() == "index.html" || e.Name() == "index.htm" && !html {
				it.key = ""
			}
			if it.err == nil {
				it.err = fileReason(e.Name())
			}
			if it.err == nil && len(p.url)+len(it.key) > maxURL {
				it.err = errLong
			}
		}
		items = append(items, it)
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.key, b.key) })
	return items
}

// dirReason says why a directory is not walked.
func dirReason(name string, p place, linked bool) error {
	switch {
	case strings.HasPrefix(name, "_"):
		return errPrivate
	case linked && p.linked:
		// Links to directories with links to directories would multiply.
		return fmt.Errorf("%w: a symbolic link below another one", millrace.ErrInvalid)
	case len(p.above) >= maxDepth:
		return fmt.Errorf("%w: more than %d directories inside each other", millrace.ErrTooLarge, maxDepth)
	}
	return nil
}

// file yields one file; false ends the walk.
func (w *walker) file(sub *os.Root, name, url string, it item) bool {
	info := it.info
	if info == nil {
		var err error
		if info, err = sub.Lstat(it.Name()); errors.Is(err, fs.ErrNotExist) {
			return true // removed since the directory was read
		} else if err != nil {
			return w.skip(name, url, pathError(err))
		}
	}
	if err := stateReason(info, w.max); err != nil {
		return w.skip(name, url, err)
	}
	return w.yield(entry{file: name, url: url, info: info})
}

// stateReason says why a file of this state is no page.
func stateReason(info fs.FileInfo, limit int64) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: it is no regular file", millrace.ErrInvalid)
	case info.Size() == 0:
		return fmt.Errorf("%w: the file is empty", millrace.ErrInvalid)
	case info.Size() > limit:
		return fmt.Errorf("%w: %d bytes, the limit is %d", millrace.ErrTooLarge, info.Size(), limit)
	}
	return nil
}

func (w *walker) skip(name, url string, err error) bool {
	return w.yield(entry{file: name, url: url, err: err})
}
