package markdown

import (
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// linker resolves the references of one file.
type linker struct {
	s    *snapshot
	file string
	dir  string   // folder of the file
	root string   // root folder that contains the file
	page string   // absolute URL of the page
	base *url.URL // base for references, as in the browser
	own  *url.URL // base for references to files
}

func (s *snapshot) linker(file, id string) (*linker, error) {
	l := &linker{s: s, file: file, dir: path.Dir(file), page: canon.Absolute(s.base, id)}
	l.root, _ = below(s.roots(), file)
	if l.root == "" {
		l.root = "."
	}
	var err error
	if l.base, err = url.Parse(l.page); err != nil {
		return nil, fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	if l.own, err = url.Parse(canon.Absolute(s.base, l.path(file))); err != nil {
		return nil, fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	return l, nil
}

// path returns the path of a file under its root.
func (l *linker) path(file string) string {
	_, rel := below([]string{l.root}, file)
	return join(escapePath(rel))
}

// link returns the absolute URL of a link, with its fragment. It returns "" if the scheme of the
// link is not allowed, or if the page does not exist.
func (l *linker) link(ref string) string {
	ref = strings.TrimSpace(ref)
	if len(ref) > 7 && strings.EqualFold(ref[:7], "mailto:") {
		if millrace.SafeURL(ref) {
			return ref
		}
		return ""
	}
	if hasPlaceholder(ref) {
		return ""
	}
	target, fragment, _ := strings.Cut(ref, "#")
	if fragment != "" {
		fragment = "#" + escapeFragment(fragment)
	}
	if target == "" {
		if fragment == "" {
			return ""
		}
		return l.page + fragment
	}
	abs := l.resource(target)
	if abs == "" {
		return ""
	}
	return abs + fragment
}

// resource returns the absolute URL of a reference without its fragment, or "" if the reference is
// not allowed.
func (l *linker) resource(ref string) string {
	if ref = strings.TrimSpace(ref); ref == "" || hasPlaceholder(ref) {
		return ""
	}
	p, query, _ := strings.Cut(ref, "?")
	if !hasScheme(p) && !strings.HasPrefix(p, "//") {
		name, err := url.PathUnescape(p)
		if err != nil {
			name = p
		}
		if isMarkdown(name) {
			return l.document(name)
		}
		if abs := l.attached(name, query); abs != "" {
			return abs
		}
	}
	base := l.base
	if l.s.kind == Plain {
		base = l.own
	}
	abs, err := canon.Resolve(base, ref)
	if err != nil {
		return ""
	}
	return abs
}

// attached returns the URL of a file that generators copy together with the page. The name is
// relative to the file that contains the link.
func (l *linker) attached(name, query string) string {
	if l.s.kind == Hugo || l.s.kind == Jekyll || strings.HasPrefix(name, "/") {
		return ""
	}
	file := path.Join(l.dir, name)
	if strings.HasSuffix(name, "/") || !within(l.root, file) || !l.s.exists(file) {
		return ""
	}
	id, err := pageURL(l.path(file))
	if err != nil {
		return ""
	}
	if query != "" {
		id += "?" + query
	}
	abs, err := canon.URL(canon.Absolute(l.s.base, id))
	if err != nil {
		return ""
	}
	return abs
}

// document returns the URL of another file's page, or "" if the page does not exist.
func (l *linker) document(name string) string {
	var candidates []string
	switch {
	case strings.HasPrefix(name, "@site/"):
		candidates = []string{strings.TrimPrefix(name, "@site/")}
	case strings.HasPrefix(name, "/"):
		candidates = []string{path.Join(l.root, name), path.Join(".", name)}
		for _, r := range l.s.roots() {
			candidates = append(candidates, path.Join(r, name))
		}
	default:
		candidates = []string{path.Join(l.dir, name), path.Join(l.root, name)}
	}
	for _, c := range candidates {
		if u := l.target(strings.TrimPrefix(c, "/")); u != "" {
			return u
		}
	}
	return ""
}

// target returns the URL of a file's page, or "" if the file is not a page.
func (l *linker) target(file string) string {
	if strings.HasPrefix(file, "../") || !l.s.exists(file) || l.s.allowed(file) != nil {
		return ""
	}
	if winner := l.s.index.lost[file]; winner != "" {
		file = winner
	}
	h, err := l.s.head(file)
	if err != nil {
		return ""
	}
	sp, _, err := l.s.spotOf(file, &h, l.s.now())
	if err != nil {
		return ""
	}
	return canon.Absolute(l.s.base, sp.url)
}

// reference returns the URL of a page, given the path in Hugo's ref or in Jekyll's link or
// post_url. It returns "" if the page does not exist.
func (l *linker) reference(ref string) string {
	ref, fragment, _ := strings.Cut(strings.TrimSpace(ref), "#")
	if fragment != "" {
		fragment = "#" + escapeFragment(fragment)
	}
	if ref == "" {
		if fragment == "" {
			return ""
		}
		return l.page + fragment
	}
	_, lang, _ := strings.Cut(path.Base(stemOf(l.file)), ".")
	var dirs []string
	if !strings.HasPrefix(ref, "/") {
		dirs = append(dirs, l.dir)
		if stemOf(path.Base(l.file)) == "index" {
			dirs = append(dirs, path.Dir(l.dir)) // in a bundle, a path may be relative to its folder
		}
	}
	dirs = append(dirs, l.root, path.Join(l.root, "_posts"))
	stem := strings.Trim(ref, "/")
	if isMarkdown(stem) {
		stem = stemOf(stem)
	}
	if dir, ok := l.s.index.find(strings.SplitN(path.Base(stem), ".", 2)[0]); ok && !strings.Contains(strings.Trim(ref, "/"), "/") {
		dirs = append(dirs, dir, path.Dir(dir))
	}
	for _, dir := range dirs {
		for _, name := range []string{stem, stem + "/index", stem + "/_index", strings.TrimSuffix(stem, "index")} {
			for _, ending := range []string{"." + lang + ".md", ".md", ".markdown"} {
				if u := l.target(path.Join(dir, name) + ending); u != "" && name != "" {
					return u + fragment
				}
			}
		}
	}
	return ""
}

// hasScheme reports whether a reference begins with a scheme (RFC 3986, section 3.1).
func hasScheme(s string) bool {
	i := strings.IndexByte(s, ':')
	return i > 0 && !strings.ContainsAny(s[:i], "/?#.") && unicode.IsLetter(rune(s[0]))
}

func escapeFragment(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7F || strings.IndexByte("\"<>`[]{}|\\^", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
