package arch

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// codesPage lists the codes of errors.
const codesPage = "docs/reference/errors.md"

var (
	// codeSet matches the places that set the code of an error.
	codeSet    = regexp.MustCompile(`\b(?:Coded\(|Code: +|(?:reason|limitError|unpublished|slowError|advice)\{|(?:limitError|formatError|tooLarge|invalid|advise)\([^"\n]*)"([a-z][a-z0-9]*(?:-[a-z0-9]+)*)"`)
	codeListed = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
)

// checkCodes finds error codes that the page of codes does not list, and listed codes that do
// not exist.
func checkCodes(t *tree) []string {
	page := t.text[codesPage]
	listed := map[string]bool{}
	for _, m := range codeListed.FindAllStringSubmatch(page, -1) {
		listed[m[1]] = true
	}
	var problems []string
	all := ""
	for name, text := range t.sources() {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		all += text
		for _, m := range codeSet.FindAllStringSubmatch(text, -1) {
			if !listed[m[1]] {
				problems = append(problems, fmt.Sprintf("%s: the code %s is not listed in %s", name, m[1], codesPage))
			}
		}
	}
	for _, code := range slices.Sorted(maps.Keys(listed)) {
		if !strings.Contains(all, `"`+code+`"`) {
			problems = append(problems, fmt.Sprintf("%s: no error has the code %s", codesPage, code))
		}
	}
	return problems
}
