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

// Exposes reports whether a file is in a folder and not in one whose name starts with a dot,
// so that a server of the folder would serve it.
func Exposes(dir, file string) bool {
	rel, err := filepath.Rel(Real(dir), Real(file))
	return err == nil && !strings.HasPrefix(rel, ".") && !strings.Contains(rel, string(filepath.Separator)+".")
}
