package folder

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/tree"
)

// Lookup returns the file with which a web server responds to a path. urlPath is the path of a
// request or an identity, percent-encoded; a query is ignored. Lookup returns either file, which is
// a name for [Folder.Open], or redirect, which is the path of a redirect:
//
//   - "/a/" is a/index.html, else a/index.htm, else a.html;
//   - "/a.css", "/a.html" are those files;
//   - "/a" redirects to "/a/" if that is a directory with an index, else it
//     is a.html, a.htm or a.xhtml;
//   - "/a/index.html" redirects to "/a/".
//
// If the file does not exist, or its name is hidden, Lookup returns [millrace.ErrNotFound].
func (f *Folder) Lookup(urlPath string) (file, redirect string, err error) {
	return f.present.Load().find(urlPath)
}

func (t *snapshot) find(urlPath string) (file, redirect string, err error) {
	p, _, _ := strings.Cut(urlPath, "?")
	names, slash, ok := segments(p)
	if !ok {
		return "", "", fmt.Errorf("lookup %s: %w", urlPath, millrace.ErrNotFound)
	}
	name := path.Join(names...)
	if slash {
		if file := t.index(name); file != "" {
			return file, "", nil
		}
	} else if info, err := t.root.Stat(name); err == nil {
		dir, base := path.Split(name)
		switch {
		case info.Mode().IsRegular() && slices.Contains(indexes, base) && t.index(dir) == name:
			return "", pathOf(names[:len(names)-1]), nil
		case info.Mode().IsRegular():
			return name, "", nil
		case info.IsDir() && t.index(name) != "":
			return "", pathOf(names), nil
		}
	}
	if name != "" {
		for _, ending := range []string{".html", ".htm", ".xhtml"} {
			if t.regular(name + ending) {
				return name + ending, "", nil
			}
		}
	}
	return "", "", fmt.Errorf("lookup %s: %w", urlPath, millrace.ErrNotFound)
}

// pathOf returns the URL path of a directory.
func pathOf(names []string) string {
	p := "/"
	for _, n := range names {
		p += tree.Escape(n) + "/"
	}
	return p
}

// indexes contains the names of index files in their order of precedence.
var indexes = []string{"index.html", "index.htm"}

// index returns the index file of a directory, or "" if the directory has none. The root directory
// is "".
func (t *snapshot) index(dir string) string {
	for _, n := range indexes {
		if n = path.Join(dir, n); t.regular(n) {
			return n
		}
	}
	return ""
}

func (t *snapshot) regular(name string) bool {
	info, err := t.root.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// Open opens a regular file by its name relative to the folder. It makes Folder an [fs.FS] for
// [net/http.ServeFileFS]. It does not open directories, or files with hidden names.
func (f *Folder) Open(name string) (fs.File, error) {
	h, err := f.openNamed(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return h, nil
}

func (f *Folder) openNamed(name string) (*os.File, error) {
	if err := named(name); err != nil {
		return nil, err
	}
	return tree.Open(f.present.Load().root, name)
}

// Stat returns the state of a file by its name relative to the folder. It implements [fs.StatFS].
func (f *Folder) Stat(name string) (fs.FileInfo, error) {
	if err := named(name); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return f.present.Load().root.Stat(name)
}

// Peek returns the state of a file by its name relative to the folder, with one system call. It
// follows links out of the folder. Therefore the caller may use it to check whether a file has
// changed since [Folder.Stat], but not to serve the file.
func (f *Folder) Peek(name string) (fs.FileInfo, error) {
	if err := named(name); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return os.Stat(filepath.Join(f.dir, filepath.FromSlash(name)))
}

// named returns an error if a name is invalid or hidden.
func named(name string) error {
	if !fs.ValidPath(strings.ToValidUTF8(name, "?")) { // the name of a file need not be valid UTF-8
		return fs.ErrInvalid
	}
	for n := range strings.SplitSeq(name, "/") {
		if tree.Hidden(n) {
			return fs.ErrNotExist
		}
	}
	return nil
}
