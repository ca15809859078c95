package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin/folder"
	stores "github.com/millrace/millrace/store/all"
)

// searchManuals are the Debian packages to search, with the folders of their pages.
var searchManuals = []struct{ name, dir string }{
	{"python3.11-doc", "/usr/share/doc/python3.11/html"},
	{"python-django-doc", "/usr/share/doc/python-django-doc/html"},
	{"linux-doc-6.1", "/usr/share/doc/linux-doc-6.1/html"},
	{"postgresql-doc-15", "/usr/share/doc/postgresql-doc-15/html"},
	{"git-doc", "/usr/share/doc/git/html"},
	{"debian-handbook", "/usr/share/doc/debian-handbook/html/en-US"},
	{"nodejs-doc", "/usr/share/doc/nodejs/api"},
	{"sqlite3-doc", "/usr/share/doc/sqlite3"},
	{"cmake-doc", "/usr/share/doc/cmake-data/html"},
	{"llvm-14-doc", "/usr/share/doc/llvm-14-doc/html"},
	{"python-sqlalchemy-doc", "/usr/share/doc/python-sqlalchemy-doc/html"},
}

const searchBase = "https://manuals.example/"

// manuals reads manuals into one site of a new store. Without names, it reads all manuals. Each
// has its own folder, because they have pages with the same names.
func manuals(ctx context.Context, file string, names ...string) (pages int, err error) {
	dir := file + ".pages"
	defer func() { _ = os.RemoveAll(dir) }()
	var missing []string
	for _, m := range searchManuals {
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		from, err := filepath.EvalSymlinks(m.dir)
		if err != nil {
			missing = append(missing, m.name)
			continue
		}
		if err := copyPages(filepath.Join(dir, m.name), from); err != nil {
			return 0, err
		}
	}
	if len(missing) > 0 {
		return 0, fmt.Errorf("manuals are missing; install the Debian packages %s", strings.Join(missing, ", "))
	}
	st, err := stores.Open(ctx, file, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = st.Close() }()
	site, err := st.Site(ctx, searchBase, searchBase)
	if err != nil {
		return 0, err
	}
	src, err := folder.New(dir, &folder.Options{Base: searchBase})
	if err != nil {
		return 0, err
	}
	defer func() { _ = src.Close() }()
	r, err := mirror.Sync(ctx, "manuals", src, site, nil)
	if err != nil {
		return 0, err
	}
	return r.Counts.Added, nil
}

// copyPages copies the pages of a folder.
func copyPages(to, from string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || filepath.Ext(path) != ".html" {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name = filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		return os.WriteFile(name, data, 0o600)
	})
}
