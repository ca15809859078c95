package policy

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/fetch"
)

// Allow returns a robots.txt that allows the path patterns of the site's machine-readable
// documents. A site that blocks crawlers from all pages also blocks these documents, which are
// published for crawlers. Therefore each group that blocks them with a general rule gets a longer
// rule that allows them (RFC 9309, section 2.2.2: the longest rule takes precedence). The documents
// stay blocked in three cases:
//
//   - for crawlers that the policy or the caller of [NewRobots] refuses, because they have a group of
//     their own;
//   - for a group that names its crawlers and blocks them from the whole site;
//   - by a rule at least as long as the pattern, because such a rule is meant for these documents.
//
// If a part of the site is blocked, the documents of its pages stay blocked.
func (u *Robots) Allow(text string, patterns []string) string {
	if len(patterns) == 0 {
		return text
	}
	records := parseRecords(text)
	after := make(map[int][]string) // lines to insert, by the index of the preceding record
	var tokens, rules []string
	last := 0
	end := func() {
		refused := slices.ContainsFunc(tokens, func(token string) bool { return u != nil && u.refused[token] })
		if len(rules) > 0 && len(tokens) > 0 && !refused {
			if lines := allowLines(rules, patterns, slices.Contains(tokens, "*")); lines != nil {
				after[last] = lines
			}
		}
		tokens, rules = nil, nil
	}
	for i, r := range records {
		switch r.name {
		case recordAgent:
			if len(rules) > 0 {
				end()
			}
			tokens = append(tokens, r.token())
		case "allow", "disallow":
			rules, last = append(rules, r.name+": "+r.value), i
		}
	}
	end()
	if len(after) == 0 {
		return text
	}
	var b strings.Builder
	for i, r := range records {
		b.WriteString(r.text + "\n")
		for _, line := range after[i] {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// allowLines returns the lines to add to a group with the given rules. all reports whether the
// group applies to all crawlers without a group of their own.
func allowLines(rules, patterns []string, all bool) (lines []string) {
	robots := fetch.ParseRobots([]byte("user-agent: *\n"+strings.Join(rules, "\n")), "")
	if !all && !robots.Allowed("/") {
		return nil
	}
	sample := strings.NewReplacer("*", "x", "$", "")
	for _, p := range patterns {
		_, rule := robots.Rule(sample.Replace(p))
		if rule == "" && !strings.HasSuffix(p, "$") {
			_, rule = robots.Rule(sample.Replace(p) + "?x=x")
		}
		general := strings.TrimPrefix(rule, "Disallow: ")
		if rule == "" || len(general) >= len(p) {
			continue
		}
		lines = append(lines, "Allow: "+p)
		if !strings.Contains(p, "*") {
			continue
		}
		for _, r := range rules {
			part, refuses := strings.CutPrefix(r, "disallow: ")
			if part != general && refuses && strings.HasPrefix(part, "/") && len(part) <= len(p) && !strings.HasSuffix(part, "$") {
				lines = append(lines, "Disallow: "+strings.TrimRight(part, "*")+"*"+strings.TrimLeft(p, "/*"))
			}
		}
	}
	return lines
}
