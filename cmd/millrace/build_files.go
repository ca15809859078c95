package main

import (
	"context"
	"io/fs"
	"iter"
	"math"
	"os"
	"path"
	"slices"

	"github.com/millrace/millrace/internal/tree"
)

// siteFiles walks the files of a folder that visitors may see, whether they are
// pages or not. Their URLs are those that a server of the folder knows them by.
func siteFiles(ctx context.Context, root *os.Root) iter.Seq[tree.Entry] {
	w := &tree.Walker{Root: root, Max: math.MaxInt64, Name: siteFile}
	return w.Walk(ctx, ".")
}

// siteFile names a file; see [tree.Walker].
func siteFile(name string, folder bool, list []fs.DirEntry) (key string, use bool, err error) {
	name = path.Base(name)
	has := func(name string) bool {
		return slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() == name && !e.IsDir() })
	}
	if !folder && (name == "index.html" || name == "index.htm" && !has("index.html")) {
		return "", true, nil
	}
	return tree.Escape(name), true, nil
}

// regular reports whether there is a regular file, empty or not.
func regular(root *os.Root, name string) bool {
	info, err := root.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
