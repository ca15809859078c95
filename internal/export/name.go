package export

import (
	"crypto/sha256"
	"encoding/base32"
	"net/url"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/canon"
)

// Limits of names in bytes. Even with suffixes, a part stays below the 255 bytes that file systems
// allow, and a path below 1,024, the smallest limit of all systems.
const (
	maxPart = 100
	maxPath = 800
)

// Folders maps the base of each site to the name of its folder, which consists of the base's host,
// port and path. The result depends on all bases, because two bases may have similar names.
func Folders(bases []string) map[string]string {
	out, used := make(map[string]string, len(bases)), make(map[string]bool, len(bases))
	for _, base := range bases {
		name := base
		if u, err := url.Parse(base); err == nil && u.Host != "" {
			name = u.Host
			if port := u.Port(); port != "" {
				name = strings.TrimSuffix(name, ":"+port) + "_" + port
			}
			name += strings.ReplaceAll(strings.TrimSuffix(u.EscapedPath(), "/"), "/", "_")
		}
		name = folder(name)
		if used[fold(name)] {
			name += "~" + short(base)
		}
		used[fold(name)] = true
		out[base] = name
	}
	return out
}

// fileName returns the slash-separated name of a page's file below its site's folder. The name
// depends only on the page's URL. Two pages can get the same name, or names that some file
// systems do not distinguish.
//
// The name is the path of the URL with the extension .md. A path that ends with "/" becomes
// index.md in its folder. A query follows an "@". Characters that a file system could reject or
// misread are replaced by "_", and such names get "_" as a prefix. A changed part of the path ends
// with a hash of the original part.
func fileName(base, pageURL string) string {
	pagePath := canon.Relative(base, pageURL)
	rest, inside := strings.CutPrefix(pagePath, "/")
	var parts []string
	if !inside { // a page outside the base
		_, rest, _ = strings.Cut(pagePath, "://")
		parts = append(parts, "_elsewhere")
	}
	rest, query, asked := strings.Cut(rest, "?")
	dirs, last := path.Split(rest)
	for dir := range strings.SplitSeq(strings.TrimSuffix(dirs, "/"), "/") {
		if dir != "" || dirs != "" {
			parts = append(parts, folder(dir))
		}
	}
	name := "index"
	if last != "" {
		name = part(stem(last))
	}
	if asked {
		name += "@" + part(query)
	}
	name = strings.Join(append(parts, name+".md"), "/")
	if len(name) > maxPath {
		return "_long/" + short(pagePath) + ".md"
	}
	return name
}

// stem removes the extensions of pages from a name.
func stem(name string) string {
	ext := path.Ext(name)
	switch strings.ToLower(ext) {
	case ".html", ".htm", ".xhtml", ".md":
		if len(ext) < len(name) {
			return strings.TrimSuffix(name, ext)
		}
	}
	return name
}

// folder is like part, for a folder. The result is never the name of a page's file, which ends
// with ".md".
func folder(raw string) string {
	name := part(raw)
	if strings.HasSuffix(strings.ToLower(name), ".md") {
		name += "~" + short(raw)
	}
	return name
}

// part converts a part of a URL into the name of a file or folder.
func part(raw string) string {
	name := raw
	if s, err := url.PathUnescape(raw); err == nil && utf8.ValidString(s) {
		name = s
	}
	plain := name
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, valid(name))
	if name == "" || strings.HasPrefix(name, " ") || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") || device(name) {
		name = "_" + strings.TrimLeft(name, " ")
	}
	if len(name) > maxPart {
		n := maxPart
		for !utf8.RuneStart(name[n]) {
			n--
		}
		name = name[:n]
	}
	if end := strings.TrimRight(name, ". "); end != name {
		name = end + "_"
	}
	if name != plain {
		name += "~" + short(raw)
	}
	return name
}

// device reports whether a name, without its extension, is a device on Windows.
func device(name string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	switch stem = strings.TrimRight(stem, " "); stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	if number, ok := strings.CutPrefix(stem, "COM"); ok {
		stem = "LPT" + number
	}
	number, ok := strings.CutPrefix(stem, "LPT")
	r, n := utf8.DecodeRuneInString(number)
	return ok && n == len(number) && strings.ContainsRune("123456789¹²³", r)
}

// short returns a short hash of a text, for names.
func short(s string) string {
	sum := sha256.Sum256([]byte(s))
	return letters.EncodeToString(sum[:5])
}

var letters = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// fold returns the same text for names that some file system treats as equal. It treats more names
// as equal than any file system does.
func fold(name string) string { return canon.Normalize(name) }
