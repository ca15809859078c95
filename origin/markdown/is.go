package markdown

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/internal/tree"
)

// maxScan is the maximum number of names that Is examines in each folder that contains pages.
const maxScan = 20_000

// Is reports whether a folder is a Markdown site and not a built site. One of these conditions must
// hold:
//
//   - It has Markdown files, and is a generator's project or the content folder of one.
//   - It has Markdown pages, no index.html at its top, and fewer HTML pages than
//     Markdown pages.
//
// A built site with a README.md is not a Markdown site, and neither is a project's public
// folder.
func Is(dir string) bool {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	top, sub, s, config, err := detect(dir, "")
	if err != nil {
		return false
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return false
	}
	defer root.Close()
	folders := starts(s.roots(), sub)
	markdown, pages := 0, 0
	for _, start := range folders {
		left := maxScan
		_ = fs.WalkDir(root.FS(), start, func(name string, e fs.DirEntry, err error) error {
			left--
			if err != nil {
				return nil //nolint:nilerr // ignore unreadable entries
			}
			switch {
			case left < 0:
				return fs.SkipAll
			case name != start && tree.Hidden(e.Name()) || e.IsDir() && e.Name() == "node_modules":
				if e.IsDir() {
					return fs.SkipDir
				}
				return nil
			case e.IsDir():
				return nil
			case isMarkdown(name):
				markdown++
				if config != "" {
					return fs.SkipAll
				}
			}
			switch strings.ToLower(path.Ext(name)) {
			case ".html", ".htm", ".xhtml":
				pages++
				if path.Dir(name) == start && stemOf(path.Base(name)) == "index" {
					pages = maxScan
				}
			}
			return nil
		})
	}
	return markdown > 0 && (config != "" || pages < markdown)
}
