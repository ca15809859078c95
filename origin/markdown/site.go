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

// The supported kinds. The zero value selects the kind by the configuration file.
const (
	Plain      Kind = "plain" // no generator: a.md is /a/
	Hugo       Kind = "hugo"
	Jekyll     Kind = "jekyll"
	MkDocs     Kind = "mkdocs"
	Docusaurus Kind = "docusaurus"
)

// maxConfig is the maximum size of a configuration file in bytes.
const maxConfig = 1 << 20

// spot is the address of a page, with the fields that depend on its position in the site.
type spot struct {
	url      string // identity
	section  string
	language string
	title    string // title in the navigation
	date     time.Time
	kind     millrace.PageKind
	weak     bool // another file with the URL takes precedence
}

// convention holds the rules by which files become pages. All names are slash-separated and
// relative to the project.
type convention interface {
	// roots returns the folders that contain pages; "." is the project.
	roots() []string
	// entry reports whether to use an entry of a root. The error is the reason why not; only
	// an [unpublished] is reported. has reports whether a name exists next to the entry.
	entry(name string, folder bool, has func(string) bool) (use bool, err error)
	// spot returns the address of a page. It adds the defaults of the configuration to the
	// front matter.
	spot(name string, h *head) (spot, error)
}

// site is a project and its convention.
type site struct {
	convention
	kind     Kind
	base     string // base in the configuration, canonical, ends with "/"; "" = none
	language string
	title    string // of the site; "" = none
	values   matter // values of the configuration that pages may use
	macros   bool   // pages are templates
	generator
	unsure string // unsupported feature on which the addresses depend; "" = none
	// authors maps the keys of authors in pages to names; nil = none.
	authors map[string]string
	// drafts, future and expired also publish such pages.
	drafts, future, expired bool
	// shortNames allows links by the name of a page without its folder, see [index.find].
	shortNames bool
}

// unpublished is the error for a file that its owner or the convention excludes. The source reports
// the file as absent.
type unpublished struct{ code, why string }

func (u unpublished) Error() string { return u.why }

// ErrorCode returns the code.
func (u unpublished) ErrorCode() string { return u.code }

// Unwrap returns [millrace.ErrNotFound].
func (u unpublished) Unwrap() error { return millrace.ErrNotFound }

var (
	errPrivate  = unpublished{"underscore", "the name starts with an underscore, like drafts and parts"}
	errNoMatter = unpublished{"no-matter", "no front matter; Jekyll copies such a file unchanged"}
)

// within reports whether a name is a folder or inside it.
func within(folder, name string) bool {
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}

// below returns the innermost of some folders that contains a name, and the name relative to
// it.
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

// isMarkdown reports whether a file name has an extension of Markdown.
func isMarkdown(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".mdx", ".mdown", ".mkd", ".mkdn":
		return true
	}
	return false
}

// stemOf returns a name without its extension.
func stemOf(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

// isReadme reports whether a file is a README, which is the page of its folder on some sites.
func isReadme(stem string) bool { return strings.EqualFold(stem, "readme") }

// join returns the path of a folder's page. The path, such as "/" or "a/b/", can precede a
// name.
func join(parts ...string) string {
	return "/" + strings.TrimLeft(path.Join(parts...), "/")
}

// asFolder returns a path with a slash at its end.
func asFolder(p string) string { return strings.TrimSuffix(p, "/") + "/" }

// pageURL converts a path of a convention or an owner to a page's URL.
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

// baseOf converts a URL of a configuration to a base. It returns "" for an invalid URL.
func baseOf(s string) string {
	c, err := canon.URL(strings.TrimSpace(s))
	if err != nil || strings.Contains(c, "?") {
		return ""
	}
	return asFolder(c)
}

// release returns an [unpublished] error for a page that is currently not public. timed reports
// whether the page may become public or hidden by the passage of time.
func (s *site) release(m matter, date, now time.Time) (timed bool, err error) {
	if !s.drafts && (m.is("draft") || m.isNot("published") || strings.EqualFold(m.text("status"), "draft")) {
		return false, unpublished{"draft", "draft"}
	}
	from := m.date("publishdate", "publish_date")
	if from.IsZero() && (s.kind == Hugo || s.kind == Jekyll) {
		from = cmp.Or(m.date("date"), date)
	}
	if !s.future && from.After(now) {
		return true, unpublished{"future", "not published before " + from.UTC().Format(time.RFC3339)}
	}
	until := m.date("expirydate", "expiry_date", "unpublishdate", "expires")
	if !s.expired && !until.IsZero() && !until.After(now) {
		return true, unpublished{"expired", "expired at " + until.UTC().Format(time.RFC3339)}
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
