package arch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// page lists every package.
const page = "ARCHITECTURE.md"

var quoted = regexp.MustCompile("`([^`]+)`")

// names returns the texts in backquotes.
func names(cell string) []string {
	var out []string
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

// tableRows returns the rows of the Markdown table with the given first header
// cells, without the header.
func tableRows(md string, head ...string) [][]string {
	var rows [][]string
	inside := false
	for line := range strings.Lines(md) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if inside {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !inside:
			inside = len(cells) >= len(head) && slices.Equal(cells[:len(head)], head)
		case strings.HasPrefix(cells[0], "--"):
		default:
			rows = append(rows, cells)
		}
	}
	return rows
}

// checkPage compares the packages that the page lists with those of the module.
func checkPage(t *tree) []string {
	var problems []string
	listed := map[string]bool{}
	for _, r := range tableRows(t.text[page], "package", "what it is") {
		for _, name := range names(r[0]) {
			if t.packages[name] == nil || listed[name] {
				problems = append(problems, fmt.Sprintf("%s: package %s is listed twice or does not exist", page, name))
			}
			listed[name] = true
		}
	}
	for _, p := range t.sorted() {
		if !listed[p.path] {
			problems = append(problems, fmt.Sprintf("%s: package %s is not listed", page, p.path))
		}
	}
	return problems
}

// marker opens a generated part of a page; "<!-- end -->" closes it.
var marker = regexp.MustCompile(`^<!-- (example)\b *(.*?) *-->$`)

// regenerate returns a page with each generated part updated.
func regenerate(md string, part func(kind, argument string) (string, error)) (string, error) {
	var out strings.Builder
	open := ""
	for line := range strings.Lines(md) {
		trimmed := strings.TrimSpace(line)
		m := marker.FindStringSubmatch(trimmed)
		switch {
		case m != nil && open != "":
			return "", fmt.Errorf("%s is inside %s", trimmed, open)
		case m != nil:
			body, err := part(m[1], m[2])
			if err != nil {
				return "", fmt.Errorf("%s: %w", trimmed, err)
			}
			open = trimmed
			out.WriteString(trimmed + "\n" + body)
		case trimmed == "<!-- end -->" && open == "":
			return "", fmt.Errorf("<!-- end --> without a beginning")
		case trimmed == "<!-- end -->":
			open = ""
			out.WriteString(line)
		case open == "":
			out.WriteString(line)
		}
	}
	if open != "" {
		return "", fmt.Errorf("%s has no <!-- end -->", open)
	}
	return out.String(), nil
}

// stale compares a page with its expected content, and returns the first line that differs.
func stale(name, got, want, command string) []string {
	if got == want {
		return nil
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	i := 0
	for i < len(g) && i < len(w) && g[i] == w[i] {
		i++
	}
	line := func(s []string) string {
		if i < len(s) {
			return s[i]
		}
		return ""
	}
	return []string{fmt.Sprintf("%s:%d: stale: %q should be %q; see what changed, then: %s", name, i+1, line(g), line(w), command)}
}
