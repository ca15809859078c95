package web

import (
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/canon"
)

// ending is the suffix of the URLs of Markdown.
const ending = ".md"

// documentName returns the path and query, below the endpoint base, of the Markdown of the nth page
// with the same name. For a page of another site, it returns "".
func documentName(pagePath string, n int) string {
	dir, leaf, query, ok := wanted(pagePath)
	if !ok {
		return ""
	}
	if n > 1 {
		dir += "~" + strconv.Itoa(n) + "/"
	}
	return dir + leaf + ending + query
}

// wanted returns the name of a page's Markdown if no other page has that name: the folder, which
// ends with "/", the last segment, to which ".md" is appended, and the query.
func wanted(pagePath string) (dir, leaf, query string, ok bool) {
	path := pagePath
	if i := strings.IndexByte(pagePath, '?'); i >= 0 {
		path, query = pagePath[:i], pagePath[i:]
	}
	if !strings.HasPrefix(path, "/") {
		return "", "", "", false
	}
	dir, leaf = cutLeaf(path)
	if leaf == "" {
		leaf = "index"
	}
	if parent, last := cutFolder(dir); tildes(last) > 0 {
		dir = parent + "~" + last + "/"
	}
	return dir, leaf, query, true
}

// wanting returns the paths of the pages whose Markdown could have a name, the most likely first,
// and the number of the page among the pages with that name. If no Markdown can have the name, it
// returns no paths.
func wanting(base, name string) (identities []string, n int) {
	u, err := canon.URL("http://host" + name)
	if err != nil {
		return nil, 0
	}
	dir, leaf, query, ok := cutName(strings.TrimPrefix(u, "http://host"))
	if !ok {
		return nil, 0
	}
	n = 1
	if parent, last := cutFolder(dir); tildes(last) == 1 {
		if n, err = strconv.Atoi(last[1:]); err != nil || n < 2 || last[1] == '0' {
			return nil, 0
		}
		if dir = parent; tildes(lastFolder(dir)) == 1 {
			return nil, 0
		}
	}
	return slices.DeleteFunc(pagesNamed(dir, leaf, query), func(pagePath string) bool {
		return canon.Relative(base, pagePath) != pagePath // a page with this URL has another identity on this site
	}), n
}

// cutName splits a name into folder, leaf and query.
func cutName(name string) (dir, leaf, query string, ok bool) {
	path := name
	if i := strings.IndexByte(name, '?'); i >= 0 {
		path, query = name[:i], name[i:]
	}
	if path, ok = strings.CutSuffix(path, ending); !ok || !strings.HasPrefix(path, "/") {
		return "", "", "", false
	}
	dir, leaf = cutLeaf(path)
	return dir, leaf, query, leaf != ""
}

// pagesNamed returns the paths of all pages with the same name, in the order of precedence.
func pagesNamed(dir, leaf, query string) []string {
	path := dir
	if parent, last := cutFolder(dir); tildes(last) > 1 {
		path = parent + last[1:] + "/"
	}
	var all []string
	if leaf == "index" {
		all = append(all, path+query)
	}
	all = append(all, path+leaf+query)
	return slices.DeleteFunc(all, func(pagePath string) bool {
		d, l, q, ok := wanted(pagePath)
		return !ok || d != dir || l != leaf || q != query
	})
}

// conflicts returns the pages whose presence determines the number in the page's name, and the pages
// whose number the page determines. A page whose own path is such a name comes first.
func conflicts(pagePath string) (before, after []string) {
	dir, leaf, query, ok := wanted(pagePath)
	if !ok {
		return nil, nil
	}
	all := pagesNamed(dir, leaf, query)
	i := slices.Index(all, pagePath)
	if i < 0 {
		return nil, nil // a path that is not canonical has no name
	}
	before = append(before, dir+leaf+ending+query)
	before = append(before, all[:i]...)
	after = append(after, all[i+1:]...)
	if dir, leaf, query, ok := cutName(pagePath); ok && tildes(lastFolder(dir)) != 1 {
		after = append(after, pagesNamed(dir, leaf, query)...)
	}
	return before, after
}

// cutLeaf splits a path into the folder, which ends with "/", and the last segment.
func cutLeaf(path string) (dir, leaf string) {
	i := strings.LastIndexByte(path, '/')
	return path[:i+1], path[i+1:]
}

// cutFolder splits a folder into its parent and its last segment.
func cutFolder(dir string) (parent, last string) {
	return cutLeaf(strings.TrimSuffix(dir, "/"))
}

func lastFolder(dir string) string {
	_, last := cutFolder(dir)
	return last
}

// tildes returns the number of leading tildes of a segment that consists of tildes and digits. For
// any other segment, it returns 0.
func tildes(segment string) int {
	digits := strings.TrimLeft(segment, "~")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0
	}
	return len(segment) - len(digits)
}
