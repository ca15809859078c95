package arch

import (
	"fmt"
	"regexp"
	"strings"
)

// checkSizes finds files that are too long.
func checkSizes(t *tree) []string {
	var problems []string
	for name, text := range t.sources() {
		if n := strings.Count(text, "\n"); n > maxLines {
			problems = append(problems, fmt.Sprintf("%s: %d lines, want at most %d", name, n, maxLines))
		}
	}
	return problems
}

const (
	maxLines  = 600
	aimedFor  = 300
	machineOK = ".ci/run" // this file describes the machine on which it runs
)

// Words that mark unfinished work, and paths of a single machine. The expressions do not match
// themselves.
var (
	unfinished = regexp.MustCompile(`\b(TO(DO)|FIX(ME)|XX(X))\b`)
	machine    = regexp.MustCompile(`(^|[\s"'(=:` + "`" + `])(/(root|work)/|[.]library\b|[.][.]/shared\b)`)
)

// checkWords finds matches of unfinished and machine in every text file.
func checkWords(t *tree) []string {
	var problems []string
	for name, text := range t.texts() {
		n := 0
		for line := range strings.Lines(text) {
			n++
			if w := unfinished.FindString(line); w != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: the word %s", name, n, w))
			}
			if m := machine.FindStringSubmatch(line); m != nil && name != machineOK {
				problems = append(problems, fmt.Sprintf("%s:%d: %s is a path of a single machine", name, n, m[2]))
			}
		}
	}
	return problems
}
