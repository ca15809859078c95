package static

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Limits of file systems and hosts, in bytes.
const (
	maxSegment = 255
	maxName    = 1024
)

// fileOf returns the file name for a request path, which is percent-encoded and relative
// to the root of the folder. The name for the path of a folder is its index.html.
func fileOf(target string) (string, error) {
	p, _, query := strings.Cut(target, "?")
	if query {
		return "", errors.New("a static host ignores queries")
	}
	rest, ok := strings.CutPrefix(p, "/")
	if !ok {
		return "", errors.New("not a path of this host")
	}
	var names []string
	for rest != "" {
		var segment string
		segment, rest, _ = strings.Cut(rest, "/")
		name, err := url.PathUnescape(segment)
		if err != nil {
			return "", fmt.Errorf("path is not percent-encoded: %w", err)
		}
		names = append(names, name)
	}
	if strings.HasSuffix(p, "/") {
		names = append(names, "index.html")
	}
	name := strings.Join(names, "/")
	for _, n := range names {
		if strings.Contains(n, "/") {
			return "", errors.New("name contains a slash")
		}
	}
	return name, checkName(name)
}

// checkName returns an error if a host or file system does not allow the name.
func checkName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("name has more than %d bytes", maxName)
	}
	for n := range strings.SplitSeq(name, "/") {
		switch {
		case n == "" || n == "." || n == "..":
			return errors.New("a path segment is empty or consists of dots")
		case len(n) > maxSegment:
			return fmt.Errorf("a path segment has more than %d bytes", maxSegment)
		case !utf8.ValidString(n):
			return errors.New("name is not UTF-8")
		case strings.HasPrefix(n, ".") && n != ".well-known":
			return errors.New("hosts do not publish names that start with a dot")
		case strings.HasSuffix(n, ".") || strings.HasSuffix(n, " "):
			return errors.New("a path segment ends with a dot or a space, which some file systems remove")
		case strings.ContainsFunc(n, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune(`\?#*"<>|`, r) }):
			return errors.New("name has a character that some hosts or file systems do not allow")
		case device(n):
			return errors.New("name is a device name on some systems")
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return errors.New("this system does not allow the file name")
	}
	return nil
}

// device reports whether name is a device name on Windows, with or without an extension.
func device(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	if stem, ok := cutAny(stem, "COM", "LPT"); ok {
		switch stem {
		case "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³":
			return true
		}
	}
	return false
}

func cutAny(s string, prefixes ...string) (string, bool) {
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(s, p); ok {
			return rest, true
		}
	}
	return s, false
}

// fold returns a key that is equal for names that differ only in case.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// parents returns the folders of a file, the outermost first.
func parents(name string) (dirs []string) {
	for i, c := range name {
		if c == '/' {
			dirs = append(dirs, name[:i])
		}
	}
	return dirs
}

// escaped returns a file's name as it appears in a URL.
func escaped(name string) string { return (&url.URL{Path: name}).EscapedPath() }

// extensions returns the extensions of a path, the longest first, such as ".scp.zst" and
// ".zst".
func extensions(p string) (out []string) {
	base := path.Base(p)
	for i := 1; i < len(base); i++ {
		if base[i] == '.' {
			out = append(out, base[i:])
		}
	}
	return out
}
