package policy

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/fetch"
)

// Allow returns a robots.txt whose groups allow the patterns of paths at which the
// machine documents of a site are. A file that keeps robots out of a whole site
// keeps them out of these, too, which are published for them. So each group that
// refuses them by a general rule allows them by a longer one (RFC 9309, section
// 2.2.2: the longest rule counts). Three refusals hold:
//
//   - that of crawlers which the policy or the caller of [NewRobots] refuses: they
//     have a group of their own;
//   - that of a group which names its crawlers and refuses them the whole site;
//   - that of a rule as long as the pattern: it is about these documents.
//
// Where a part of the site is refused, the documents of its pages stay refused.
func (u *Robots) Allow(text string, patterns []string) string {
	if len(patterns) == 0 {
		return text
	}
	records := parseRecords(text)
	after := make(map[int][]string) // by the record that they follow
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

// allowLines returns the lines that a group with some rules needs. all: the group
// is that of all crawlers without one of their own.
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
