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

// Limits of names, in bytes. With what is added to it, a part stays below the
// 255 that file systems take, and a path below the 1,024 of the narrowest.
const (
	maxPart = 100
	maxPath = 800
)

// Folders returns the folders in which Markdown puts sites, by their bases:
// host, port and path. They depend on all bases together, as two could be
// alike.
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
// index.md in its folder. A query follows an "@". Characters and names that a file system
// could reject or misread are replaced by or prefixed with "_". A changed part of the path
// ends with a hash of the original part.
func fileName(base, pageURL string) string {
	identity := canon.Relative(base, pageURL)
	rest, inside := strings.CutPrefix(identity, "/")
	var parts []string
	if !inside { // a page that is elsewhere
		_, rest, _ = strings.Cut(identity, "://")
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
		return "_long/" + short(identity) + ".md"
	}
	return name
}

// stem takes off the extensions of pages.
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

// folder is part for a folder, which never has the name of a file of ours.
func folder(raw string) string {
	name := part(raw)
	if strings.HasSuffix(strings.ToLower(name), ".md") {
		name += "~" + short(raw)
	}
	return name
}

// part makes the name of a file or a folder of a part of a URL.
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

// device reports whether a name is that of a device on Windows, whatever its
// extension.
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

// short is a hash of a text, for names.
func short(s string) string {
	sum := sha256.Sum256([]byte(s))
	return letters.EncodeToString(sum[:5])
}

var letters = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// fold returns what is the same for names that some file systems do not tell
// apart. It goes further than any of them.
func fold(name string) string { return canon.Normalize(name) }
