package markdown

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tree"
)

// Kind is the convention of a generator by which files become pages.
type Kind string

// The kinds that there are. The zero value finds out by the configuration
// file.
const (
	Plain      Kind = "plain" // no generator: a.md is /a/
	Hugo       Kind = "hugo"
	Jekyll     Kind = "jekyll"
	MkDocs     Kind = "mkdocs"
	Docusaurus Kind = "docusaurus"
)

// maxConfig is the most bytes of a configuration file.
const maxConfig = 1 << 20

// spot is where a page is, and what its place says of it.
type spot struct {
	url      string // identity
	section  string
	language string
	title    string // of the navigation
	date     time.Time
	kind     millrace.PageKind
	weak     bool // gives way to another file with the URL
}

// convention says by what rules files become pages. All names are
// slash-separated and under the project.
type convention interface {
	// roots returns the folders that pages are in; "." is the project.
	roots() []string
	// entry says whether something in a root is of interest, and why not:
	// an [unpublished] is reported. has tells of the names beside it.
	entry(name string, folder bool, has func(string) bool) (use bool, err error)
	// spot returns the place of a page. What the front matter says that the
	// configuration adds is in the matter after it.
	spot(name string, h *head) (spot, error)
}

// site is a project and its convention.
type site struct {
	convention
	kind     Kind
	base     string // of the configuration, canonical, ends with "/"; "" = none
	language string
	// authors are the names of those that pages name by a key; nil = none.
	authors map[string]string
	// drafts, future and expired are published as well.
	drafts, future, expired bool
	// names of pages may be looked up without their folder, see [index.find].
	shortNames bool
}

// unpublished is a file that is no page by the will of its owner or by the
// convention. The source is sure of it.
type unpublished struct{ code, why string }

func (u unpublished) Error() string { return u.why }

// ErrorCode returns the code.
func (u unpublished) ErrorCode() string { return u.code }

// Unwrap returns [millrace.ErrNotFound].
func (u unpublished) Unwrap() error { return millrace.ErrNotFound }

var (
	errPrivate  = unpublished{"underscore", "a name that starts with an underscore is a draft's or a part's"}
	errNoMatter = unpublished{"no-matter", "it has no front matter, and Jekyll makes no page of such a file"}
)

// within reports whether a name is that of a folder or of something in it.
func within(folder, name string) bool {
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}

// below returns a name under one of some folders, and the folder: the
// innermost.
func below(roots []string, name string) (root, rel string) {
	ok := false
	for _, r := range roots {
		if within(r, name) && (!ok || len(r) > len(root)) {
			root, ok = r, true
		}
	}
	if root == "." {
		return root, name
	}
	return root, strings.TrimPrefix(strings.TrimPrefix(name, root), "/")
}

// isMarkdown reports whether a file name is that of a page.
func isMarkdown(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".mdx", ".mdown", ".mkd", ".mkdn":
		return true
	}
	return false
}

// stemOf returns a name without its last ending.
func stemOf(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

// isReadme reports whether a file is the page of its folder on the sites that
// show folders.
func isReadme(stem string) bool { return strings.EqualFold(stem, "readme") }

// join returns the path of a folder's page: "/" and "a/b/" in front of a name.
func join(parts ...string) string {
	return "/" + strings.TrimLeft(path.Join(parts...), "/")
}

// asFolder returns a path that ends with a slash.
func asFolder(p string) string { return strings.TrimSuffix(p, "/") + "/" }

// pageURL makes a page's URL of a path that a convention or an owner wrote.
func pageURL(p string) (string, error) {
	p = strings.NewReplacer("?", "%3F", "#", "%23", `\`, "/").Replace(p)
	for strings.Contains(p, "//") {
		p = strings.ReplaceAll(p, "//", "/")
	}
	c, err := canon.URL(strings.TrimSuffix(noBase, "/") + "/" + strings.TrimPrefix(p, "/"))
	if err != nil {
		return "", fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	id := canon.Relative(noBase, c)
	if len(id) > tree.MaxURL {
		return "", tree.ErrLong
	}
	return id, nil
}

// baseOf makes a base of what a configuration says, "" of what is none.
func baseOf(s string) string {
	c, err := canon.URL(strings.TrimSpace(s))
	if err != nil || strings.Contains(c, "?") {
		return ""
	}
	return asFolder(c)
}

// release says whether a page is to be seen, and until when that is certain:
// timed is true for a page that time alone may show or hide.
func (s *site) release(m matter, date, now time.Time) (timed bool, err error) {
	if !s.drafts && (m.is("draft") || m.isNot("published") || strings.EqualFold(m.text("status"), "draft")) {
		return false, unpublished{"draft", "it is a draft"}
	}
	from := m.date("publishdate", "publish_date")
	if from.IsZero() && (s.kind == Hugo || s.kind == Jekyll) {
		from = cmp.Or(m.date("date"), date)
	}
	if !s.future && from.After(now) {
		return true, unpublished{"future", "it is to be published at " + from.UTC().Format(time.RFC3339)}
	}
	until := m.date("expirydate", "expiry_date", "unpublishdate", "expires")
	if !s.expired && !until.IsZero() && !until.After(now) {
		return true, unpublished{"expired", "it has expired at " + until.UTC().Format(time.RFC3339)}
	}
	return !until.IsZero(), nil
}

// plainSite is a tree without a generator.
type plainSite struct{}

func loadPlain(*project) (*site, error) { return &site{convention: plainSite{}}, nil }

func (plainSite) roots() []string { return []string{"."} }

func (plainSite) entry(name string, folder bool, _ func(string) bool) (bool, error) {
	base := path.Base(name)
	switch {
	case folder && base == "node_modules":
		return false, nil
	case !folder && !isMarkdown(base):
		return false, nil
	case strings.HasPrefix(base, "_"):
		return true, errPrivate
	}
	return true, nil
}

func (plainSite) spot(name string, h *head) (spot, error) {
	dir, file := path.Split(name)
	stem := stemOf(file)
	sp := spot{weak: isReadme(stem)}
	own := h.matter.text("permalink", "url", "slug")
	switch {
	case strings.HasPrefix(own, "/"):
		sp.url = own
	case stem == "index" || sp.weak:
		sp.url = asFolder(join(escapePath(dir)))
	case h.matter.text("slug") != "":
		sp.url = asFolder(join(escapePath(dir), h.matter.text("slug")))
	default:
		sp.url = asFolder(join(escapePath(dir), tree.Escape(stem)))
	}
	var err error
	sp.url, err = pageURL(sp.url)
	return sp, err
}

// escapePath escapes the names of a path.
func escapePath(p string) string {
	parts := strings.Split(p, "/")
	for i := range parts {
		parts[i] = tree.Escape(parts[i])
	}
	return strings.Join(parts, "/")
}
