// Package docname maps pages to the names of their M-URLs. The drafts of TCT use the same names,
// except for the last segment. If several pages map to one name, those after the first are
// numbered: /post/~2/llm.json.
package docname

import (
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/canon"
)

// Names maps pages to the M-URLs of one draft. Its value is the last segment of every M-URL, such
// as "/llm.json" or "/llm/".
type Names string

// Of returns the name of a page's document: its path and query under the endpoint base. n is the
// position of the page among the pages that map to the same name, from 1.
func (doc Names) Of(pagePath string, n int) string {
	dir, query := wanted(pagePath)
	if n > 1 {
		dir += "/~" + strconv.Itoa(n)
	}
	return dir + string(doc) + query
}

// wanted returns the folder and the query of a page's document name, before [Names.Of] numbers
// pages with the same name.
func wanted(pagePath string) (dir, query string) {
	dir, query = CutQuery(pagePath)
	if !strings.HasPrefix(dir, "/") {
		// A path must not contain the brackets of IPv6 addresses.
		_, elsewhere, _ := strings.Cut(dir, "://")
		host, rest, _ := strings.Cut(elsewhere, "/")
		dir = "/~" + brackets.Replace(host) + "/" + rest
	}
	dir = strings.TrimSuffix(dir, "/")
	parent, last := cutLast(dir)
	if tildes(last) > 0 {
		dir = parent + "/~" + last
	}
	return dir, query
}

var (
	brackets   = strings.NewReplacer("[", "%5B", "]", "%5D")
	unbrackets = strings.NewReplacer("%5B", "[", "%5D", "]")
)

// Wanting returns the identities of the pages whose document could have a name, the likeliest
// first, and the number n with which the document has that name. If no document can have the name,
// it returns no identities.
func (doc Names) Wanting(base, name string) (identities []string, n int) {
	path, query := CutQuery(name)
	dir, ok := strings.CutSuffix(path, string(doc))
	if !ok {
		return nil, 0
	}
	u, err := canon.URL("http://host" + dir + "/" + query)
	if err != nil {
		return nil, 0
	}
	path, query = CutQuery(strings.TrimPrefix(u, "http://host"))
	dir = strings.TrimSuffix(path, "/")
	n = 1
	if parent, last := cutLast(dir); tildes(last) == 1 {
		n, err = strconv.Atoi(last[1:])
		if err != nil || n < 2 || last[1] == '0' {
			return nil, 0
		}
		dir = parent
		if _, last := cutLast(dir); tildes(last) == 1 {
			return nil, 0
		}
	}
	identities = pagesNamed(dir, query)
	// A name with a dot in its last segment is a file more often than a folder.
	if _, last := cutLast(dir); len(identities) > 1 && !strings.Contains(last, ".") {
		identities[0], identities[1] = identities[1], identities[0]
	}
	return slices.DeleteFunc(identities, func(pagePath string) bool {
		return canon.Relative(base, pagePath) != pagePath // the page has another name on this site
	}), n
}

// pagesNamed returns the identities of all pages that map to the name with a folder and a query, in
// order of priority.
func pagesNamed(dir, query string) []string {
	path := dir
	if parent, last := cutLast(dir); tildes(last) > 1 {
		path = parent + "/" + last[1:]
	}
	all := []string{path + query, path + "/" + query}
	if elsewhere, ok := strings.CutPrefix(path, "/~"); ok {
		host, _, _ := strings.Cut(elsewhere, "/")
		rest := elsewhere[len(host):]
		for _, scheme := range []string{"https://", "http://"} {
			page := scheme + unbrackets.Replace(host) + rest
			if rest != "" {
				all = append(all, page+query)
			}
			all = append(all, page+"/"+query)
		}
	}
	return slices.DeleteFunc(all, func(pagePath string) bool {
		d, q := wanted(pagePath)
		return d != dir || q != query || strings.HasPrefix(pagePath, "?") || pagePath == ""
	})
}

// Conflicts returns the pages whose existence affects the number in the name of a page's document,
// and the pages whose numbers the page affects. A page of the site whose URL equals the name of a
// document has priority over all others.
func (doc Names) Conflicts(pagePath string) (before, after []string) {
	dir, query := wanted(pagePath)
	all := pagesNamed(dir, query)
	i := slices.Index(all, pagePath)
	if i < 0 {
		return nil, nil // the path is not canonical, so the page has no name
	}
	before = append(before, dir+string(doc)+query)
	before = append(before, all[:i]...)
	after = append(after, all[i+1:]...)
	if path, query := CutQuery(pagePath); strings.HasPrefix(path, "/") {
		if taken, ok := strings.CutSuffix(path, string(doc)); ok {
			if _, last := cutLast(taken); tildes(last) != 1 {
				after = append(after, pagesNamed(taken, query)...)
			}
		}
	}
	return before, after
}

// tildes returns the number of leading tildes of a segment that consists of tildes and digits. It
// returns 0 for any other segment.
func tildes(segment string) int {
	digits := strings.TrimLeft(segment, "~")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0
	}
	return len(segment) - len(digits)
}

// CutQuery returns the path, and the query with its "?".
func CutQuery(s string) (path, query string) {
	if i := strings.IndexByte(s, '?'); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// cutLast returns the path before the last "/", and the last segment.
func cutLast(dir string) (parent, last string) {
	i := strings.LastIndexByte(dir, '/')
	if i < 0 {
		return "", dir
	}
	return dir[:i], dir[i+1:]
}
