package arch

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

var markdownLink = regexp.MustCompile(`\]\(([^)\s#]+\.md)(?:#[^)\s]*)?\)`)

// checkLinks finds links of README and docs/ to pages that do not exist, and pages of docs/ that
// neither docs/index.md nor the index of their folder links to.
func checkLinks(t *tree) []string {
	var problems []string
	listed := map[string]bool{"docs/index.md": true}
	for name, text := range t.texts() {
		if path.Ext(name) != ".md" || name != "README.md" && !strings.HasPrefix(name, "docs/") {
			continue
		}
		for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
			to := path.Join(path.Dir(name), m[1])
			if _, ok := t.text[to]; !ok && !strings.Contains(m[1], "://") {
				problems = append(problems, fmt.Sprintf("%s: page %s not found", name, to))
			}
			listed[to] = listed[to] || path.Base(name) == "index.md"
		}
	}
	for name := range t.texts() {
		if path.Ext(name) == ".md" && strings.HasPrefix(name, "docs/") && !listed[name] {
			problems = append(problems, fmt.Sprintf("%s: not listed; add it to docs/index.md", name))
		}
	}
	return problems
}
