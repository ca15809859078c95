package folder

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/tree"
)

// Reasons why a file with a certain name is not a page.
var (
	errStatus = fmt.Errorf("%w: error page", millrace.ErrInvalid)
	errStub   = fmt.Errorf("%w: verification file of a search engine", millrace.ErrInvalid)
)

var stub = regexp.MustCompile(`^(google|yandex_)[0-9a-f]{12,20}\.html$`)

// isHTML reports whether a file is an HTML page according to its name.
func isHTML(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".html", ".htm", ".xhtml":
		return true
	}
	return false
}

// fileReason returns the reason why an HTML file with this name is never a page, even if another
// page links to the file. It returns nil if the file may be a page.
func fileReason(name string) error {
	switch stem := strings.TrimSuffix(name, path.Ext(name)); {
	case stem == "404", stem == "500", stem == "50x":
		return errStatus
	case stub.MatchString(name):
		return errStub
	}
	return nil
}

// walker returns a walker over the pages of a folder.
func (f *Folder) walker(root *os.Root) *tree.Walker {
	return &tree.Walker{Root: root, Max: f.max, Name: entryOf}
}

// entryOf classifies an entry of a directory. See [tree.Walker].
func entryOf(name string, folder bool, list []fs.DirEntry) (key string, use bool, err error) {
	name = path.Base(name)
	key = tree.Escape(name)
	switch {
	case folder && strings.HasPrefix(name, "_"):
		return key, true, errPrivate
	case folder:
		return key, true, nil
	case !isHTML(name):
		return "", false, nil
	case name == "index.html" || name == "index.htm" &&
		!slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() == "index.html" && !e.IsDir() }):
		key = ""
	}
	return key, true, fileReason(name)
}

// segments returns the decoded segments of a URL path, and whether the path ends with "/". ok is
// false if the path cannot name a visible file: it is not absolute, or it contains an empty
// segment, a dot segment, an encoded slash, a NUL or a hidden name.
func segments(urlPath string) (names []string, slash, ok bool) {
	rest, ok := strings.CutPrefix(urlPath, "/")
	if !ok {
		return nil, false, false
	}
	if rest == "" {
		return nil, true, true
	}
	rest, slash = strings.CutSuffix(rest, "/")
	for s := range strings.SplitSeq(rest, "/") {
		name, err := url.PathUnescape(s)
		if err != nil || name == "" || strings.ContainsAny(name, "/\x00") || tree.Hidden(name) {
			return nil, false, false
		}
		names = append(names, name)
	}
	return names, slash, true
}
