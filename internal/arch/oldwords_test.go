package arch

import (
	"fmt"
	"go/scanner"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// oldWords are expressions to avoid, each with the number of uses that the module may still have.
// Never raise a number; lower it when texts improve.
var oldWords = map[string]int{
	"nobody":                 0,
	"whoever":                0,
	"anew":                   0,
	"hardly":                 0,
	"of late":                0,
	"in vain":                0,
	"is told":                0,
	"are told":               0,
	"lets go of":             0,
	"stands for itself":      0,
	"what is what":           0,
	"there is none":          0,
	"as it does":             0,
	"so that ... so that":    0,
	"shelf":                  0,
	"shelves":                0,
	"rooms":                  0,
	"appraise":               0,
	"doubted":                0,
	"keyring":                0,
	"lock ring":              0,
	"sheaf":                  0,
	"deafen":                 0,
	"pupil":                  0,
	"teller":                 0,
	"in earnest":             0,
	"barren":                 0,
	"glance":                 0,
	"milestone":              0,
	"tally":                  0,
	"the one before goes on": 0,
}

// oldWordsFile is the file that holds the list.
const oldWordsFile = "internal/arch/oldwords_test.go"

// checkOldWords finds the expressions of oldWords in comments and strings of Go
// files and in all other texts, also across the end of a line.
func checkOldWords(t *tree) []string {
	places := map[string][]string{}
	for name, text := range t.texts() {
		if name == oldWordsFile {
			continue
		}
		if strings.HasSuffix(name, ".go") {
			text = goTexts(text)
		}
		text = strings.ToLower(text)
		for word := range oldWords {
			if !strings.Contains(text, longest(word)) {
				continue // a fast check that rules out most expressions
			}
			for _, at := range oldWordExps[word].FindAllStringIndex(text, -1) {
				places[word] = append(places[word], fmt.Sprintf("%s:%d", name, 1+strings.Count(text[:at[0]], "\n")))
			}
		}
	}
	var problems []string
	for _, word := range slices.Sorted(maps.Keys(places)) {
		if n, most := len(places[word]), oldWords[word]; n > most {
			problems = append(problems, fmt.Sprintf("%q is used %d times, want at most %d: %s", word, n, most, strings.Join(places[word], " ")))
		}
	}
	return problems
}

// longest returns the longest word of an expression, which is the rarest.
func longest(words string) string {
	return slices.MaxFunc(strings.Fields(words), func(a, b string) int { return len(a) - len(b) })
}

// oldWordExps match the expressions as whole words of a text in lower case. Three dots
// match the rest of a clause.
var oldWordExps = func() map[string]*regexp.Regexp {
	exps := map[string]*regexp.Regexp{}
	for word := range oldWords {
		e := strings.ReplaceAll(word, " ... ", `\s[^.;:]*\s`)
		exps[word] = regexp.MustCompile(`\b` + strings.ReplaceAll(e, " ", `\s+`) + `\b`)
	}
	return exps
}()

// goTexts returns a Go file with everything except comments, strings and line ends
// replaced by full stops.
func goTexts(src string) string {
	out := []byte(src)
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, []byte(src), nil, scanner.ScanComments)
	end := 0 // of the last text
	blank := func(to int) {
		for i, c := range out[end:to] {
			if c != '\n' && c != ' ' && c != '\t' {
				out[end+i] = '.'
			}
		}
	}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			blank(len(out))
			return string(out)
		}
		if tok != token.COMMENT && tok != token.STRING {
			continue
		}
		at := file.Offset(pos)
		blank(at)
		end = at + len(lit)
		if strings.HasPrefix(lit, "//") {
			copy(out[at:], "  ")
		}
	}
}
