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

// Kind is the convention that determines which files are pages. It is named after a generator.
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

// spot is the address of a page, with the fields that depend on the position of its file in the
// site.
type spot struct {
	url      string // identity of the page
	section  string
	language string
	title    string // title of the page in the navigation
	date     time.Time
	kind     millrace.PageKind
	weak     bool // another file with the same URL takes precedence
}

// convention contains the rules that determine which files are pages. All names are separated by
// slashes and relative to the project.
type convention interface {
	// roots returns the folders that contain pages. "." is the project folder.
	roots() []string
	// entry reports whether to use an entry in a root. The error is the reason why the entry is not
	// used; only an [unpublished] is reported. has reports whether a name exists in the folder of
	// the entry.
	entry(name string, folder bool, has func(string) bool) (use bool, err error)
	// spot returns the address of a page. It adds the defaults in the configuration to the front
	// matter.
	spot(name string, h *head) (spot, error)
}

// site is a project and its convention.
type site struct {
	convention
	kind     Kind
	base     string // base according to the configuration, canonical, ends with "/", or ""
	language string
	title    string // title of the site, or ""
	values   matter // values in the configuration that pages may use
	macros   bool   // whether pages are templates
	generator
	unsupported string // unsupported feature on which the addresses depend, or ""
	// authors maps the keys of authors to their names, or nil.
	authors map[string]string
	// If drafts, future or expired is set, drafts, future pages or expired pages are published,
	// too.
	drafts, future, expired bool
	// If shortNames is set, a link may name a page without its folder. See [index.find].
	shortNames bool
}

// unpublished is the error for a file that its owner or the convention excludes. The source reports
// the file as absent.
type unpublished struct{ code, why string }

func (u unpublished) Error() string { return u.why }

// ErrorCode returns the code of the reason.
func (u unpublished) ErrorCode() string { return u.code }

// Unwrap returns [millrace.ErrNotFound].
func (u unpublished) Unwrap() error { return millrace.ErrNotFound }

var (
	errPrivate  = unpublished{"underscore", "the name starts with an underscore, like drafts and parts"}
	errNoMatter = unpublished{"no-front-matter", "no front matter; Jekyll copies such a file unchanged"}
)

// within reports whether a name is a folder or inside it.
func within(folder, name string) bool {
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}

// below returns the innermost folder that contains a name, and the name relative to this folder.
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

// isMarkdown reports whether a file is a Markdown file according to its extension.
func isMarkdown(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".mdx", ".mdown", ".mkd", ".mkdn":
		return true
	}
	return false
}

// stemOf returns a name without its extension.
func stemOf(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

// isReadme reports whether a file is a README, which on some sites is the page of its folder.
func isReadme(stem string) bool { return strings.EqualFold(stem, "readme") }

// join joins parts to a path that starts with one slash and, unless it is "/", does not end with
// one.
func join(parts ...string) string {
	return "/" + strings.TrimLeft(path.Join(parts...), "/")
}

// asFolder returns a path with a slash at its end.
func asFolder(p string) string { return strings.TrimSuffix(p, "/") + "/" }

// pageURL converts a path to a page's URL. The path comes from a convention or from front matter.
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

// release returns an [unpublished] error if a page is currently not public. timed reports whether
// the page may be published or hidden as time passes.
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

// plainSite is the convention of a folder without a generator.
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
