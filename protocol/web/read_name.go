package web

import (
	"maps"
	"strings"

	"github.com/millrace/millrace/internal/canon"
)

// naming describes the known ways to find a site's Markdown. The map Names is replaced, never
// changed.
type naming struct {
	Accept bool `json:"accept,omitempty"` // the page's own URL returns Markdown by Accept
	// Names maps the form of a page's path to the rule that gives the URL of its alternate.
	Names map[string]string `json:"names,omitempty"`
	Guess bool              `json:"guess,omitempty"` // pages do not link to their alternates, so the reader guesses the URLs
	Links bool              `json:"links,omitempty"` // pages link to their alternates, whose URLs follow no rule
}

// known reports whether the site is known to have Markdown.
func (m naming) known() bool { return m.Accept || m.Links || len(m.Names) > 0 }

// Forms of paths. Each has rules by which sites name the alternates of such pages, the most common
// first. The rules of llmstxt.org are "page.html.md" and "folder/index.html.md".
const (
	formFolder = "folder" // /docs/
	formHTML   = "html"   // /docs/a.html
	formFile   = "file"   // /docs/a
)

// rules returns the rules of a form.
func rules(form string) []string {
	switch form {
	case formFolder:
		return []string{"index.md", "md", "index.html.md"}
	case formHTML:
		return []string{"html.md", "md"}
	}
	return []string{"md", "index.md", "html.md"}
}

// splitPage splits a page's URL into the URL without its query, and the query with its "?". It also
// returns the form of the path.
func splitPage(page string) (path, query, form string) {
	path = page
	if i := strings.IndexByte(page, '?'); i >= 0 {
		path, query = page[:i], page[i:]
	}
	last := path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case last == "":
		return path, query, formFolder
	case strings.HasSuffix(last, ".html"), strings.HasSuffix(last, ".htm"):
		return path, query, formHTML
	}
	return path, query, formFile
}

// alternateName returns the URL of a page's alternate according to a rule, or "" if the rule does not apply.
func alternateName(page, rule string) string {
	path, query, form := splitPage(page)
	switch form + " " + rule {
	case "folder index.md":
		return path + "index.md" + query
	case "folder md":
		if strings.Count(path, "/") == 3 {
			return "" // the root
		}
		return strings.TrimSuffix(path, "/") + ".md" + query
	case "folder index.html.md":
		return path + "index.html.md" + query
	case "html html.md", "file md":
		return path + ".md" + query
	case "html md":
		return path[:strings.LastIndexByte(path, '.')] + ".md" + query
	case "file index.md":
		return path + "/index.md" + query
	case "file html.md":
		return path + ".html.md" + query
	}
	return ""
}

// usualNames returns the URLs at which most sites have the alternate of a page.
func usualNames(page string) (names []string) {
	_, _, form := splitPage(page)
	for _, rule := range rules(form) {
		if at := alternateName(page, rule); at != "" {
			names = append(names, at)
		}
	}
	return names
}

// alternate returns the URL at which the alternate of a page should be, or "" if no rule is known.
func (m naming) alternate(page string) string {
	_, _, form := splitPage(page)
	return alternateName(page, m.Names[form])
}

// learn records where the alternate of a page was found.
func (r *reader) learn(page, alternate string, guessed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if page == alternate {
		r.way.Accept = true
		return
	}
	_, _, form := splitPage(page)
	if _, ok := r.way.Names[form]; ok {
		return // one page of many may be an exception
	}
	found := ""
	for _, rule := range rules(form) {
		if alternateName(page, rule) == alternate {
			found = rule
			break
		}
	}
	if found == "" {
		r.way.Links = true
		return
	}
	names := maps.Clone(r.way.Names)
	if names == nil {
		names = map[string]string{}
	}
	names[form] = found
	r.way.Names, r.way.Guess = names, r.way.Guess || guessed
}

// maxFailed is the number of pages of a form without Markdown after which the reader no longer
// guesses names for that form.
const maxFailed = 3

// guesses reports whether guessing the URL of a page's Markdown may succeed: a naming rule of the
// site is known, and fewer than maxFailed guesses for this path form have failed.
func (r *reader) guesses(page string) bool {
	_, _, form := splitPage(page)
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.way.Names) > 0 && r.failed[form] < maxFailed
}

// guessed counts a page that has no Markdown at any guessed URL.
func (r *reader) guessed(page string) {
	_, _, form := splitPage(page)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = map[string]int{}
	}
	if _, known := r.way.Names[form]; !known {
		r.failed[form]++
	}
}

// samePage reports whether two URLs are of the same page, ignoring their origins, which
// [reader.here] compares.
func samePage(a, b string) bool {
	return strings.TrimPrefix(a, canon.Origin(a)) == strings.TrimPrefix(b, canon.Origin(b))
}
