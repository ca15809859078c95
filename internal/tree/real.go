package tree

import (
	"path/filepath"
	"strings"
)

// Real returns the absolute path of a file that may not exist yet. It resolves the symbolic
// links in the part that exists.
func Real(name string) string {
	abs, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	for dir, rest := abs, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if filepath.Dir(dir) == dir {
			return abs
		}
	}
}

// Exposes reports whether a web server for the folder would serve a file: it is in the folder, and
// no part of its path starts with a dot.
func Exposes(dir, file string) bool {
	rel, err := filepath.Rel(Real(dir), Real(file))
	return err == nil && !strings.HasPrefix(rel, ".") && !strings.Contains(rel, string(filepath.Separator)+".")
}
